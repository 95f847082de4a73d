package shares

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

var link = Link{"frontend", "east", "search"}

// table is a table of one row for link, over sites called 0, 1 and so on.
func table(epoch uint64, shares ...float64) Table {
	row := Row{FromSite: link.FromSite, To: link.To}
	for i, s := range shares {
		row.Ratios = append(row.Ratios, Ratio{Site: strconv.Itoa(i), Share: s})
	}
	return Table{From: link.From, Epoch: epoch, Rows: []Row{row}}
}

func ratio(site string, share float64) Ratio { return Ratio{Site: site, Share: share} }

func with(t interface{ Fatal(...any) }, tables ...Table) *Router {
	r := New(Options{})
	for _, each := range tables {
		if _, err := r.Put(context.Background(), each); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// TestTurns counts what sites get of requests without a key, from the beginning
// and from any other point on, against the exact parts.
func TestTurns(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := shares(t, 1, 12)
		units, err := Remainder(s, Units)
		if err != nil {
			t.Fatal(err)
		}
		r := with(t, table(1, s...))
		skip := rapid.IntRange(0, 2*Units).Draw(t, "skip")
		for range skip {
			r.Pick(link, "")
		}
		bound := 2.0
		if skip%Units == 0 {
			bound = 1
		}
		picked := make([]int, len(s))
		for n := 1; n <= Units+50; n++ {
			i, err := strconv.Atoi(r.Pick(link, "").Site)
			if err != nil {
				t.Fatal(err)
			}
			picked[i]++
			for j, u := range units {
				if exact := float64(u) * float64(n) / Units; math.Abs(float64(picked[j])-exact) >= bound {
					t.Fatalf("of %d picks after %d site %d got %d, exactly %v", n, skip, j, picked[j], exact)
				}
			}
		}
	})
}

// TestTurnsOfSeveral has requests of several goroutines share one round: all of
// them together get the exact parts.
func TestTurnsOfSeveral(t *testing.T) {
	t.Parallel()
	r := with(t, table(1, 0.62, 0.251, 0.129))
	picked := make([][3]int, 4)
	var all sync.WaitGroup
	for g := range picked {
		all.Go(func() {
			for range Units {
				i, _ := strconv.Atoi(r.Pick(link, "").Site)
				picked[g][i]++
			}
		})
	}
	all.Wait()
	var sum [3]int
	for _, p := range picked {
		for i, n := range p {
			sum[i] += n
		}
	}
	if sum != [3]int{4 * 620, 4 * 251, 4 * 129} {
		t.Errorf("4 rounds gave %v", sum)
	}
}

// TestTurnsOverTables gives a new table every seven requests, as a busy decider
// might: none is favoured for where it stands.
func TestTurnsOverTables(t *testing.T) {
	t.Parallel()
	r := with(t)
	picked := [4]int{}
	for epoch := range uint64(600) {
		shift := 0.001 * float64(epoch%2)
		if _, err := r.Put(t.Context(), table(epoch+1, 0.25+shift, 0.25-shift, 0.25, 0.25)); err != nil {
			t.Fatal(err)
		}
		for range 7 {
			i, _ := strconv.Atoi(r.Pick(link, "").Site)
			picked[i]++
		}
	}
	for i, n := range picked {
		if math.Abs(float64(n)-4200/4) > 3 {
			t.Errorf("site %d got %d of 4200 requests, not a quarter: %v", i, n, picked)
		}
	}
}

