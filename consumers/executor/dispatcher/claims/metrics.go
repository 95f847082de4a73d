package claims

import "github.com/prometheus/client_golang/prometheus"

// collector shows how places are shared to Prometheus. All is read when it is asked for.
type collector struct {
	c *Claims

	places, limit, fair      *prometheus.Desc
	live, away, rounds, read *prometheus.Desc
}

func newCollector(c *Claims) *collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("penstock_claims_"+name, help, labels, prometheus.Labels{"site": c.o.Site})
	}
	return &collector{
		c:      c,
		places: desc("places", "Places of the server by the last round: claimed by this entry point, held by others, free.", "server", "of"),
		limit:  desc("limit", "Most requests that this entry point may have in service at the server.", "server"),
		fair:   desc("fair", "What the limit should be: the places shared out evenly.", "server"),
		live:   desc("dispatchers", "Entry points that share the servers, this one included."),
		away:   desc("away", "1 while the bus can't be asked: limits stay as they are."),
		rounds: desc("rounds_total", "Rounds in which places were shared out, by what became of them.", "result"),
		read:   desc("unreadable_total", "Values on the bus that could not be read and were written over."),
	}
}

// Describe implements prometheus.Collector.
func (m *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.places, m.limit, m.fair, m.live, m.away, m.rounds, m.read} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (m *collector) Collect(ch chan<- prometheus.Metric) {
	show := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, kind, v, labels...)
	}
	s := m.c.State()
	for name, n := range s.Limits {
		show(m.limit, prometheus.GaugeValue, float64(n), name)
		show(m.fair, prometheus.GaugeValue, float64(s.Fair[name]), name)
		if claimed, ok := s.Claimed[name]; ok {
			show(m.places, prometheus.GaugeValue, float64(claimed), name, "claimed")
			show(m.places, prometheus.GaugeValue, float64(s.Others[name]), name, "held")
			show(m.places, prometheus.GaugeValue, float64(s.Free[name]), name, "free")
		}
	}
	away := 0.0
	if s.Away {
		away = 1
	}
	show(m.live, prometheus.GaugeValue, float64(s.Live))
	show(m.away, prometheus.GaugeValue, away)
	show(m.rounds, prometheus.CounterValue, float64(s.Counts.Rounds), "written")
	show(m.rounds, prometheus.CounterValue, float64(s.Counts.Conflicts), "conflict")
	show(m.rounds, prometheus.CounterValue, float64(s.Counts.Failed), "failed")
	show(m.read, prometheus.CounterValue, float64(s.Counts.Unreadable))
}
