package coding_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"strings"
	"testing"

	"penstock/consumers/decider/coding"
	"penstock/consumers/decider/coding/threshold"
	"penstock/schemas/control"
)

// moved takes the state of one policy over to another.
func moved(t testing.TB, from, to *coding.Policy) {
	t.Helper()
	var b bytes.Buffer
	if err := from.Snapshot(&b); err != nil {
		t.Fatal(err)
	}
	if err := to.Restore(&b); err != nil {
		t.Fatal(err)
	}
}

// busy is a policy that has seen a few windows.
func busy(t testing.TB, c coding.Config) (*coding.Policy, *world) {
	p, err := coding.New(c)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(4)
	for n := range 5 {
		for _, s := range c.Coders {
			w.serve(traffic{store: s.Name, op: "read", n: 6, k: 3, mb: 3, count: 80})
			w.serve(traffic{store: s.Name, op: "write", n: 2, k: 1, mb: 1, count: 80})
		}
		step(t, p, w, n, act())
	}
	return p, w
}

func TestASnapshotIsWholeOrRefused(t *testing.T) {
	p, _ := busy(t, coding.Config{Coders: []coding.Coder{{Name: "a"}, {Name: "b"}}})
	var b bytes.Buffer
	if err := p.Snapshot(&b); err != nil {
		t.Fatal(err)
	}
	body := b.Bytes()
	try := func(what string, body []byte) {
		q, err := coding.Parse(p.Config())
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Restore(bytes.NewReader(body)); !errors.Is(err, coding.ErrSnapshot) {
			t.Errorf("%s: got %v, expected ErrSnapshot", what, err)
		}
	}
	try("nothing", nil)
	try("another format", append([]byte("x"), body...))
	for _, n := range []int{20, len(body) / 3, len(body) - 1} {
		try("cut off", body[:n])
	}
	for _, at := range []int{25, len(body) / 2, len(body) - 5} {
		other := bytes.Clone(body)
		other[at] ^= 0x10
		try("a bit flipped", other)
	}
}

// After a restart between any two windows the same is decided.
func TestARestartChangesNothing(t *testing.T) {
	c := coding.Config{Coders: []coding.Coder{{Name: "a"}, {Name: "b"}}, History: 3}
	one, _ := coding.New(c)
	two, _ := coding.New(c)
	w, v := newWorld(6), newWorld(6)
	for n := range 8 {
		for _, x := range []*world{w, v} {
			x.serve(traffic{store: "a", op: "read", n: 6, k: 3, mb: 3, count: 60 + 10*n})
			x.serve(traffic{store: "b", op: "write", n: 2, k: 1, mb: 1, count: 100 * (n % 3)})
		}
		a, b := step(t, one, w, n, act()), step(t, two, v, n, act())
		if x, y := printed(n, a), printed(n, b); x != y {
			t.Fatalf("%s\nafter a restart\n%s", x, y)
		}
		two = restarted(t, two)
		if one.Digest() != two.Digest() {
			t.Fatal("digests differ")
		}
	}
}

// A snapshot is read under another configuration: what still fits is kept.
func TestASnapshotOfAnEarlierConfiguration(t *testing.T) {
	p, w := busy(t, coding.Config{Coders: []coding.Coder{{Name: "a"}, {Name: "b"}}})
	for name, c := range map[string]coding.Config{
		"another order and one more": {Coders: []coding.Coder{{Name: "c"}, {Name: "b"}, {Name: "a"}}},
		"one less":                   {Coders: []coding.Coder{{Name: "a"}}},
		"another history":            {Coders: []coding.Coder{{Name: "a"}}, History: 2},
		"another width":              {Coders: []coding.Coder{{Name: "a"}}, Window: 30_000_000_000},
		"another policy":             {Coders: []coding.Coder{{Name: "a"}}, Policy: control.CodingGreedy},
		"another belief":             {Coders: []coding.Coder{{Name: "a", Read: &threshold.Model{Delta: 1, Psi: 1}}}},
	} {
		t.Run(name, func(t *testing.T) {
			q, err := coding.New(c)
			if err != nil {
				t.Fatal(err)
			}
			moved(t, p, q)
			e, ok := q.Explain("a")
			if v := e.(*coding.Explanation); !ok || !v.Read.Fitted || v.Table == nil {
				t.Errorf("a is forgotten: %+v", v)
			}
			w.serve(traffic{store: "a", op: "read", n: 6, k: 3, mb: 3, count: 80})
			step(t, q, w, 50, act())
			restarted(t, q)
		})
	}
}

