package pull

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// How waiting ended, in metrics.
const (
	endChanged = "changed" // another answer
	endTime    = "time"    // the time was over
	endDrain   = "drain"   // the server ends
	endLeft    = "left"    // the client went away
	endFull    = "full"    // too many waited already
)

// metrics are what a server shows of itself.
type metrics struct {
	requests *prometheus.CounterVec
	waits    *prometheus.CounterVec
	limited  *prometheus.CounterVec
	stale    prometheus.Counter
	waiting  prometheus.Gauge
}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "penstock_pull_" + name, Help: help}, labels)
	}
	m := &metrics{
		requests: counter("requests_total", "Questions for a split, by status.", "status"),
		waits:    counter("waits_total", "Answers that were kept back for another, by how that ended.", "end"),
		limited:  counter("limited_total", "Questions that were refused because of a rate.", "by"),
		stale: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "penstock_pull_stale_total", Help: "Answers while the bus was away.",
		}),
		waiting: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "penstock_pull_waiting", Help: "Clients that wait for another answer.",
		}),
	}
	if r == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.requests, m.waits, m.limited, m.stale, m.waiting} {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("metrics of the pull API: %w", err)
		}
	}
	return m, nil
}