// TestKeys gives many keys sites: they share as the table says, the same key
// gets the same site from every router, and a change moves none that it need not.
func TestKeys(t *testing.T) {
	t.Parallel()
	const keys = 20_000
	place := func(r *Router) []int {
		at := make([]int, keys)
		for k := range at {
			at[k], _ = strconv.Atoi(r.Pick(link, fmt.Sprint("session-", k)).Site)
		}
		return at
	}
	for _, tc := range []struct{ before, after []float64 }{
		{[]float64{0.5, 0.5}, []float64{0.6, 0.4}},
		{[]float64{0.62, 0.38}, []float64{0.1, 0.9}},
		{[]float64{0.2, 0.3, 0.5}, []float64{0, 0.375, 0.625}},                     // one leaves
		{[]float64{0.25, 0.25, 0.25, 0.25, 0}, []float64{0.2, 0.2, 0.2, 0.2, 0.2}}, // one comes
		{[]float64{0.1, 0.2, 0.3, 0.4}, []float64{0.4, 0.3, 0.2, 0.1}},
	} {
		before, after := place(with(t, table(1, tc.before...))), place(with(t, table(3, 1), table(9, tc.after...)))
		n := make([]int, len(tc.before))
		moved := 0
		for k, from := range before {
			n[from]++
			to := after[k]
			if from == to {
				continue
			}
			moved++
			// From a site whose share against the other's fell.
			if tc.after[to]*tc.before[from] <= tc.before[to]*tc.after[from]+1e-12 {
				t.Errorf("%v to %v: key %d went from %d to %d", tc.before, tc.after, k, from, to)
			}
		}
		least := 0.0 // what must move
		for i, s := range tc.before {
			if sigma := math.Sqrt(keys * s * (1 - s)); math.Abs(float64(n[i])-s*keys) > 5*sigma {
				t.Errorf("%v: site %d got %d keys of %d", tc.before, i, n[i], keys)
			}
			least += math.Abs(tc.after[i]-s) / 2
		}
		most := least // pairs of sites may exchange some
		if len(tc.before) == 4 {
			most *= 1.25
		}
		sigma := math.Sqrt(keys*least*(1-least)) / keys
		if share := float64(moved) / keys; share < least-5*sigma || share > most+5*sigma {
			t.Errorf("%v to %v moved %v of the keys, %v have to", tc.before, tc.after, share, least)
		}
	}
}

// TestRefused puts tables that can't be; the one in force stays.
func TestRefused(t *testing.T) {
	t.Parallel()
	row := func(ratios ...Ratio) Table {
		return Table{From: "frontend", Epoch: 5, Rows: []Row{{FromSite: "east", To: "search", Ratios: ratios}}}
	}
	twice := row(ratio("0", 1))
	twice.Rows = append(twice.Rows, twice.Rows[0])
	many := row()
	for i := range MaxSites + 1 {
		many.Rows[0].Ratios = append(many.Rows[0].Ratios, ratio(strconv.Itoa(i), 1))
	}
	old := row(ratio("0", 1))
	old.Epoch = 3
	for name, tc := range map[string]struct {
		t   Table
		err error
	}{
		"an older epoch":      {old, ErrOlder},
		"no component":        {Table{Epoch: 5, Rows: old.Rows}, ErrTable},
		"a link twice":        {twice, ErrTable},
		"a site twice":        {row(ratio("0", 1), ratio("0", 1)), ErrTable},
		"a site of no name":   {row(ratio("", 1)), ErrTable},
		"a callee of no name": {Table{From: "frontend", Epoch: 5, Rows: []Row{{Ratios: []Ratio{ratio("0", 1)}}}}, ErrTable},
		"too many sites":      {many, ErrTable},
		"all 0":               {row(ratio("0", 0), ratio("1", 0)), ErrShares},
		"no site":             {row(), ErrShares},
		"not a number":        {row(ratio("0", math.NaN())), ErrShares},
		"a site that isn't":   {row(ratio("elsewhere", 1)), ErrAbsent},
	} {
		r := New(Options{Sites: []string{"0", "1"}})
		if _, err := r.Put(t.Context(), table(4, 0, 1)); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Put(t.Context(), tc.t); !errors.Is(err, tc.err) {
			t.Errorf("%s: %v, want %v", name, err, tc.err)
		}
		if c := r.Pick(link, ""); c.Site != "1" || c.Epoch != 4 || !c.Known {
			t.Errorf("%s: then %+v", name, c)
		}
	}
}