// A store's name leads to its coder.
func TestExplainByTheNameOfAStore(t *testing.T) {
	p, err := coding.New(coding.Config{Coders: []coding.Coder{{Name: "safe", Members: []string{"a", "b"}, N: 2, K: 1}, {Name: "objects"}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"safe": "safe", "b": "safe", "objects": "objects", "c": ""} {
		e, ok := p.Explain(name)
		if ok != (want != "") || ok && e.(*coding.Explanation).Coder != want {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

func TestConfigurationsWithFaults(t *testing.T) {
	coders := []coding.Coder{{Name: "a"}}
	for _, c := range []struct {
		config coding.Config
		want   string
	}{
		{coding.Config{}, `coders: got "0", expected 1 to 1024`},
		{coding.Config{Coders: coders, Policy: "best"}, `policy: got "best", expected tofec, greedy, static, replicate or hedge`},
		{coding.Config{Coders: []coding.Coder{{Name: "a"}, {Name: "a"}}}, `coders[1].name: got "a", expected a name of its own of 1 to 1024 bytes`},
		{coding.Config{Coders: []coding.Coder{{Name: "a", Connections: -1}}}, `coders[0].connections: got "-1", expected 0 to 65,536`},
		{coding.Config{Coders: []coding.Coder{{Name: "a", Read: &threshold.Model{Delta: -1}}}}, `coders[0].read: got "model: delta_ms: got -1`},
		{coding.Config{Coders: []coding.Coder{{Name: "a", Members: []string{"x", "x"}}}}, `coders[0].members[1]: got "x", expected a name of its own of 1 to 1024 bytes`},
		{coding.Config{Coders: []coding.Coder{{Name: "a"}, {Name: "b", Members: []string{"a"}}}}, `coders[1].members[0]: got "a", expected a name of its own`},
		{coding.Config{Coders: []coding.Coder{{Name: "a", N: 3, K: 4}}}, `coders[0].n: got "{3 4}", expected 1 ≤ k ≤ 32 and k ≤ n ≤ 128, or neither`},
		{coding.Config{Coders: coders, Window: 15_000_000_000}, `window: got "15s", expected a multiple of 10s`},
		{coding.Config{Coders: coders, History: 361}, `history: got "361", expected 1 to 360 windows`},
		{coding.Config{Coders: coders, MinSamples: -1}, `min_samples: got "-1", expected at least 1`},
		{coding.Config{Coders: coders, Connections: -1}, `connections: got "-1", expected 1 to 65,536`},
		{coding.Config{Coders: coders, KMax: 33}, `k_max: got "33", expected 1 to 32`},
		{coding.Config{Coders: coders, RMax: 0.5}, `r_max: got "0.5", expected 1 to 128`},
		{coding.Config{Coders: coders, MaxRequests: 3}, `max_requests: got "3", expected k_max to 128`},
		{coding.Config{Coders: coders, MaxReadPrice: -1}, `max_read_price: got "-1", expected 0 or more US dollars`},
		{coding.Config{Coders: coders, SizeMB: -1}, `size_mb: got "-1", expected above 0 MB, at most 1e6`},
		{coding.Config{Coders: coders, Code: coding.Code{N: 1, K: 2}}, `code: got "{1 2}", expected 1 ≤ k ≤ k_max and k ≤ n ≤ max_requests`},
		{coding.Config{Coders: coders, Policy: control.CodingReplicate, Code: coding.Code{N: 4, K: 2}}, `code.k: got "2", expected 1, of whole copies`},
		{coding.Config{Coders: coders, HedgeQuantile: 1}, `hedge_quantile: got "1", expected above 0, below 1`},
		{coding.Config{Coders: coders, Change: 1}, `change: got "1", expected below 1`},
		{coding.Config{Coders: coders, TTL: 1}, `ttl: got "1ns", expected at least two windows`},
	} {
		_, err := coding.New(c.config)
		if !errors.Is(err, coding.ErrConfig) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v\nexpected %s", err, c.want)
		}
	}
	if _, err := coding.Parse([]byte(`{"coders":[{"name":"a"}],"polcy":"tofec"}`)); !errors.Is(err, coding.ErrConfig) {
		t.Errorf("an unknown field: %v", err)
	}
}

// In any mode but act, and with a freeze or a gap, tables stay as if nothing had moved.
func TestWithoutActNothingMoves(t *testing.T) {
	c := coding.Config{Coders: []coding.Coder{{Name: "a"}}}
	p, err := coding.New(c)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(9)
	for n, op := range []control.Operator{{Mode: control.Observe}, {Mode: control.Advise}, {Mode: control.Act, Frozen: true}} {
		w.serve(traffic{store: "a", op: "read", n: 6, k: 3, mb: 3, count: 80})
		step(t, p, w, n, op)
		if e, _ := p.Explain("a"); e.(*coding.Explanation).Table != nil || e.(*coding.Explanation).Epoch != 0 {
			t.Errorf("%+v: a table is in force: %+v", op, e)
		}
	}
}

// Whatever stands in a sealed snapshot, it is refused or can be decided with.
func FuzzRestore(f *testing.F) {
	const magic = "penstock/coding/2\n"
	config := coding.Config{Coders: []coding.Coder{{Name: "a"}}, History: 2}
	p, w := busy(f, config)
	w.serve(traffic{store: "a", op: "read", n: 6, k: 3, mb: 3, count: 80})
	tables := w.table(6, p.Width())
	var b bytes.Buffer
	if err := p.Snapshot(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes()[len(magic) : b.Len()-sha256.Size])
	first, err := coding.New(config)
	if err != nil {
		f.Fatal(err)
	}
	b.Reset()
	if err := first.Snapshot(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes()[len(magic) : b.Len()-sha256.Size])
	f.Fuzz(func(t *testing.T, body []byte) {
		whole := append([]byte(magic), body...)
		sum := sha256.Sum256(whole)
		q, err := coding.New(config)
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Restore(bytes.NewReader(append(whole, sum[:]...))); err != nil {
			if !errors.Is(err, coding.ErrSnapshot) {
				t.Fatal(err)
			}
			return
		}
		for n := 6; n < 9; n++ {
			for _, c := range q.Decide(inputOf(n, q, tables)).Commands {
				check(t, c)
			}
		}
		q.Explain("a")
		restarted(t, q)
	})
}

func BenchmarkDecide(b *testing.B) {
	p, w := busy(b, coding.Config{Coders: []coding.Coder{{Name: "a"}}})
	w.serve(traffic{store: "a", op: "read", n: 6, k: 3, mb: 3, count: 80})
	tables := w.table(6, p.Width())
	b.ReportAllocs()
	for n := 6; b.Loop(); n++ {
		in := inputOf(n, p, tables)
		p.Decide(in)
		p.Digest()
	}
}
