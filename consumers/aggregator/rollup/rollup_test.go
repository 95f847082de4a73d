package rollup

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"penstock/consumers/aggregator/ledger"
	"penstock/schemas/event"
	"penstock/schemas/window"
)

func draw(t *rapid.T) event.Request {
	hour := int64(time.Hour / time.Microsecond)
	at := rapid.SampledFrom([]int64{-1, 0, 1, hour - 1, hour, hour + 1, 5 * hour}).Draw(t, "hour") +
		rapid.SampledFrom([]int64{0, 1, 9_999_999, 10_000_000}).Draw(t, "µs")
	name := func(label string) string {
		return rapid.SampledFrom([]string{"", "a", "b", "ab", "é", "user/00000001", "user/00000002"}).Draw(t, label)
	}
	delay := func(label string) int64 {
		return rapid.SampledFrom([]int64{event.NullInt, event.NullInt, -1, 0, 255, 256, 1_000_000, longest, longest + 1, math.MaxInt64}).Draw(t, label)
	}
	r := event.NewRequest(at)
	r.User, r.Owner = name("user"), name("owner")
	r.FromComponent, r.ToComponent = name("from"), name("to")
	r.FromSite, r.ToSite = name("from site"), name("to site")
	r.Wait, r.Service, r.Network = delay("wait"), delay("service"), delay("network")
	r.Status = rapid.SampledFrom([]int32{event.NullStatus, 0, 200, 404, 499, 500}).Draw(t, "status")
	r.Op = event.Op(rapid.IntRange(0, 1).Draw(t, "op"))
	r.Bytes = rapid.Int64Range(0, 1000).Draw(t, "bytes")
	if rapid.IntRange(0, 2).Draw(t, "task") == 0 {
		r.Outcome = rapid.SampledFrom([]string{"done", "cancelled", "failed", "odd"}).Draw(t, "outcome")
		r.ToServer = rapid.SampledFrom([]string{"", "east-1", "east-2"}).Draw(t, "store")
		r.N, r.K = rapid.SampledFrom([]uint8{0, 1, 6, 12, 255}).Draw(t, "n"), rapid.SampledFrom([]uint8{0, 1, 3}).Draw(t, "k")
		r.Bytes = rapid.SampledFrom([]int64{0, 1, 499_999, 500_000, event.MaxRequestBytes}).Draw(t, "chunk")
	}
	if rapid.IntRange(0, 2).Draw(t, "served") == 0 {
		r.ToServer = rapid.SampledFrom([]string{"", "east-1", "web-1", "web-2"}).Draw(t, "server")
		r.Class = rapid.SampledFrom([]string{"", "static", "dynamic"}).Draw(t, "class of request")
		r.Overdue = delay("overdue")
	}
	if rapid.Bool().Draw(t, "placed") {
		r.Lat = rapid.SampledFrom([]float32{-90, 0, 48.2, 90}).Draw(t, "lat")
		r.Lon = rapid.SampledFrom([]float32{-180, 0, 11.5}).Draw(t, "lon")
	}
	return r
}

// texts are the keys of a table.
func texts(t *window.Table) string {
	var b strings.Builder
	for i := range t.Keys {
		fmt.Fprintln(&b, t.Keys[i].Codes, t.Keys[i].Values)
	}
	return b.String()
}

func drawGauge(t *rapid.T) event.Gauge {
	g := event.NewGauge(draw(t).Time)
	g.Site, g.Server = "a", rapid.SampledFrom([]string{"", "east-1", "objects"}).Draw(t, "server")
	known := rapid.SampledFrom([]int64{event.NullInt, 0, 3, 100})
	g.Backlog = known.Draw(t, "backlog")
	if rapid.Bool().Draw(t, "dispatcher") {
		g.Site = rapid.SampledFrom([]string{"a", "b"}).Draw(t, "site")
		g.Queued, g.InService, g.PotentialOverdue = known.Draw(t, "queued"), known.Draw(t, "in service"), known.Draw(t, "potential")
		g.QueuedStatic, g.QueuedDynamic = known.Draw(t, "static"), known.Draw(t, "dynamic")
	}
	return g
}

