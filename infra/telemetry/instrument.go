package telemetry

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"penstock/infra/clock"
)

// NewRegistry returns a registry that holds the runtime's and the process's
// metrics and penstock_build_info.
func NewRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	b := ReadBuild()
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "penstock_build_info", Help: "What is running; always 1.",
		ConstLabels: prometheus.Labels{"version": b.Version, "revision": b.Revision, "go": b.Go},
	})
	info.Set(1)
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), info)
	return r
}

// Counter counts up, by label values in the order in which it was declared.
type Counter struct{ vec *prometheus.CounterVec }

// Add adds n of 0 or more.
func (c Counter) Add(n int64, labels ...string) {
	c.vec.WithLabelValues(labels...).Add(float64(n))
}

// Inc adds 1.
func (c Counter) Inc(labels ...string) { c.Add(1, labels...) }

// Gauge is a value that goes up and down.
type Gauge struct{ vec *prometheus.GaugeVec }

// Set sets the value.
func (g Gauge) Set(v float64, labels ...string) { g.vec.WithLabelValues(labels...).Set(v) }

// Timing is a distribution of durations.
type Timing struct{ vec *prometheus.HistogramVec }

// Observe adds a duration.
func (t Timing) Observe(d time.Duration, labels ...string) {
	t.vec.WithLabelValues(labels...).Observe(d.Seconds())
}

// Age is how long ago the newest of something was: it grows by itself between
// the calls of Newest, so that a part that stands still shows.
type Age struct {
	desc  *prometheus.Desc
	clock clock.Clock
	mu    *sync.Mutex
	at    map[string]int64 // µs, by labels joined
}

func newAge(c clock.Clock, name, help string, labels ...string) Age {
	return Age{desc: prometheus.NewDesc(name, help, labels, nil), clock: c, mu: new(sync.Mutex), at: map[string]int64{}}
}

const labelSeparator = "\xff" // no UTF-8 text holds it

// Newest sets the instant (µs since 1970 UTC) of the newest one; an older one
// than before counts for nothing.
func (a Age) Newest(us int64, labels ...string) {
	k := strings.Join(labels, labelSeparator)
	a.mu.Lock()
	defer a.mu.Unlock()
	if old, ok := a.at[k]; !ok || us > old {
		a.at[k] = us
	}
}

// Forget drops a series, for a part that this process no longer runs.
func (a Age) Forget(labels ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.at, strings.Join(labels, labelSeparator))
}

// Describe implements prometheus.Collector.
func (a Age) Describe(ch chan<- *prometheus.Desc) { ch <- a.desc }

// Collect implements prometheus.Collector.
func (a Age) Collect(ch chan<- prometheus.Metric) {
	now := a.clock.Now().UnixMicro()
	type series struct {
		key string
		at  int64
	}
	a.mu.Lock()
	all := make([]series, 0, len(a.at))
	for k, at := range a.at {
		all = append(all, series{k, at})
	}
	a.mu.Unlock()
	slices.SortFunc(all, func(x, y series) int { return strings.Compare(x.key, y.key) })
	for _, s := range all {
		age := time.Duration(now-s.at) * time.Microsecond
		ch <- prometheus.MustNewConstMetric(a.desc, prometheus.GaugeValue, age.Seconds(), strings.Split(s.key, labelSeparator)...)
	}
}
