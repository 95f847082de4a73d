package redirector

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are what a redirector shows of itself. The directory shows its age.
type metrics struct {
	requests *prometheus.CounterVec
	lookups  *prometheus.CounterVec
	limited  *prometheus.CounterVec
	stale    prometheus.Counter
}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "penstock_redirector_" + name, Help: help}, labels)
	}
	m := &metrics{
		requests: counter("requests_total", "Requests by what they asked for, and status.", "what", "status"),
		lookups:  counter("lookups_total", "Owners that were looked up.", "result"),
		limited:  counter("limited_total", "Lookups that were refused because of a rate.", "by"),
		stale: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "penstock_redirector_stale_total", Help: "Answers from a directory that was not in step with the bus.",
		}),
	}
	if r == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.requests, m.lookups, m.limited, m.stale} {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("metrics of a redirector: %w", err)
		}
	}
	return m, nil
}