// TestSumsAgreeWithPlainOnes adds random rows in random batches, takes tables
// at random points, and merges them.
func TestSumsAgreeWithPlainOnes(t *testing.T) {
	for _, group := range window.Groups {
		t.Run(group, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				s, err := New(group, window.Widths{})
				if err != nil {
					t.Fatal(err)
				}
				want := newPlain()
				var excluded, wantExcluded int64
				panes := map[string][]*window.Table{}
				take := func() {
					for _, p := range s.Tables() {
						whole := window.Merge(p.Rollup, p)
						if !reflect.DeepEqual(whole.Start, p.Start) || !reflect.DeepEqual(whole.Ints, p.Ints) || texts(whole) != texts(p) {
							t.Fatalf("a pane is not sorted: %+v, sorted %+v", p, whole)
						}
						panes[p.Rollup.Name] = append(panes[p.Rollup.Name], p)
					}
					if s.Size() != 0 {
						t.Fatalf("size %d after it was emptied", s.Size())
					}
				}
				classes := rapid.SampledFrom([]ledger.Class{ledger.Counted, ledger.Counted, ledger.Counted, ledger.Late, ledger.Quarantined})
				for range rapid.IntRange(1, 6).Draw(t, "batches") {
					var b event.Requests
					var class []ledger.Class
					if rapid.IntRange(0, 3).Draw(t, "kind") == 0 {
						var q event.Gauges
						for range rapid.IntRange(1, 5).Draw(t, "gauges") {
							g, c := drawGauge(t), classes.Draw(t, "class")
							q.Append(&g)
							class = append(class, c)
							want.gauge(group, &g, c)
						}
						s.AddGauges(&q, class)
						continue
					}
					for range rapid.IntRange(0, 12).Draw(t, "rows") {
						r := draw(t)
						c := classes.Draw(t, "class")
						b.Append(&r)
						class = append(class, c)
						wantExcluded += want.add(group, &r, c)
					}
					excluded += s.Add(&b, class)
					if rapid.Bool().Draw(t, "flush") {
						take()
					}
				}
				take()
				var merged []*window.Table
				for _, r := range window.Of(group) {
					merged = append(merged, window.Merge(r, panes[r.Name]...))
				}
				got, err := cells(merged)
				if err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(got, want) {
					t.Fatalf("got %v\nwant %v", got, want)
				}
				if excluded != wantExcluded {
					t.Fatalf("excluded %d, want %d", excluded, wantExcluded)
				}
			})
		})
	}
}

// TestMergedHistogramsKeepQuantiles is P19: the p99 over cells is that of the
// pooled samples within the error of the histogram, also with one slow cell in
// ten.
func TestMergedHistogramsKeepQuantiles(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var panes []*window.Table
	var pooled []int64
	for cell := range 10 {
		s := newFast()
		var b event.Requests
		for range 2000 {
			us := int64(1000 + rng.ExpFloat64()*20_000)
			if cell == 7 {
				us *= 25
			}
			r := event.NewRequest(1)
			r.ToComponent, r.Service = "search", us
			b.Append(&r)
			pooled = append(pooled, us)
		}
		s.Add(&b, make([]ledger.Class, b.Len()))
		panes = append(panes, s.Tables()...)
	}
	whole := window.Merge(window.Delay, panes...)
	if whole.Len() != 1 {
		t.Fatalf("%d rows, want 1", whole.Len())
	}
	slices.Sort(pooled)
	for _, q := range []float64{0.5, 0.9, 0.99, 0.999} {
		h := whole.HistColumn("service")[0]
		got, ok := h.Quantile(q)
		want := pooled[int(q*float64(len(pooled)-1))]
		if off := math.Abs(float64(got-want)) / float64(want); !ok || off > 0.008 {
			t.Errorf("quantile %v: %d, pooled %d: off by %.2f %%", q, got, want, 100*off)
		}
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	for _, group := range window.Groups {
		s, _ := New(group, window.Widths{})
		b, class := day(rand.New(rand.NewPCG(1, 1)), people(100), 4096, 0)
		for range 4 { // The last samples of a batch are counted with the next one's.
			s.Add(b, class)
		}
		if n := testing.AllocsPerRun(20, func() { s.Add(b, class) }); n > 0 {
			t.Errorf("%s: %v allocations per batch", group, n)
		}
	}
}

// Tasks and gauges allocate nothing either, whatever their order.
func TestTasksAllocateNothing(t *testing.T) {
	for _, group := range window.Groups {
		s, _ := New(group, window.Widths{})
		b, class := tasks(rand.New(rand.NewPCG(1, 1)), 4096)
		var q event.Gauges
		for i := range 16 {
			g := event.NewGauge(int64(i) * 1_000_000)
			g.Site, g.Server, g.Backlog = "us-east", "objects", int64(i)
			q.Append(&g)
		}
		add := func() {
			s.Add(b, class)
			s.AddGauges(&q, class[:q.Len()])
		}
		for range 4 {
			add()
		}
		if n := testing.AllocsPerRun(20, add); n > 0 {
			t.Errorf("%s: %v allocations per batch", group, n)
		}
	}
}

// Requests at servers and their queues allocate nothing either.
func TestServersAllocateNothing(t *testing.T) {
	for _, group := range window.Groups {
		s, _ := New(group, window.Widths{})
		b, class := served(rand.New(rand.NewPCG(1, 1)), 4096)
		var q event.Gauges
		for i := range 16 {
			g := event.NewGauge(int64(i) * 100_000)
			g.Site, g.Server, g.Queued, g.InService, g.PotentialOverdue = "us-east", [...]string{"web-1", "web-2"}[i%2], 3, 16, 1000
			q.Append(&g)
		}
		add := func() {
			s.Add(b, class)
			s.AddGauges(&q, class[:q.Len()])
		}
		for range 4 {
			add()
		}
		if n := testing.AllocsPerRun(20, add); n > 0 {
			t.Errorf("%s: %v allocations per batch", group, n)
		}
	}
}

func TestNoSuchGroup(t *testing.T) {
	if s, err := New("slow", window.Widths{}); err == nil {
		t.Fatalf("got %v for a group that isn't", s)
	}
}
