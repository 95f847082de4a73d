package bench

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"penstock/infra/bus"
)

// sizes are the numbers of things in the benchmarks.
const (
	dayRows     = 2_000_000
	zipfOwners  = 1_000_000
	thinHours   = 2000
	jsonSynced  = 5_000
	jsonRelaxed = 100_000
)

// day is the paper's day, made once.
func day(b *testing.B) *rows {
	if madeDay == nil {
		madeDay = paperDay(b, dayRows)
	}
	return madeDay
}

var madeDay *rows

func report(b *testing.B, m took, unit string) {
	b.ReportMetric(0, "ns/op") // of no meaning beside the others
	b.ReportMetric(m.rate(), unit+"/s")
	b.ReportMetric(m.cpu.Seconds()*1e6/m.work, "cpu-µs/"+unit[:len(unit)-1])
	b.ReportMetric(m.idle(), unit+"/s-idle")
}

// repeats is how often a figure is measured; the median counts, for others use
// the machine too.
const repeats = 3

// median returns the run whose figure is in the middle, and the greatest figure.
func median[T any](runs []T, figure func(T) float64) (T, float64) {
	slices.SortFunc(runs, func(a, b T) int { return cmp.Compare(figure(a), figure(b)) })
	return runs[len(runs)/2], figure(runs[len(runs)-1])
}

// aggregation measures a bus of its own from Send to commits, and returns what
// was on it if that is wanted.
func aggregation(b *testing.B, sync bus.Sync, s *rows, every time.Duration, keep bool) (m took, bytes uint64, msgs []bus.Msg) {
	l, stop := start(b, openBus(b, sync))
	defer stop()
	m, bytes = l.aggregated(s, every)
	if keep {
		msgs = l.messages()
	}
	return m, bytes, msgs
}

// BenchmarkDay is the paper's day from Send to commits, and the same messages
// raw, in turns.
func BenchmarkDay(b *testing.B) {
	s := day(b)
	type pair struct {
		ours, raw took
		msgs      int
	}
	var bytes uint64
	for b.Loop() {
		var pairs []pair
		for range repeats {
			var msgs []bus.Msg
			var p pair
			p.ours, bytes, msgs = aggregation(b, bus.SyncAlways, s, 0, true)
			p.raw, p.msgs = raw(b, bus.SyncAlways, msgs, len(s.list)), len(msgs)
			pairs = append(pairs, p)
		}
		m, best := median(pairs, func(p pair) float64 { return p.ours.rate() })
		report(b, m.ours, "rows")
		results.add(line{
			name: "paper's day, synced, aggregated", figure: m.ours.rate(), unit: "rows/s", least: 1e6, aim: 3e6,
			note: fmt.Sprintf("best of %d: %s; %s", repeats, figure(best, "rows/s"), m.ours.note()),
		})
		m, best = median(pairs, func(p pair) float64 { return 100 * p.ours.rate() / p.raw.rate() })
		results.add(line{
			name: "  of the same messages raw", figure: 100 * m.ours.rate() / m.raw.rate(), unit: "%", least: 25,
			note: fmt.Sprintf("best %.0f %%; %d messages, %s raw, %.3f µs of processor a row", best, m.msgs, figure(m.raw.rate(), "rows/s"), m.raw.cpu.Seconds()*1e6/m.raw.work),
		})
	}
	b.ReportMetric(float64(bytes)/float64(len(s.list)), "B/row")
}

// BenchmarkDayInHours has a barrier after each hour, as a replay.
func BenchmarkDayInHours(b *testing.B) {
	measureRows(b, day(b), time.Hour, line{name: "  with a barrier an hour"})
}

// BenchmarkZipf is a million owners.
func BenchmarkZipf(b *testing.B) {
	measureRows(b, zipfRows(zipfOwners, dayRows), 0, line{name: "a million owners, Zipf 1", least: 4e5, aim: 1e6})
}

// measureRows measures rows from Send to commits for a line of the table.
func measureRows(b *testing.B, s *rows, every time.Duration, l line) {
	for b.Loop() {
		var runs []took
		for range repeats {
			m, _, _ := aggregation(b, bus.SyncAlways, s, every, false)
			runs = append(runs, m)
		}
		m, best := median(runs, took.rate)
		report(b, m, "rows")
		l.figure, l.unit, l.note = m.rate(), "rows/s", fmt.Sprintf("best of %d: %s; %s", repeats, figure(best, "rows/s"), m.note())
		results.add(l)
	}
}

