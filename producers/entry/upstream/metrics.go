package upstream

import "github.com/prometheus/client_golang/prometheus"

// collector shows a pool's counters to Prometheus. They are plain numbers that a
// request adds to; labels are looked up only when they are read.
type collector struct {
	p *Pool

	requests, failures, probes, dials, stale, leftover, ejections, kept *prometheus.Desc
	outstanding, open, idle, usable                                     *prometheus.Desc
	retries, spent, panics, panicking                                   *prometheus.Desc
}

func newCollector(p *Pool) *collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("penstock_upstream_"+name, help, labels, prometheus.Labels{"pool": p.o.Name})
	}
	return &collector{
		p:           p,
		requests:    desc("requests_total", "Attempts by server.", "server"),
		failures:    desc("failures_total", "Failed attempts by server (empty: none was asked) and reason.", "server", "reason"),
		probes:      desc("probes_total", "Probes by server and result.", "server", "result"),
		dials:       desc("dials_total", "Connections opened by server.", "server"),
		stale:       desc("stale_total", "Idle connections that were closed, by us for their age or by the server.", "server"),
		leftover:    desc("leftover_total", "Connections closed because bytes followed an answer.", "server"),
		ejections:   desc("ejections_total", "How often a server was taken out of use.", "server"),
		kept:        desc("kept_total", "How often a bad server was kept in use by the cap or the panic.", "server"),
		outstanding: desc("outstanding", "Running requests by server.", "server"),
		open:        desc("connections", "Open connections by server.", "server"),
		idle:        desc("idle_connections", "Idle connections by server.", "server"),
		usable:      desc("usable", "1 if the server gets new requests.", "server", "state"),
		retries:     desc("retries_total", "Requests sent again."),
		spent:       desc("retries_refused_total", "Requests not sent again because the budget was spent."),
		panics:      desc("panics_total", "How often all servers were bad, so that all were used."),
		panicking:   desc("panic", "1 while all servers are bad."),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		c.requests, c.failures, c.probes, c.dials, c.stale, c.leftover, c.ejections, c.kept, c.outstanding,
		c.open, c.idle, c.usable, c.retries, c.spent, c.panics, c.panicking,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	count := func(d *prometheus.Desc, n uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	p := c.p
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.servers {
		count(c.requests, s.requests.Load(), s.name)
		for i, r := range reasons {
			if n := s.failures[i].Load(); n > 0 {
				count(c.failures, n, s.name, r)
			}
		}
		count(c.probes, s.probesOK, s.name, "ok")
		count(c.probes, s.probesFailed, s.name, "failed")
		count(c.dials, s.dials.Load(), s.name)
		count(c.stale, s.stale.Load(), s.name)
		count(c.leftover, s.leftover.Load(), s.name)
		count(c.ejections, s.standing.ejections, s.name)
		count(c.kept, s.standing.kept, s.name)
		open, idle := s.conns.count()
		gauge(c.outstanding, float64(s.outstanding.Load()), s.name)
		gauge(c.open, float64(open), s.name)
		gauge(c.idle, float64(idle), s.name)
		st := s.state()
		usable := 0.0
		if st == StateUsed || st == StateSuspect {
			usable = 1
		}
		gauge(c.usable, usable, s.name, st)
	}
	for i, r := range reasons {
		if n := p.refused.n[i].Load(); n > 0 {
			count(c.failures, n, "", r)
		}
	}
	count(c.retries, p.retries.Load())
	count(c.spent, p.spent.Load())
	count(c.panics, p.board.panics)
	panicking := 0.0
	if p.board.panicked {
		panicking = 1
	}
	gauge(c.panicking, panicking)
}
