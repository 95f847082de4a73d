package directory

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are what a directory shows of itself.
type metrics struct {
	hints    *prometheus.CounterVec
	changes  *prometheus.CounterVec
	setAside *prometheus.CounterVec
	loads    *prometheus.CounterVec
	files    *prometheus.CounterVec

	added, changed, same, unknownSites prometheus.Counter // of many
}

func newMetrics(d *Directory, r prometheus.Registerer) (*metrics, error) {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "penstock_directory_" + name, Help: help}, labels)
	}
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "penstock_directory_" + name, Help: help}, value)
	}
	m := &metrics{
		hints:    counter("hints_total", "Hints of where owners are, by what became of them.", "what"),
		changes:  counter("changes_total", "Entries that the bus told of, by what they did.", "what"),
		setAside: counter("set_aside_total", "Entries on the bus that can't be used.", "reason"),
		loads:    counter("loads_total", "Times that the bus was read from the beginning, by why.", "why"),
		files:    counter("snapshots_total", "Snapshots that were read or written, by how it ended.", "what"),
	}
	m.added, m.changed, m.same = m.changes.WithLabelValues("added"), m.changes.WithLabelValues("changed"), m.changes.WithLabelValues("same")
	m.unknownSites = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "penstock_directory_unknown_sites_total", Help: "Entries that name a site which the configuration hasn't; they are used.",
	})
	if r == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{
		m.hints, m.changes, m.setAside, m.loads, m.files, m.unknownSites,
		gauge("owners", "Owners with a location.", func() float64 { return float64(d.Len()) }),
		gauge("bytes", "Memory of the table.", func() float64 { return float64(d.table.bytes.Load()) }),
		gauge("hints", "Hints that hold.", func() float64 { return float64(d.hints.owners.Load()) }),
		gauge("age_seconds", "Since the directory was in step with the bus; 0 while it is.", func() float64 {
			since, _ := d.Freshness()
			return since.Seconds()
		}),
		gauge("connected", "1 while the bus is heard, else 0.", func() float64 {
			if _, connected := d.Freshness(); connected {
				return 1
			}
			return 0
		}),
	} {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("metrics of a directory: %w", err)
		}
	}
	return m, nil
}
