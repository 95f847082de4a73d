package follow

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are by glob, never by file: there may be thousands.
type metrics struct {
	lines     *prometheus.CounterVec // files, outcome
	bytes     *prometheus.CounterVec
	rows      *prometheus.CounterVec // files, mark
	rotations *prometheus.CounterVec // files, kind
	lost      *prometheus.CounterVec
	refused   *prometheus.CounterVec
	troubles  *prometheus.CounterVec
	files     *prometheus.GaugeVec // files, state
	open      prometheus.Gauge
	lagBytes  *prometheus.GaugeVec
	lagTime   *prometheus.GaugeVec

	tallies  map[string]*tally
	observed time.Time
}

// tally are the counters of a glob that are needed for each line.
type tally struct {
	bytes                              prometheus.Counter
	row, malformed, blank, noRow, part prometheus.Counter
	marks                              [3]prometheus.Counter
}

func (m *metrics) tally(pattern string) *tally {
	if t := m.tallies[pattern]; t != nil {
		return t
	}
	line := func(outcome string) prometheus.Counter { return m.lines.WithLabelValues(pattern, outcome) }
	t := &tally{
		bytes: m.bytes.WithLabelValues(pattern), row: line("row"), malformed: line("malformed"),
		blank: line("blank"), noRow: line("no-row"), part: line("part"),
	}
	for i, mark := range [...]string{"in-time", "late", "future"} {
		t.marks[i] = m.rows.WithLabelValues(pattern, mark)
	}
	m.tallies[pattern] = t
	return t
}

// observeEvery is how often the gauges are set.
const observeEvery = time.Second

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "penstock_follow_" + name, Help: help}, append([]string{"files"}, labels...))
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "penstock_follow_" + name, Help: help}, append([]string{"files"}, labels...))
	}
	m := &metrics{
		tallies:   map[string]*tally{},
		lines:     counter("lines_total", "Lines that were read, by what became of them: row, malformed, blank, no-row, part.", "outcome"),
		bytes:     counter("bytes_total", "Bytes of lines that were dealt with."),
		rows:      counter("rows_total", "Rows by mark: in-time, late, future.", "mark"),
		rotations: counter("rotations_total", "What was seen to happen to files: renamed, removed, truncated, shortened, and a rest or a whole found: copied, compressed, missed.", "kind"),
		lost:      counter("lost_total", "Files that were gone, or damaged, before they were read to their end."),
		refused:   counter("refused_total", "Files that were refused because none of their first lines could be read."),
		troubles:  counter("troubles_total", "Files and disks that could not be used when they were tried."),
		files:     gauge("files", "Files by state: live, moved, lost, copied, refused, done.", "state"),
		open:      prometheus.NewGauge(prometheus.GaugeOpts{Name: "penstock_follow_open_files", Help: "Files that are open."}),
		lagBytes:  gauge("lag_bytes", "Bytes that are there and were not read."),
		lagTime:   gauge("lag_seconds", "Age of the last row of the file that is furthest behind; 0 if all are read to their end."),
	}
	if r == nil {
		return m, nil
	}
	var errs []error
	for _, c := range []prometheus.Collector{
		m.lines, m.bytes, m.rotations, m.lost, m.refused, m.troubles, m.files, m.open, m.lagBytes, m.lagTime, m.rows,
	} {
		errs = append(errs, r.Register(c))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("follow metrics: %w", err)
	}
	return m, nil
}

// observe sets the gauges.
func (m *metrics) observe(f *Follower) {
	now := f.o.Clock.Now()
	if now.Sub(m.observed) < observeEvery {
		return
	}
	m.observed = now
	m.files.Reset()
	m.lagBytes.Reset()
	m.lagTime.Reset()
	open := 0
	oldest := map[string]int64{}
	for _, s := range f.streams {
		m.files.WithLabelValues(s.pattern, s.state.String()).Inc()
		if s.source != nil {
			open++
		}
		if !s.active() {
			continue
		}
		m.lagBytes.WithLabelValues(s.pattern).Add(float64(max(0, s.size-s.cursor.offset)))
		at, ok := oldest[s.pattern]
		if !ok {
			at = now.UnixMicro()
		}
		if s.behind && s.last > 0 {
			at = min(at, s.last)
		}
		oldest[s.pattern] = at
	}
	for pattern, at := range oldest {
		m.lagTime.WithLabelValues(pattern).Set(time.Duration((now.UnixMicro() - at) * 1000).Seconds())
	}
	m.open.Set(float64(open))
}
