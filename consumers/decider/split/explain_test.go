package split_test

import (
	"testing"
	"time"

	"penstock/consumers/decider/split"
	"penstock/schemas/control"
)

// explain is what is known of a component.
func (w *world) explain(name string) split.Explanation {
	w.t.Helper()
	v, ok := w.policy.Explain(name)
	if !ok {
		w.t.Fatalf("%s is not known", name)
	}
	return v.(split.Explanation)
}

// row is the calls of web at east to cart, by site.
func (w *world) row() (split.RowView, map[string]split.ShareView) {
	w.t.Helper()
	for _, r := range w.explain("web").Calls {
		if r.FromSite == "east" && r.To == "cart" {
			sites := map[string]split.ShareView{}
			for _, s := range r.Sites {
				sites[s.Site] = s
			}
			return r, sites
		}
	}
	w.t.Fatal("web at east calls cart nowhere")
	return split.RowView{}, nil
}

// TestWhatARowRestsOn follows a row through a fault, a refusal and a silence: what is
// measured and what assumed, what holds it, and until when.
func TestWhatARowRestsOn(t *testing.T) {
	w := shop(t, split.Config{Policy: split.Greedy, Sites: sitesOf("east", "west"), Components: []split.Component{{Name: "cart", WritesAt: "west"}}, Probes: split.Probing{Share: -1}})
	fault := false
	w.service = func(_ int, component, site string, _ float64) float64 {
		if fault && component == "cart" && site == "east" {
			return 305_000
		}
		return 5000
	}
	for range 8 {
		w.step(act())
	}
	r, sites := w.row()
	if r.Rate != 50 || r.Samples != 5*500 || r.Thin || r.Fast || r.Expired || r.WritesAt != "west" {
		t.Errorf("a row that is known: %+v", r)
	}
	if e, f := sites["east"], sites["west"]; !e.Measured || e.NetworkUS != 1000 || e.Samples != 2500 || f.Samples != 0 || e.HeldUntil != nil || e.Share != 1 {
		t.Errorf("at its sites: %+v, %+v", e, f)
	}
	fault = true
	w.step(act())
	r, sites = w.row()
	end := windowOf(w.n-1, w.width).End
	if e := sites["east"]; !r.Fast || e.Share >= 1 || e.Share == 0 || e.Target != 0 || e.Fell == nil || e.HeldUntil == nil || !e.HeldUntil.Equal(e.Fell.Add(time.Minute)) || !e.HeldUntil.After(end) {
		t.Errorf("a row that leaves: fast %v, %+v", r.Fast, e)
	}
	x := w.explain("web")
	if x.Refused || x.Failed != 0 || x.Policy != split.Greedy {
		t.Errorf("before a refusal: %+v", x)
	}
	w.policy.Apply(&control.Outcome{Kind: control.Split, Scope: "web", Epoch: x.Epoch, Status: control.Refused})
	w.rate = func(int, string) float64 { return 0.2 } // A window that decides nothing else.
	w.step(act())
	if x = w.explain("web"); !x.Refused || x.Failed != 1 {
		t.Errorf("refused: %v, %d in a row", x.Refused, x.Failed)
	}
	fault = false
	for range 5 {
		w.step(act())
	}
	if r, _ = w.row(); !r.Thin || r.Expired || r.Samples >= 30 {
		t.Errorf("a row with too few samples: %+v", r)
	}
	for range 70 {
		w.step(act())
	}
	if r, sites = w.row(); !r.Expired || sites["east"].HeldUntil != nil {
		t.Errorf("a row that has expired: %+v", r)
	}
	if _, ok := w.policy.Explain("nobody"); ok {
		t.Error("nobody is known")
	}
}
