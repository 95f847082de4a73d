package shares

import (
	"context"
	"errors"
	"math"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// probes are orders for link, to sites called 0, 1 and so on; 0 is no order.
func probes(parts ...float64) []Probe {
	var all []Probe
	for i, s := range parts {
		if s > 0 {
			all = append(all, Probe{FromSite: link.FromSite, To: link.To, Site: string(rune('0' + i)), Share: s})
		}
	}
	return all
}

// probingTable is table with probes, and sites that have no share.
func probingTable(epoch uint64, parts ...float64) Table {
	t := table(epoch, 1, 0, 0, 0)
	t.Probes = probes(parts...)
	return t
}

// TestProbes counts what sites get of the requests of a link, from the beginning
// on: all of them together never off by a whole probe, each by less than two.
func TestProbes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(1e-4, 0.2), rapid.Map(rapid.IntRange(1, 8), func(n int) float64 { return float64(n) / 32 }))
		parts := rapid.SliceOfN(part, 1, 4).Draw(t, "parts")
		units, rate := make([]int, len(parts)), 0.0
		for _, s := range parts {
			rate += s
		}
		if rate > 0 {
			var err error
			if units, err = Remainder(parts, Units); err != nil {
				t.Fatal(err)
			}
		}
		rate = min(rate, 1)
		r := with(t, probingTable(1, parts...))
		sent, all := make([]int, len(parts)), 0
		for n := 1; n <= 3000; n++ {
			if site, ok := r.Probe(link); ok {
				sent[site[0]-'0']++
				all++
			}
			if exact := float64(n) * rate; math.Abs(float64(all)-exact) >= 1+1e-9 {
				t.Fatalf("%v: %d probes of %d requests, exactly %v", parts, all, n, exact)
			}
			for i, u := range units {
				if exact := float64(u) * float64(all) / Units; math.Abs(float64(sent[i])-exact) >= 1 {
					t.Fatalf("%v: %d of %d probes to %d, exactly %v", parts, sent[i], all, i, exact)
				}
			}
		}
		if _, ok := r.Probe(Link{"frontend", "west", "search"}); ok {
			t.Fatal("a link without an order was probed")
		}
	})
}

// TestProbesAlternate: two sites with the same order take turns.
func TestProbesAlternate(t *testing.T) {
	t.Parallel()
	r := with(t, probingTable(1, 0.25, 0.25))
	got := ""
	for range 16 {
		site, ok := r.Probe(link)
		if !ok {
			site = "."
		}
		got += site
	}
	if got != ".0.1.0.1.0.1.0.1" && got != ".1.0.1.0.1.0.1.0" {
		t.Errorf("probes were sent as %s", got)
	}
}

// TestProbesOfSeveral callers add up to the exact number.
func TestProbesOfSeveral(t *testing.T) {
	t.Parallel()
	r := with(t, probingTable(1, 0.03, 0, 0.07))
	sent := make([][4]int, 4)
	var all sync.WaitGroup
	for g := range sent {
		all.Go(func() {
			for range 1000 {
				if site, ok := r.Probe(link); ok {
					sent[g][site[0]-'0']++
				}
			}
		})
	}
	all.Wait()
	var sum [4]int
	for _, s := range sent {
		for i, n := range s {
			sum[i] += n
		}
	}
	if sum != [4]int{120, 0, 280, 0} {
		t.Errorf("of 4000 requests %v were copied", sum)
	}
}

// TestProbesOverTables: with a table every seven requests, none of which causes a
// whole probe, probes are sent all the same, and to both sites.
func TestProbesOverTables(t *testing.T) {
	t.Parallel()
	r := with(t)
	sent, exact := [4]int{}, 0.0
	for epoch := range uint64(600) {
		share := 0.02 + 0.001*float64(epoch%3)
		if _, err := r.Put(t.Context(), probingTable(epoch+1, share, share)); err != nil {
			t.Fatal(err)
		}
		for range 7 {
			exact += 2 * share
			if site, ok := r.Probe(link); ok {
				sent[site[0]-'0']++
			}
		}
	}
	if n := float64(sent[0] + sent[1]); math.Abs(n-exact) >= 1 || sent[0]-sent[1] < -2 || sent[0]-sent[1] > 2 {
		t.Errorf("%v were sent, exactly %v", sent, exact)
	}
}

