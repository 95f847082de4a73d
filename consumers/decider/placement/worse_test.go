package placement

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"penstock/schemas/control"
)

// twin is policy tmatch in the state of another policy.
func twin(t rapid.TB, p *Policy, c Config) *Policy {
	c.Policy = TMatch
	q, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Restore(bytes.NewReader(snapshot(t, p))); err != nil {
		t.Fatal(err)
	}
	return q
}

// TestOptimalIsNeverWorse decides each window with both policies from the same
// state, and compares their plans on the one objective. A plan of tmatch that
// leaves an owner where its residency forbids it is none to compare with.
func TestOptimalIsNeverWorse(t *testing.T) {
	compared, better := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		c := drawOptimal(t)
		c.Limits = Limits{}
		p := newPolicy(t, c, rapid.IntRange(1, 3).Draw(t, "workers"))
		r := rand.New(rand.NewPCG(1, 2))
		for n := 1; n <= rapid.IntRange(1, 8).Draw(t, "windows"); n++ {
			in := drawWindow(t, c, n)
			in.evacuate = nil
			q := twin(t, p, c)
			tables := in.input(r)
			out, other := p.Decide(tables), q.Decide(tables)
			ours, theirs := p.LastPlan(), q.LastPlan()
			if ours.Owners != theirs.Owners || out.Case != other.Case {
				t.Fatalf("%d owners and %d, case %q and %q", ours.Owners, theirs.Owners, out.Case, other.Case)
			}
			if ours.Owners > 0 && lawful(q) {
				compared++
				if ours.Total < theirs.Total-1e-6 {
					better++
				}
				if ours.Total > theirs.Total+1e-6 {
					t.Fatalf("optimal %+v\n%s\ntmatch %+v\n%s", ours, printed(out), theirs, printed(other))
				}
			}
			apply(p, drawOutcomes(t, movesOf(out)))
		}
	})
	t.Logf("%d plans compared, %d better", compared, better)
	if !t.Failed() && better == 0 {
		t.Error("no plan was ever better")
	}
}

// lawful reports whether the last plan leaves every owner where it may be.
func lawful(p *Policy) bool {
	for id, to := range p.want {
		if to != 0 && !p.allowed(int32(id))[to-1] {
			return false
		}
	}
	return true
}

// TestALargePlanIsWithinItsBound decides windows that are too large to be solved
// exactly: exact weights of the plan are within the gap that it reported by rough
// ones, and it is no worse than tmatch's.
func TestALargePlanIsWithinItsBound(t *testing.T) {
	const owners, cells = 2000, 30_000
	c := hardConfig(owners, Optimal)
	c.Limits = Limits{}
	p, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	p.cells = cells
	r := rand.New(rand.NewPCG(7, 8))
	for n := 1; n <= 2; n++ {
		q := twin(t, p, c)
		alone, err := Parse(p.Config())
		if err != nil {
			t.Fatal(err)
		}
		if err := alone.Restore(bytes.NewReader(snapshot(t, p))); err != nil {
			t.Fatal(err)
		}
		alone.cells = cells
		alone.SetWorkers(1)
		p.SetWorkers(3)
		in := benchWindow(owners, n, r)
		out := p.Decide(in)
		q.Decide(in)
		if printed(out) != printed(alone.Decide(in)) || p.Digest() != alone.Digest() || !bytes.Equal(snapshot(t, p), snapshot(t, alone)) {
			t.Errorf("window %d: three workers decide other than one", n)
		}
		ours, theirs := p.LastPlan(), q.LastPlan()
		t.Logf("optimal %+v", ours)
		t.Logf("tmatch  %+v", theirs)
		if ours.Total > theirs.Total || ours.Total < ours.Bound || ours.Gap > 0.01 || ours.Exact {
			t.Errorf("window %d: optimal %+v, tmatch %+v", n, ours, theirs)
		}
		i := slices.IndexFunc(out.Reasons, func(r control.Reason) bool { return r.Code == "Optimised" })
		e := out.Reasons[i].Evidence
		if gap := e["gap"].(float64); gap < ours.Gap || gap > 0.01 || e["exact"].(bool) {
			t.Errorf("window %d: the record says %v, the plan has %+v", n, e, ours)
		}
		for _, m := range movesOf(out) {
			p.Apply(&control.Outcome{Owner: m.Owner, Move: m.Version, Status: control.Done})
		}
	}
}
