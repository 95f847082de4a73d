package otlp

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"penstock/producers/otlp/join"
)

// metrics are what the receiver tells of itself.
type metrics struct {
	requests *prometheus.CounterVec // protocol, outcome
	spans    *prometheus.CounterVec // fate
	flags    *prometheus.CounterVec
	forced   prometheus.Counter
	shared   *prometheus.CounterVec // outcome
	last     join.Stats
}

// Outcomes of requests.
const (
	outcomeTaken   = "taken"
	outcomePartial = "partial"
	outcomeBusy    = "busy"
	outcomeClosing = "closing"
	outcomeLarge   = "too-large"
	outcomeBad     = "malformed"
	outcomeKind    = "unsupported"
	outcomeToken   = "unauthorized"
)

func newMetrics(r *Receiver) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "penstock_otlp_requests_total", Help: "Requests by protocol and by what became of them.",
		}, []string{"protocol", "outcome"}),
		spans: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "penstock_otlp_spans_total", Help: "Spans by what became of them; each has one fate.",
		}, []string{"fate"}),
		flags: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "penstock_otlp_calls_flagged_total", Help: "Calls, or spans, that say something of the tracing.",
		}, []string{"flag"}),
		shared: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "penstock_otlp_shared_requests_total", Help: "Requests to other receivers with spans of their traces.",
		}, []string{"outcome"}),
		forced: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "penstock_otlp_traces_forced_total", Help: "Traces that were closed early for want of room.",
		}),
	}
	if r.o.Registerer == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{
		m.requests, m.spans, m.flags, m.forced, m.shared,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "penstock_otlp_spans_queued", Help: "Spans that wait to be joined.",
		}, func() float64 { return float64(r.queue.held()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "penstock_otlp_spans_open", Help: "Spans of open traces.",
		}, func() float64 { return float64(r.open.Load()) }),
	} {
		if err := r.o.Registerer.Register(c); err != nil {
			return nil, fmt.Errorf("metrics of the OTLP receiver: %w", err)
		}
	}
	return m, nil
}

// observe adds what has happened since the last time.
func (m *metrics) observe(s join.Stats) {
	for _, f := range join.Fates() {
		if n := s.Account[f] - m.last.Account[f]; n > 0 {
			m.spans.WithLabelValues(f.String()).Add(float64(n))
		}
	}
	for _, f := range [...]struct {
		name string
		n    int64
	}{
		{"skewed", s.Skewed - m.last.Skewed},
		{"negative", s.Negative - m.last.Negative},
		{"one-sided", s.OneSided - m.last.OneSided},
		{"no-duration", s.NoDuration - m.last.NoDuration},
		{"backwards", s.Backwards - m.last.Backwards},
		{"asynchronous", s.Asynchronous - m.last.Asynchronous},
		{"gap", s.Gaps - m.last.Gaps},
	} {
		if f.n > 0 {
			m.flags.WithLabelValues(f.name).Add(float64(f.n))
		}
	}
	m.forced.Add(float64(s.Forced - m.last.Forced))
	m.last = s
}