// TestProbesAndStates: a replica that drains isn't probed, even as the only one to
// be; one that is back is.
func TestProbesAndStates(t *testing.T) {
	t.Parallel()
	r := with(t, probingTable(1, 0, 0.5, 0.5))
	count := func() (sent [4]int) {
		for range 100 {
			if site, ok := r.Probe(link); ok {
				sent[site[0]-'0']++
			}
		}
		return sent
	}
	expect := func(what string, want [4]int) {
		t.Helper()
		if got := count(); got != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	drain := func(site string) {
		if _, err := r.Drain(t.Context(), Replica{link.To, site}); err != nil {
			t.Fatal(err)
		}
	}
	expect("all", [4]int{0, 50, 50})
	drain("1")
	expect("one drains", [4]int{0, 0, 50})
	drain("2")
	expect("both drain", [4]int{})
	next := probingTable(2, 0, 0.5, 0.5)
	next.Rows = nil
	if _, err := r.Put(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	expect("both drain, another table without rows", [4]int{})
	for _, site := range []string{"1", "2"} {
		if err := r.Undrain(t.Context(), Replica{link.To, site}); err != nil {
			t.Fatal(err)
		}
	}
	expect("both are back", [4]int{0, 50, 50})
	if err := r.Clear(t.Context(), link.From); err != nil {
		t.Fatal(err)
	}
	expect("cleared", [4]int{})
}

// TestProbesAreOfTheTable: other probes with the same rows and epoch are a change,
// those that can't be reject the table.
func TestProbesAreOfTheTable(t *testing.T) {
	t.Parallel()
	r := New(Options{Sites: []string{"0", "1", "2", "3"}})
	put := func(t Table) int {
		n, err := r.Put(context.Background(), t)
		if err != nil {
			return -1
		}
		return n
	}
	good := probingTable(1, 0, 1)
	for i, want := range []int{2, 0} {
		if n := put(good); n != want {
			t.Errorf("put %d changed %d", i, n)
		}
	}
	if n := put(probingTable(1, 0, 0, 1)); n != 1 {
		t.Errorf("other probes changed %d", n)
	}
	if n := put(good); n != 1 {
		t.Errorf("other probes changed %d", n)
	}
	one := Probe{FromSite: link.FromSite, To: link.To, Site: "2", Share: 0.5}
	for name, tc := range map[string]struct {
		edit func(p *Probe)
		err  error
	}{
		"no callee":    {func(p *Probe) { p.To = "" }, ErrTable},
		"no site":      {func(p *Probe) { p.Site = "" }, ErrTable},
		"nothing":      {func(p *Probe) { p.Share = 0 }, ErrTable},
		"more":         {func(p *Probe) { p.Share = 1.01 }, ErrTable},
		"not a number": {func(p *Probe) { p.Share = math.NaN() }, ErrTable},
		"elsewhere":    {func(p *Probe) { p.Site = "elsewhere" }, ErrAbsent},
		"twice":        {func(*Probe) {}, ErrTable},
	} {
		bad := table(2, 1, 0)
		other := one
		tc.edit(&other)
		bad.Probes = []Probe{other}
		if name == "twice" {
			bad.Probes = []Probe{one, other}
			bad.Probes[1].Share = 0.1
		}
		if _, err := r.Put(t.Context(), bad); !errors.Is(err, tc.err) {
			t.Errorf("%s: %v", name, err)
		}
		if site, ok := r.Probe(link); !ok || site != "1" {
			t.Errorf("%s: then %q is probed", name, site)
		}
	}
	if now, ok := r.Table(link.From); !ok || now.Epoch != 1 || len(now.Probes) != 1 || now.Probes[0].Site != "1" {
		t.Errorf("in force is %+v", now)
	}
}

// TestChanged wakes up who waits for a component, at its tables and no others'.
func TestChanged(t *testing.T) {
	t.Parallel()
	r := with(t, table(1, 1))
	fired := func(c <-chan struct{}) bool {
		select {
		case <-c:
			return true
		default:
			return false
		}
	}
	other := table(1, 1)
	other.From = "other"
	for _, step := range []struct {
		what string
		do   func() error
		want bool
	}{
		{"another's", func() error { _, err := r.Put(t.Context(), other); return err }, false},
		{"the same", func() error { _, err := r.Put(t.Context(), table(1, 1)); return err }, false},
		{"refused", func() error { _, err := r.Put(t.Context(), table(2, 0)); return nilIf(err, ErrShares) }, false},
		{"older", func() error { old := table(1, 0, 1); old.Epoch = 0; _, err := r.Put(t.Context(), old); return err }, true},
		{"new", func() error { _, err := r.Put(t.Context(), table(2, 1)); return err }, true},
		{"probes", func() error { _, err := r.Put(t.Context(), probingTable(2, 1)); return err }, true},
		{"cleared", func() error { return r.Clear(t.Context(), link.From) }, true},
		{"cleared again", func() error { return r.Clear(t.Context(), link.From) }, false},
	} {
		a, b := r.Changed(link.From), r.Changed(link.From)
		if err := step.do(); err != nil {
			t.Fatal(step.what, err)
		}
		if fired(a) != step.want || fired(b) != step.want {
			t.Errorf("%s: woken up %v and %v, want %v", step.what, fired(a), fired(b), step.want)
		}
	}
}

func nilIf(err, want error) error {
	if errors.Is(err, want) {
		return nil
	}
	return err
}

// TestChangedOfNobody: components without a table wait for any first one together,
// however many names are asked for.
func TestChangedOfNobody(t *testing.T) {
	t.Parallel()
	r := with(t, table(1, 1))
	var all []<-chan struct{}
	for i := range 1000 {
		all = append(all, r.Changed(strconv.Itoa(i)))
	}
	if n := len(r.changed); n != 1 {
		t.Errorf("%d channels are kept", n)
	}
	if _, err := r.Put(t.Context(), table(2, 1)); err != nil {
		t.Fatal(err)
	}
	select {
	case <-all[7]:
		t.Error("told of a table of a component that had one")
	default:
	}
	first := table(1, 1)
	first.From = "7"
	if _, err := r.Put(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		<-c
	}
}

// TestChangedUnderChange: who looks after having called Changed misses nothing.
func TestChangedUnderChange(t *testing.T) {
	t.Parallel()
	r := with(t)
	const last = 200
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			for {
				c := r.Changed(link.From)
				if now, _ := r.Table(link.From); now.Epoch == last {
					return
				}
				<-c
			}
		})
	}
	for epoch := range uint64(last) {
		if _, err := r.Put(t.Context(), table(epoch+1, 1)); err != nil {
			t.Fatal(err)
		}
		runtime.Gosched()
	}
	all.Wait()
}

