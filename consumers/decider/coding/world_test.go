package coding_test

import (
	"bytes"
	"cmp"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"penstock/consumers/decider"
	"penstock/consumers/decider/coding"
	"penstock/consumers/decider/coding/threshold"
	"penstock/schemas/control"
	"penstock/schemas/window"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func windowOf(n int, width time.Duration) control.Window {
	start := epoch.Add(time.Duration(n) * width)
	return control.Window{Start: start, End: start.Add(width)}
}

// traffic is requests of one code and size in each window.
type traffic struct {
	store, op string // several stores: a task to each, in turn
	n, k      int
	mb        float64 // of a request
	count     int
	failed    int // tasks
}

// key is that of a row of the rollup.
type key struct {
	store, op string
	n, k      int
	bits      int
	outcome   string
}

type row struct {
	tasks, bytes, sum, least, smallest int64
	delay                              window.Bins
}

// world makes storage windows from stores of known delays.
type world struct {
	rng    *rand.Rand
	models map[[2]string]threshold.Model
	rows   map[key]*row
}

func newWorld(seed uint64) *world {
	return &world{rng: rand.New(rand.NewPCG(seed, 3)), models: map[[2]string]threshold.Model{}, rows: map[key]*row{}}
}

func (w *world) model(store, op string) threshold.Model {
	if m, ok := w.models[[2]string{store, op}]; ok {
		return m
	}
	if op == "read" {
		return threshold.DefaultRead
	}
	return threshold.DefaultWrite
}

func (w *world) task(x traffic, store, outcome string, ms float64) {
	size := int64(x.mb / float64(x.k) * 1e6)
	k := key{store, x.op, x.n, x.k, len(strconv.FormatInt(size, 2)), outcome}
	r := w.rows[k]
	if r == nil {
		r = &row{least: window.NullInt, smallest: size}
		w.rows[k] = r
	}
	us := int64(1000 * ms)
	r.tasks++
	r.bytes += size
	r.sum += us
	r.smallest = min(r.smallest, size)
	r.delay.Add(us, 1)
	if r.least == window.NullInt || us < r.least {
		r.least = us
	}
}

// serve runs the requests of a window: tasks start together, the k-th success cancels
// the rest.
func (w *world) serve(x traffic) {
	b, stores := x.mb/float64(x.k), strings.Split(x.store, ",")
	type end struct {
		store string
		ms    float64
	}
	ends := make([]end, x.n)
	for range x.count {
		for i := range ends {
			s := stores[i%len(stores)]
			m := w.model(s, x.op)
			ends[i] = end{s, m.Fixed(b) + w.rng.ExpFloat64()*m.Mean(b)}
		}
		slices.SortFunc(ends, func(a, b end) int { return cmp.Compare(a.ms, b.ms) })
		for i, e := range ends {
			if i < x.k {
				w.task(x, e.store, "done", e.ms)
			} else {
				w.task(x, e.store, "cancelled", ends[x.k-1].ms)
			}
		}
	}
	for range x.failed {
		w.task(x, stores[0], "failed", 5000)
	}
}

// table makes the rollup's window and forgets its rows.
func (w *world) table(n int, width time.Duration) map[string]*window.Table {
	if len(w.rows) == 0 {
		return nil
	}
	keys := make([]key, 0, len(w.rows))
	for k := range w.rows {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b key) int {
		return cmp.Or(cmp.Compare(a.store, b.store), cmp.Compare(a.op, b.op), cmp.Compare(a.n, b.n), cmp.Compare(a.k, b.k), cmp.Compare(a.bits, b.bits), cmp.Compare(a.outcome, b.outcome))
	})
	t := window.NewTable(window.Storage)
	start := epoch.Add(time.Duration(n) * width).UnixMicro()
	for _, k := range keys {
		r := w.rows[k]
		t.Append(start, []string{k.store, k.op, strconv.Itoa(k.n), strconv.Itoa(k.k), strconv.Itoa(k.bits), k.outcome},
			[]int64{r.tasks, r.bytes, r.smallest, r.sum, r.least, 0, 0, 0, 0}, r.delay)
	}
	t.Sort()
	w.rows = map[key]*row{}
	return map[string]*window.Table{window.Storage.Name: t}
}

func restarted(t testing.TB, p *coding.Policy) *coding.Policy {
	t.Helper()
	var b bytes.Buffer
	if err := p.Snapshot(&b); err != nil {
		t.Fatal(err)
	}
	again, err := coding.Parse(p.Config())
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Restore(bytes.NewReader(b.Bytes())); err != nil {
		t.Fatal(err)
	}
	if x, y := p.Digest(), again.Digest(); x != y {
		t.Fatalf("digest %s became %s", x, y)
	}
	return again
}

// check is what every command must hold.
func check(t testing.TB, c control.Command) {
	t.Helper()
	c.Version, c.Kind, c.Epoch, c.Mode, c.TTL, c.Window = 1, control.Coding, 1, control.Act, "10m0s", windowOf(0, 10*time.Second)
	body, err := control.Encode(c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := control.DecodeCommand(body); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
}

func act() control.Operator { return control.Operator{Mode: control.Act} }

// step decides a window of the world.
func step(t testing.TB, p *coding.Policy, w *world, n int, op control.Operator) decider.Output {
	t.Helper()
	out := p.Decide(decider.Input{Window: windowOf(n, p.Width()), Tables: w.table(n, p.Width()), Operator: op})
	for _, c := range out.Commands {
		check(t, c)
	}
	return out
}

func inputOf(n int, p *coding.Policy, tables map[string]*window.Table) decider.Input {
	return decider.Input{Window: windowOf(n, p.Width()), Tables: tables, Operator: act()}
}
