package topology

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"penstock/consumers/executor/coder"
	"penstock/consumers/executor/coder/codes"
	"penstock/consumers/executor/coder/queue"
)

// coderMeter turns what a coder counts, and how it stands, into metrics.
type coderMeter struct {
	events  *prometheus.CounterVec
	figures map[string]*prometheus.Desc
	store   map[string]*prometheus.Desc
	coder   *coder.Coder // nil until it is open
	chooser *codes.Chooser
}

// newCoderMeter registers the metrics.
func newCoderMeter(r prometheus.Registerer, name string, chooser *codes.Chooser) (*coderMeter, error) {
	own := prometheus.Labels{"coder": name}
	m := &coderMeter{
		chooser: chooser,
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "penstock", Name: "coder_events_total", ConstLabels: own,
			Help: "What a coder found, replaced, repaired, settled, gave up, deleted or did again.",
		}, []string{"event", "reason"}),
		figures: map[string]*prometheus.Desc{}, store: map[string]*prometheus.Desc{},
	}
	for name, help := range map[string]string{
		"objects": "Objects.", "bytes": "Bytes of objects.", "uploads": "Multipart uploads under way.",
		"unintended_versions": "Versions that are not in their intended coding; falls to 0.",
		"unreadable_versions": "Versions of which too few strips are whole, by the last scrub and by reads since: restore them from elsewhere.",
		"blobs_to_delete":     "Blobs that nothing names any more and that are still to be deleted, or deleted once more as a request to write them may yet be carried out.",
		"waiting_requests":    "Requests that wait for a connection.", "smoothed_backlog": "The backlog by which codes are chosen.",
		"connections_in_use": "Connections that carry a chunk.", "connections": "Connections that there are.",
		"table_epoch": "Epoch of the table in force; 0: the default.",
		"read_n":      "Chunks that a read asks for now.", "read_k": "Chunks that a read needs now.",
	} {
		m.figures[name] = prometheus.NewDesc("penstock_coder_"+name, help, nil, own)
	}
	for name, help := range map[string]string{
		"store_absent": "1 if the store has no owner mark though chunks are in it: mount its disk, or say penstock coder store-is-new.",
		"store_dead":   "1 if the store is asked last, as its tasks fail.", "store_delay_seconds": "Smoothed delay of a chunk.",
	} {
		m.store[name] = prometheus.NewDesc("penstock_coder_"+name, help, []string{"store"}, own)
	}
	if err := r.Register(m.events); err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	return m, nil
}

// watch registers how the coder stands.
func (m *coderMeter) watch(r prometheus.Registerer, c *coder.Coder) error {
	m.coder = c
	if err := r.Register(m); err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	return nil
}

// Count implements coder.Metrics.
func (m *coderMeter) Count(e coder.Event, reason string, n int64) {
	m.events.WithLabelValues(string(e), reason).Add(float64(n))
}

// Describe implements prometheus.Collector.
func (m *coderMeter) Describe(out chan<- *prometheus.Desc) {
	for _, all := range []map[string]*prometheus.Desc{m.figures, m.store} {
		for _, d := range all {
			out <- d
		}
	}
}

// Collect implements prometheus.Collector.
func (m *coderMeter) Collect(out chan<- prometheus.Metric) {
	s, err := m.coder.Stats(context.Background())
	if err != nil {
		return // It is closing: what it was is in the last answer.
	}
	now := m.chooser.State()
	code := now.Choose(queue.Read, max(1, s.Limit-s.Connections))
	for name, v := range map[string]float64{
		"objects": float64(s.Objects), "bytes": float64(s.Bytes), "uploads": float64(s.Uploads), "unintended_versions": float64(s.Unintended), "unreadable_versions": float64(s.Unreadable),
		"blobs_to_delete": float64(s.Deletes), "waiting_requests": float64(s.Backlog), "smoothed_backlog": now.Backlog,
		"connections_in_use": float64(s.Connections), "connections": float64(s.Limit), "table_epoch": float64(now.Epoch),
		"read_n": float64(code.N), "read_k": float64(code.K),
	} {
		out <- prometheus.MustNewConstMetric(m.figures[name], prometheus.GaugeValue, v)
	}
	for _, st := range s.Stores {
		dead, absent := 0.0, 0.0
		if st.Dead {
			dead = 1
		}
		if st.Absent {
			absent = 1
		}
		out <- prometheus.MustNewConstMetric(m.store["store_absent"], prometheus.GaugeValue, absent, st.Name)
		out <- prometheus.MustNewConstMetric(m.store["store_dead"], prometheus.GaugeValue, dead, st.Name)
		out <- prometheus.MustNewConstMetric(m.store["store_delay_seconds"], prometheus.GaugeValue, st.Delay.Seconds(), st.Name)
	}
}