// TestEnterWrites: a write goes to the site for writes, though the session is
// elsewhere, and a drain of that site waits for it.
func TestEnterWrites(t *testing.T) {
	t.Parallel()
	row := table(4, 1, 0)
	row.Rows[0].WritesAt = "1"
	r := with(t, row)
	c := r.Enter(link, "key", "0", true)
	if c.Site != "1" || c.Epoch != 4 || !c.Known {
		t.Errorf("a write goes to %+v", c)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if n, err := r.Drain(ctx, Replica{link.To, "1"}); n != 1 || !errors.Is(err, ErrRemaining) {
		t.Errorf("with a write under way: %d remaining, %v", n, err)
	}
	if c := r.Enter(link, "key", "1", false); c.Site != "0" {
		t.Errorf("a read goes to %+v", c)
	}
	c.Leave()
	if n, err := r.Drain(t.Context(), Replica{link.To, "1"}); n != 0 || err != nil {
		t.Errorf("after the write: %d remaining, %v", n, err)
	}
	r = with(t, table(1, 1, 0))
	if c := r.Enter(link, "", "0", true); c.Site != "0" || !c.Known {
		t.Errorf("a write without a site for writes goes to %+v", c)
	}
	if c := r.Enter(Link{"nobody", "east", "search"}, "", "west", true); c.Site != "east" || c.Known {
		t.Errorf("a write of no table goes to %+v", c)
	}
}
