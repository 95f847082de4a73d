package spanfile

import (
	"context"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"penstock/infra/shareddata"
	"penstock/producers/otlp/join"
	"penstock/producers/recording"
	"penstock/schemas/event"
)

// edge is a caller and a callee.
type edge struct{ from, to string }

func (e edge) String() string { return e.from + "_" + e.to }

// delays are what a minute's calls took on one edge, in µs.
type delays struct{ whole, service []int64 }

type minute struct {
	calls int
	edges map[edge]*delays
	stats join.Stats
}

// minutes are those that have been read: it takes a while with the race detector.
var minutes = map[string]minute{}

func readMinute(t *testing.T, names ...string) (m minute) {
	t.Helper()
	key := strings.Join(names, " ")
	if m, ok := minutes[key]; ok {
		return m
	}
	m = readMinutes(t, names...)
	minutes[key] = m
	return m
}

func readMinutes(t *testing.T, names ...string) minute {
	t.Helper()
	m := minute{edges: map[edge]*delays{}}
	var last int64
	for i, n := range names {
		names[i] = filepath.Join(shareddata.Dir(t, "traces-nezha"), "ob_2022-08-22_"+n+"_trace.csv.gz")
	}
	st, err := Read(context.Background(), names, Options{Bad: func(b recording.BadLine) { t.Error(&b) }}, func(r *event.Request) error {
		if r.Time < last {
			t.Fatalf("call at %d after one at %d", r.Time, last)
		}
		last = r.Time
		m.calls++
		e := edge{r.FromComponent, r.ToComponent}
		if m.edges[e] == nil {
			m.edges[e] = &delays{}
		}
		if r.Service == event.NullInt || r.Network == event.NullInt {
			t.Errorf("%s: a call without both halves", e)
		}
		m.edges[e].whole = append(m.edges[e].whole, r.Service+r.Network)
		m.edges[e].service = append(m.edges[e].service, r.Service)
		return r.Check()
	})
	if err != nil {
		t.Fatal(err)
	}
	m.stats = st
	return m
}

func median(v []int64) float64 {
	slices.Sort(v)
	n := len(v)
	return float64(v[(n-1)/2]+v[n/2]) / 2
}

// sourceDelays reads what the callers' proxies saw in one minute, seconds by edge.
func sourceDelays(t *testing.T, at string) map[string]float64 {
	t.Helper()
	rows, out := nezhaRows(t, "source_50"), map[string]float64{}
	for _, row := range rows[1:] {
		if !strings.HasPrefix(row[0], at) {
			continue
		}
		for i, cell := range row[2:] {
			if cell == "" {
				continue // no traffic: unknown, not 0
			}
			v, err := strconv.ParseFloat(cell, 64)
			if err != nil {
				t.Fatal(err)
			}
			out[rows[0][i+2]] = v
		}
	}
	if len(out) == 0 {
		t.Fatalf("no row at %s", at)
	}
	return out
}

// Three minutes of OnlineBoutique: 13 edges, every call, every span in its account,
// and delays as the proxies of the mesh saw them.
func TestOnlineBoutique(t *testing.T) {
	for _, c := range []struct {
		name, at            string
		spans, calls, roots int64
	}{
		{"03_53", "2022-08-22 03:53:1", 23_019, 5_508, 497},
		{"03_54", "2022-08-22 03:54:2", 22_586, 5_406, 503},
		{"03_55", "", 16_833, 4_064, 363},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := readMinute(t, c.name)
			t.Log(m.stats.Account.String())
			a := m.stats.Account
			if m.stats.Read != c.spans || a.Sum() != c.spans {
				t.Errorf("read %d, accounted for %d, expected %d", m.stats.Read, a.Sum(), c.spans)
			}
			if int64(m.calls) != c.calls || a[join.Called] != c.calls || a[join.Half] != c.calls {
				t.Errorf("%d calls, account %s; expected %d with both halves", m.calls, &a, c.calls)
			}
			if a[join.Root] != c.roots || a[join.Inside] != c.spans-2*c.calls-c.roots {
				t.Errorf("account %s; expected %d roots and the rest inside", &a, c.roots)
			}
			if len(m.edges) != 13 {
				t.Errorf("%d edges, expected 13", len(m.edges))
			}
			for e := range m.edges {
				if e.from == e.to {
					t.Errorf("%s: spans in one pod are no edge", e)
				}
			}
			if c.at != "" {
				compareSource(t, &m, sourceDelays(t, c.at))
			}
		})
	}
}

func compareSource(t *testing.T, m *minute, source map[string]float64) {
	t.Helper()
	compared := 0
	for e, d := range m.edges {
		want, ok := source[e.String()]
		if !ok {
			t.Logf("%-45s %5d calls, median %7.0f µs, the proxies have none", e, len(d.whole), median(d.whole))
			continue
		}
		ratio := median(d.whole) / (want * 1e6)
		t.Logf("%-45s %5d calls, median %7.0f µs, %.2f of the proxies'", e, len(d.whole), median(d.whole), ratio)
		if len(d.whole) >= 100 {
			compared++
			if ratio > 1.5 || ratio < 1/1.5 {
				t.Errorf("%s: median is %.2f of the proxies', expected within 1.5", e, ratio)
			}
		}
	}
	if compared < 7 {
		t.Errorf("%d edges with 100 calls or more, expected at least 7", compared)
	}
}

// The frontend's CPU is taken from it in the third minute: its own clients wait,
// and its callees serve as before. Service is the callee's own word.
func TestSlowCallerIsNotItsCallees(t *testing.T) {
	before, after := readMinute(t, "03_54"), readMinute(t, "03_55")
	slower := 0
	for e, d := range after.edges {
		b := before.edges[e]
		if b == nil {
			t.Fatalf("%s: not in the minute before", e)
		}
		service := median(d.service) / median(b.service)
		whole := median(d.whole) / median(b.whole)
		t.Logf("%-45s %5d calls, service %.2f, round trip %.2f of the minute before", e, len(d.whole), service, whole)
		if len(d.whole) >= 100 && (service > 1.5 || service < 1/1.5) {
			t.Errorf("%s: service is %.2f of the minute before", e, service)
		}
		if e.from == "frontend" && whole > 3 {
			slower++
		}
	}
	if slower < 5 {
		t.Errorf("%d edges of the frontend are slower, expected at least 5: the fault must be seen somewhere", slower)
	}
}

// Eight traces stand in two files, with 373 spans that are the same in both: read
// together, in either order, they are counted once.
func TestTracesInTwoFiles(t *testing.T) {
	for _, names := range [][]string{{"03_54", "03_55"}, {"03_55", "03_54"}} {
		all := readMinute(t, names...)
		a := all.stats.Account
		if all.calls != 5_406+4_064-90 || a[join.Duplicate] != 373 || a[join.Orphan] != 0 || all.stats.Traces != 503+363-8 {
			t.Errorf("%d calls, %d traces, %s", all.calls, all.stats.Traces, &a)
		}
		if a.Sum() != 22_586+16_833 {
			t.Errorf("%s: not all spans", &a)
		}
	}
}