// BenchmarkJSON is ours against one JSON message an event, in turns.
func BenchmarkJSON(b *testing.B) {
	s := day(b)
	for _, c := range []struct {
		name  string
		sync  bus.Sync
		n     int
		least float64
	}{{"synced", bus.SyncAlways, jsonSynced, 50}, {"not synced", bus.SyncInterval, jsonRelaxed, 10}} {
		b.Run(c.name, func(b *testing.B) {
			type pair struct{ ours, json took }
			for b.Loop() {
				var pairs []pair
				for range repeats {
					m, _, _ := aggregation(b, c.sync, s, 0, false)
					pairs = append(pairs, pair{m, jsonEvents(b, c.sync, s, c.n)})
				}
				m, best := median(pairs, func(p pair) float64 { return p.ours.rate() / p.json.rate() })
				ratio := m.ours.rate() / m.json.rate()
				b.ReportMetric(ratio, "ratio")
				results.add(line{
					name: "against JSON events, " + c.name, figure: ratio, unit: "×", least: c.least,
					note: fmt.Sprintf("best of %d: %.0f ×; %s against %s; of processor time %.0f ×", repeats, best,
						figure(m.ours.rate(), "rows/s"), figure(m.json.rate(), "rows/s"), m.ours.idle()/m.json.idle()),
				})
			}
		})
	}
}

// BenchmarkMemory is what an aggregator's state takes.
func BenchmarkMemory(b *testing.B) {
	for _, c := range []struct {
		name string
		rows func() *rows
	}{
		{"paper's day", func() *rows { return day(b) }},
		{"Zipf 1", func() *rows { return zipfRows(zipfOwners, dayRows/2) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				for _, g := range groups() {
					s := stateMemory(b, g, c.rows())
					b.ReportMetric(s.heap/s.estimate, "heap/estimate-"+g)
					results.add(line{
						name: "memory of " + g + ", " + c.name, figure: s.heap / s.estimate, unit: "× its panes", least: 1.5, lower: true,
						note: fmt.Sprintf("%.1f MB of heap where the state counts %.1f MB; it flushes at %.1f MB", s.heap/1e6, s.estimate/1e6, s.most/1e6),
					})
				}
			}
		})
	}
	b.Run("runs", func(b *testing.B) {
		for b.Loop() {
			heap := runMemory(b, 10_000)
			b.ReportMetric(heap, "B/run")
			results.add(line{name: "memory of a live run", figure: heap, unit: "bytes", least: 4096, lower: true})
		}
	})
}

// BenchmarkThinWindows is the cost of a window with ten rows in lockstep.
func BenchmarkThinWindows(b *testing.B) {
	for _, c := range []struct {
		parts int
		least float64
	}{{1, 5}, {8, 15}} {
		b.Run(fmt.Sprint("partitions=", c.parts), func(b *testing.B) {
			for b.Loop() {
				m := thinWindows(b, bus.SyncAlways, c.parts, thinHours)
				ms := m.wall.Seconds() * 1e3 / m.work
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(ms, "ms/window")
				b.ReportMetric(m.cpu.Seconds()*1e3/m.work, "cpu-ms/window")
				results.add(line{
					name: fmt.Sprintf("a thin window in lockstep, partitions %d", c.parts), figure: ms, unit: "ms", least: c.least, lower: true,
					note: fmt.Sprintf("%.2f ms of processor", m.cpu.Seconds()*1e3/m.work),
				})
			}
		})
	}
}

// TestTheBenchmarksWork runs each of them with few rows.
func TestTheBenchmarksWork(t *testing.T) {
	s := paperDay(t, 10_000)
	// First, while nothing else comes and goes on the heap.
	t.Run("memory", func(t *testing.T) {
		for _, g := range groups() {
			if m := stateMemory(t, g, s); m.heap <= 0 || m.estimate <= 0 {
				t.Errorf("group %s: %+v", g, m)
			}
		}
		if heap := runMemory(t, 300); heap <= 0 {
			t.Errorf("a run takes %v bytes", heap)
		}
	})
	t.Run("day", func(t *testing.T) {
		l, stop := start(t, openBus(t, bus.SyncInterval))
		defer stop()
		m, bytes := l.aggregated(s, 0)
		if m.cpu <= 0 || m.wall <= 0 || bytes == 0 {
			t.Errorf("took %+v for %d bytes", m, bytes)
		}
		msgs := l.messages()
		if len(msgs) < partitions+1 {
			t.Errorf("%d messages, expected at least one a partition and a mark", len(msgs))
		}
		raw(t, bus.SyncInterval, msgs, len(s.list))
	})
	t.Run("hours", func(t *testing.T) {
		l, stop := start(t, openBus(t, bus.SyncInterval))
		defer stop()
		l.aggregated(s, 10*time.Minute)
	})
	t.Run("zipf", func(t *testing.T) {
		z := zipfRows(2000, 10_000)
		l, stop := start(t, openBus(t, bus.SyncInterval))
		defer stop()
		l.aggregated(z, 0)
	})
	t.Run("json", func(t *testing.T) { jsonEvents(t, bus.SyncInterval, s, 300) })
	t.Run("windows", func(t *testing.T) { thinWindows(t, bus.SyncInterval, 2, 12) })
}
