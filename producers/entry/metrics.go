package entry

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// kind is what became of a request.
type kind uint8

const (
	kindServed      kind = iota // by a server of the own site
	kindForwarded               // to a peer, and answered by it
	kindRedirected              // 307
	kindMisdirected             // 421 to a peer, 508 to one that is not known
	kindRefused                 // the request's own fault
	kindFailed                  // nobody answered, or not to the end
	kindAbandoned               // the client left
	kinds
)

var kindNames = [kinds]string{"served", "forwarded", "redirected", "misdirected", "refused", "failed", "abandoned"}

// metrics are bound to their labels beforehand, for a request pays for each
// look-up.
type metrics struct {
	requests       [kinds][6]prometheus.Counter // by the hundreds of the status; 0 is none
	seconds        [kinds]prometheus.Observer
	refused        *prometheus.CounterVec
	ignoredTotal   *prometheus.CounterVec
	connections    *prometheus.CounterVec
	open           prometheus.Gauge
	running        prometheus.Gauge
	tunnels        prometheus.Gauge
	failedAttempts prometheus.Counter
	misdirections  prometheus.Counter
	waits          prometheus.Counter
	holds          prometheus.Counter
	fallbacks      *prometheus.CounterVec
	probes         *prometheus.CounterVec
	picksBy        *prometheus.CounterVec
	picks          [][]prometheus.Counter // by component and site
}

// What became of probes.
const (
	probeSent    = "sent"
	probeFailed  = "failed"
	probeSkipped = "skipped"
)

// newMetrics makes the metrics of the entry point of a site. Two entry points of
// one site in one process count together.
func newMetrics(r prometheus.Registerer, site string) (*metrics, error) {
	labels := prometheus.Labels{"site": site}
	var faults []error
	counters := func(name, help string, by ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "penstock_entry_" + name, Help: help, ConstLabels: labels}, by)
		faults = append(faults, register(r, &c))
		return c
	}
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "penstock_entry_" + name, Help: help, ConstLabels: labels})
		faults = append(faults, register(r, &g))
		return g
	}
	requests := counters("requests_total", "Requests by what became of them and the first digit of the status.", "answer", "status")
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "penstock_entry_request_seconds", Help: "From a request's header to the end of its answer.", ConstLabels: labels,
		Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
	}, []string{"answer"})
	faults = append(faults, register(r, &seconds))
	m := &metrics{
		refused: counters("refused_total", "Answers of the entry point itself that are no redirect, by reason.", "reason"),
		ignoredTotal: counters("ignored_total",
			"What a request or the bus said and was not taken for true or usable; the request went on without it.", "what", "reason"),
		connections:    counters("connections_total", "Connections of clients by what became of them.", "outcome"),
		open:           gauge("connections", "Open connections of clients."),
		running:        gauge("requests_running", "Requests that are being answered."),
		tunnels:        gauge("tunnels", "Connections that have changed to another protocol."),
		failedAttempts: counters("failed_attempts_total", "Attempts that failed and were followed by another.").WithLabelValues(),
		misdirections:  counters("misdirections_total", "Answers of 421 that named another site.").WithLabelValues(),
		waits:          counters("moving_waits_total", "Pauses for owners that were being moved.").WithLabelValues(),
		holds:          counters("holds_total", "Writes that waited at the mover's gate.").WithLabelValues(),
		picksBy:        counters("picks_total", "Requests by component and the site that was chosen for them.", "to_component", "to_site"),
		fallbacks: counters("fallbacks_total",
			"Requests of which the chosen site failed, by why it did if another was tried, else by why none was.", "to_component", "tried", "reason"),
		probes: counters("probes_total", "Probes by what became of them, and why.", "to_component", "outcome", "reason"),
	}
	for k := range kinds {
		m.seconds[k] = seconds.WithLabelValues(kindNames[k])
		for i, class := range [...]string{"none", "1xx", "2xx", "3xx", "4xx", "5xx"} {
			m.requests[k][i] = requests.WithLabelValues(kindNames[k], class)
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("metrics of an entry point: %w", err)
	}
	return m, nil
}

// register takes over the collector that is there already: an entry point that
// is opened again goes on counting. Without a registry nobody asks.
func register[C prometheus.Collector](r prometheus.Registerer, c *C) error {
	if r == nil {
		return nil
	}
	err := r.Register(*c)
	var already prometheus.AlreadyRegisteredError
	if errors.As(err, &already) {
		if have, ok := already.ExistingCollector.(C); ok {
			*c = have
			return nil
		}
	}
	return err
}

func (m *metrics) observe(x *exchange, took time.Duration) {
	class := x.status / 100
	if class < 0 || class > 5 {
		class = 0
	}
	m.requests[x.kind][class].Inc()
	m.seconds[x.kind].Observe(took.Seconds())
	if x.reason != "" {
		m.refused.WithLabelValues(x.reason).Inc()
	}
}

// ofComponents binds what is counted for each request of a component.
func (m *metrics) ofComponents(components []*component, sites []Site) {
	for _, c := range components {
		by := make([]prometheus.Counter, len(sites))
		for i, s := range sites {
			by[i] = m.picksBy.WithLabelValues(c.name, s.Name)
		}
		m.picks = append(m.picks, by)
	}
}

func (m *metrics) picked(c *component, site int) { m.picks[c.index][site].Inc() }

func (m *metrics) fallback(c *component, tried bool, reason string) {
	m.fallbacks.WithLabelValues(c.name, strconv.FormatBool(tried), reason).Inc()
}

func (m *metrics) probe(c *component, outcome, reason string) {
	m.probes.WithLabelValues(c.name, outcome, reason).Inc()
}

func (m *metrics) ignored(what, reason string) { m.ignoredTotal.WithLabelValues(what, reason).Inc() }

func (m *metrics) connection(outcome string) { m.connections.WithLabelValues(outcome).Inc() }