// TestWithoutATable keeps calls where they are.
func TestWithoutATable(t *testing.T) {
	t.Parallel()
	r := with(t, table(4, 0, 1))
	if err := r.Clear(t.Context(), link.From); err != nil {
		t.Fatal(err)
	}
	for _, l := range []Link{link, {"frontend", "west", "search"}, {"", "east", ""}} {
		if c := r.Pick(l, "key"); c.Site != l.FromSite || c.Known {
			t.Errorf("%+v: %+v", l, c)
		}
	}
	if _, stays := r.Stay(link, "1"); stays {
		t.Error("a session stays elsewhere without a table")
	}
	if _, err := r.Put(t.Context(), table(3, 1)); !errors.Is(err, ErrOlder) {
		t.Errorf("an older table after a newer one was cleared: %v", err)
	}
	if _, err := r.Put(t.Context(), table(4, 0, 1)); err != nil {
		t.Errorf("the same table again after it was cleared: %v", err)
	}
	if _, err := r.Put(t.Context(), table(0, 1)); err != nil || r.Pick(link, "").Site != "0" {
		t.Errorf("the default after a table: %v", err)
	}
}

// TestWrites go to the site that a row names, while sessions and shares don't
// concern them.
func TestWrites(t *testing.T) {
	t.Parallel()
	r := New(Options{Sites: []string{"0", "1"}})
	row := table(3, 1, 0)
	if _, err := r.Put(t.Context(), row); err != nil {
		t.Fatal(err)
	}
	if c := r.Writes(link, "key"); c.Site != "0" {
		t.Errorf("without a site for writes: %+v", c)
	}
	row = table(4, 1, 0)
	row.Rows[0].WritesAt = "1"
	if _, err := r.Put(t.Context(), row); err != nil {
		t.Fatal(err)
	}
	r.Up(Replica{link.To, "1"}, false)
	if c := r.Writes(link, "key"); c.Site != "1" || c.Epoch != 4 || !c.Known {
		t.Errorf("a write goes to %+v", c)
	}
	if c := r.Pick(link, "key"); c.Site != "0" {
		t.Errorf("a read goes to %+v", c)
	}
	if c := r.Writes(Link{"nobody", "east", "search"}, ""); c.Site != "east" || c.Known {
		t.Errorf("a write of no table goes to %+v", c)
	}
	row = table(5, 1, 0)
	row.Rows[0].WritesAt = "elsewhere"
	if _, err := r.Put(t.Context(), row); !errors.Is(err, ErrAbsent) {
		t.Errorf("writes at a site that isn't: %v", err)
	}
}

// TestWholeTables swaps tables under requests: each sees the site and the epoch
// of one table, and epochs only rise.
func TestWholeTables(t *testing.T) {
	t.Parallel()
	r := with(t, table(1, 0, 1))
	stop := make(chan struct{})
	var all sync.WaitGroup
	for g := range 3 {
		all.Go(func() {
			last := uint64(0)
			for {
				select {
				case <-stop:
					return
				default:
				}
				c := r.Pick(link, [...]string{"", "a", "b"}[g])
				if c.Site != strconv.FormatUint(c.Epoch%2, 10) || c.Epoch < last {
					t.Errorf("%+v after epoch %d", c, last)
					return
				}
				last = c.Epoch
			}
		})
	}
	for epoch := uint64(2); epoch <= 300; epoch++ {
		shares := []float64{1, 0}
		if epoch%2 == 1 {
			shares = []float64{0, 1}
		}
		if _, err := r.Put(t.Context(), table(epoch, shares...)); err != nil {
			t.Fatal(err)
		}
		r.Up(Replica{"other", "0"}, epoch%3 == 0)
	}
	close(stop)
	all.Wait()
}

// TestPickAllocatesNothing in any way of choosing.
func TestPickAllocatesNothing(t *testing.T) {
	all := table(1, 0.5, 0.3, 0.2)
	all.Rows[0].WritesAt, all.Probes = "1", probes(0, 0.3)
	r := with(t, all)
	if n := testing.AllocsPerRun(1000, func() {
		r.Pick(link, "")
		r.Pick(link, "session")
		r.Stay(link, "1")
		r.Enter(link, "session", "", false).Leave()
		r.Enter(link, "session", "1", true).Leave()
		r.Probe(link)
		r.Pick(Link{"nobody", "east", "search"}, "")
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
