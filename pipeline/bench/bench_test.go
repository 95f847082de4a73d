package bench

import (
	"fmt"
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

// BenchmarkDay is the paper's day from Send to commits, and the same messages
// raw.
func BenchmarkDay(b *testing.B) {
	s := day(b)
	for b.Loop() {
		l, stop := start(b, openBus(b, bus.SyncAlways))
		m, bytes := l.aggregated(s, 0)
		msgs := l.messages()
		stop()
		r := raw(b, bus.SyncAlways, msgs, len(s.list))
		report(b, m, "rows")
		b.ReportMetric(float64(bytes)/m.work, "B/row")
		results.add(line{name: "paper's day, synced, aggregated", figure: m.rate(), unit: "rows/s", least: 1e6, aim: 3e6, note: m.note()})
		results.add(line{
			name: "  of the same messages raw", figure: 100 * m.rate() / r.rate(), unit: "%", least: 25,
			note: fmt.Sprintf("%d messages, %s raw, %.3f µs of processor a row", len(msgs), figure(r.rate(), "rows/s"), r.cpu.Seconds()*1e6/r.work),
		})
	}
}

// BenchmarkDayInHours has a barrier after each hour, as a replay.
func BenchmarkDayInHours(b *testing.B) {
	s := day(b)
	for b.Loop() {
		l, stop := start(b, openBus(b, bus.SyncAlways))
		m, _ := l.aggregated(s, time.Hour)
		stop()
		report(b, m, "rows")
		results.add(line{name: "  with a barrier an hour", figure: m.rate(), unit: "rows/s", note: m.note()})
	}
}

// BenchmarkZipf is a million owners.
func BenchmarkZipf(b *testing.B) {
	s := zipfRows(zipfOwners, dayRows)
	for b.Loop() {
		l, stop := start(b, openBus(b, bus.SyncAlways))
		m, bytes := l.aggregated(s, 0)
		stop()
		report(b, m, "rows")
		b.ReportMetric(float64(bytes)/m.work, "B/row")
		results.add(line{name: "a million owners, Zipf 1", figure: m.rate(), unit: "rows/s", least: 4e5, aim: 1e6, note: m.note()})
	}
}

// BenchmarkJSON is ours against one JSON message an event.
func BenchmarkJSON(b *testing.B) {
	s := day(b)
	for _, c := range []struct {
		name  string
		sync  bus.Sync
		n     int
		least float64
	}{{"synced", bus.SyncAlways, jsonSynced, 50}, {"not synced", bus.SyncInterval, jsonRelaxed, 10}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				l, stop := start(b, openBus(b, c.sync))
				m, _ := l.aggregated(s, 0)
				stop()
				j := jsonEvents(b, c.sync, s, c.n)
				b.ReportMetric(m.rate()/j.rate(), "ratio")
				results.add(line{
					name: "against JSON events, " + c.name, figure: m.rate() / j.rate(), unit: "×", least: c.least,
					note: fmt.Sprintf("%s against %s; of processor time %.0f ×", figure(m.rate(), "rows/s"), figure(j.rate(), "rows/s"), m.idle()/j.idle()),
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
						name: "memory of " + g + ", " + c.name, figure: s.heap / s.estimate, unit: "× pane bytes", least: 1.5, lower: true,
						note: fmt.Sprintf("%.1f MB of heap where the state says %.1f MB, most %.1f MB", s.heap/1e6, s.estimate/1e6, s.most/1e6),
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
	s := paperDay(t, 20_000)
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
		z := zipfRows(5000, 20_000)
		l, stop := start(t, openBus(t, bus.SyncInterval))
		defer stop()
		l.aggregated(z, 0)
	})
	t.Run("json", func(t *testing.T) { jsonEvents(t, bus.SyncInterval, s, 500) })
	t.Run("memory", func(t *testing.T) {
		for _, g := range groups() {
			if m := stateMemory(t, g, s); m.heap <= 0 || m.estimate <= 0 {
				t.Errorf("group %s: %+v", g, m)
			}
		}
		if heap := runMemory(t, 1000); heap <= 0 {
			t.Errorf("a run takes %v bytes", heap)
		}
	})
	t.Run("windows", func(t *testing.T) { thinWindows(t, bus.SyncInterval, 2, 30) })
}
