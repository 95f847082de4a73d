package gatewayapi

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"penstock/consumers/executor"
	"penstock/consumers/executor/router"
	"penstock/consumers/executor/router/routertest"
	"penstock/infra/shares"
)

func (w *world) put(epoch uint64, parts ...float64) int {
	w.t.Helper()
	n, err := w.target.Put(w.t.Context(), routertest.Table(epoch, parts...))
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

func (w *world) expect(l shares.Link, want map[string]int64) {
	w.t.Helper()
	if got := w.weights(l); !maps.Equal(got, want) {
		w.t.Errorf("%+v: weights %v, not %v", l, got, want)
	}
}

func at(east, north, west int64) map[string]int64 {
	return map[string]int64{"east": east, "north": north, "west": west, "canary": 0}
}

// both is a table for the two links of Frontend, which are two HTTPRoutes.
func both(epoch uint64, parts ...float64) shares.Table {
	t := routertest.Table(epoch, parts...)
	row := t.Rows[0]
	row.FromSite, row.To = second.FromSite, second.To
	t.Rows = append(t.Rows, row)
	return t
}

// edited has somebody else write to a rule's backendRef.
func (w *world) edited(id, ruleName string, ref int, field string, value any) {
	w.t.Helper()
	w.api.edit(id, func(o map[string]any) map[string]any {
		for _, r := range o["spec"].(map[string]any)["rules"].([]any) {
			if rule := r.(map[string]any); rule["name"] == ruleName {
				rule["backendRefs"].([]any)[ref].(map[string]any)[field] = value
			}
		}
		return o
	})
}

// TestPatches hold tests and weights, and nothing else.
func TestPatches(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.put(1, 0.62, 0, 0.38)
	w.expect(routertest.Link, at(6200, 0, 3800))
	if len(w.api.patches) != 1 || len(w.api.patches[0]) != 7 {
		t.Fatalf("patches %v", w.api.patches)
	}
	for i, op := range w.api.patches[0] {
		switch {
		case i == 0 && op.Op == "test" && op.Path == "/metadata/resourceVersion":
		case op.Op == "test" && strings.HasPrefix(op.Path, "/spec/rules/1/backendRefs/") && strings.HasSuffix(op.Path, "/name"):
		case op.Op == "replace" && strings.HasPrefix(op.Path, "/spec/rules/1/backendRefs/") && strings.HasSuffix(op.Path, "/weight"):
		default:
			t.Errorf("operation %d: %+v", i, op)
		}
	}
	w.put(1, 0.62, 0, 0.38)
	if len(w.api.patches) != 1 {
		t.Errorf("what is in force was written again: %v", w.api.patches[1:])
	}
}

// TestConflicts: what somebody else writes between our reading and our writing is
// kept, and seen.
func TestConflicts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.api.meddle = []func(){
		func() { w.edited("shop/front", "search", 0, "weight", int64(7)) },
		func() { // a rule before ours, and a backendRef before ours
			w.api.edit("shop/front", func(o map[string]any) map[string]any {
				spec := o["spec"].(map[string]any)
				rules := spec["rules"].([]any)
				search := rules[1].(map[string]any)
				search["backendRefs"] = append([]any{map[string]any{"name": "search-new", "port": int64(1), "weight": int64(0)}}, search["backendRefs"].([]any)...)
				spec["rules"] = append([]any{map[string]any{"name": "new", "backendRefs": []any{map[string]any{"name": "new", "port": int64(1)}}}}, rules...)
				return o
			})
		},
		func() { w.api.settle() }, // a status is a version too
	}
	if n := w.put(1, 0.5, 0.25, 0.25); n != 3 || w.counts.of(Conflicts) != 3 {
		t.Errorf("%d changes, %d conflicts", n, w.counts.of(Conflicts))
	}
	want := at(5000, 2500, 2500)
	want["new"] = 0
	w.expect(routertest.Link, want)
	if err := w.target.Clear(t.Context(), routertest.Frontend); err != nil {
		t.Fatal(err)
	}
	want = at(7, 100, 100) // of before: as the other one had written
	want["new"] = 0
	w.expect(routertest.Link, want)
	for range tries {
		w.api.meddle = append(w.api.meddle, func() { w.api.settle() })
	}
	_, err := w.target.Put(t.Context(), routertest.Table(2, 1, 0, 0))
	if !errors.Is(err, executor.ErrAgain) {
		t.Errorf("conflict after conflict: %v", err)
	}
	w.expect(routertest.Link, want)
}

// TestRefusals of the API server reject a table, or have it put again.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		what  string
		code  int
		err   error
		again bool
	}{
		"not permitted":     {http.MethodPatch, http.StatusForbidden, ErrRefused, false},
		"an admission hook": {http.MethodPatch, http.StatusBadRequest, ErrRefused, false},
		"a patch in vain":   {http.MethodPatch, http.StatusUnprocessableEntity, ErrRefused, false},
		"overloaded":        {http.MethodPatch, http.StatusTooManyRequests, router.ErrUnreachable, true},
		"away":              {http.MethodGet, http.StatusServiceUnavailable, router.ErrUnreachable, true},
		"a conflict":        {http.MethodPatch, http.StatusConflict, ErrRefused, false},
		"who are you":       {http.MethodGet, http.StatusUnauthorized, router.ErrUnreachable, true},
		"not installed":     {"httproutes", http.StatusNotFound, shares.ErrAbsent, false},
	} {
		w := newWorld(t, nil)
		w.put(1, 0.5, 0.2, 0.3)
		w.api.denied[tc.what] = tc.code
		if _, err := w.target.Put(t.Context(), routertest.Table(2, 1, 0, 0)); !errors.Is(err, tc.err) || errors.Is(err, executor.ErrAgain) != tc.again {
			t.Errorf("%s: %v", name, err)
		}
		clear(w.api.denied)
		w.expect(routertest.Link, at(5000, 2000, 3000))
		if n := w.put(1, 0.5, 0.2, 0.3); n != 0 {
			t.Errorf("%s: %d weights are not as before", name, n)
		}
	}
}

// TestNothingIsRememberedOfWhatWasRefused: what a rule had before is what it had when
// it was first written.
func TestNothingIsRememberedOfWhatWasRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.api.denied[http.MethodPatch] = http.StatusForbidden
	if _, err := w.target.Put(t.Context(), routertest.Table(1, 1, 0, 0)); !errors.Is(err, ErrRefused) {
		t.Fatal(err)
	}
	clear(w.api.denied)
	w.edited("shop/front", "search", 0, "weight", int64(7))
	w.put(2, 0.5, 0.5, 0)
	if err := w.target.Clear(t.Context(), routertest.Frontend); err != nil {
		t.Fatal(err)
	}
	w.expect(routertest.Link, at(7, 100, 100))
}

// TestRefusedByTheGateway is written back, in all the table's HTTPRoutes.
func TestRefusedByTheGateway(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.api.accept = func(o *gatewayv1.HTTPRoute) error {
		for _, r := range o.Spec.Rules {
			for _, b := range r.BackendRefs {
				if o.Name == "cart" && b.Weight != nil && *b.Weight > 9000 {
					return fmt.Errorf("%s has %d", b.Name, *b.Weight)
				}
			}
		}
		return nil
	}
	if _, err := w.target.Put(t.Context(), both(1, 0.5, 0.5, 0)); err != nil {
		t.Fatal(err)
	}
	_, err := w.target.Put(t.Context(), both(2, 0.05, 0.95, 0))
	if !errors.Is(err, ErrRefused) || errors.Is(err, executor.ErrAgain) || !strings.Contains(err.Error(), "cart-north has 9500") {
		t.Errorf("refused: %v", err)
	}
	w.expect(routertest.Link, at(5000, 5000, 0))
	if got := w.weights(second); got["north"] != 5000 {
		t.Errorf("cart has %v", got)
	}
	if n, err := w.target.Put(t.Context(), both(1, 0.5, 0.5, 0)); n != 0 || err != nil {
		t.Errorf("the good one: %d changes, %v", n, err)
	}
	if err := w.target.Ready(t.Context(), shares.Replica{Component: "cart", Site: "west"}); err != nil {
		t.Errorf("ready: %v", err)
	}
}

// TestSilence of the gateway is consent, and nothing is ready until it speaks.
func TestSilence(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) { o.Wait = 20 * time.Millisecond })
	w.api.silent = true
	w.put(1, 1, 0, 0)
	if w.counts.of(Silent) != 1 {
		t.Error("the silence was not counted")
	}
	west := shares.Replica{Component: routertest.Search, Site: "west"}
	if err := w.target.Ready(t.Context(), west); !errors.Is(err, router.ErrNotReady) || !strings.Contains(err.Error(), "generation 2") {
		t.Errorf("before the gateway saw it: %v", err)
	}
	w.api.settle()
	if err := w.target.Ready(t.Context(), west); err != nil {
		t.Error(err)
	}
	w.api.mu.Lock()
	delete(w.api.ready, "shop/reports") // a reference of a rule leads nowhere
	w.api.mu.Unlock()
	w.api.settle()
	if err := w.target.Ready(t.Context(), west); !errors.Is(err, router.ErrNotReady) {
		t.Errorf("with references that lead nowhere: %v", err)
	}
}

// TestForeignWeight keeps its part of the requests.
func TestForeignWeight(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.edited("shop/front", "search", 1, "weight", int64(100)) // the canary: a quarter
	w.put(1, 0.5, 0.25, 0.25)
	want := at(150, 75, 75)
	want["canary"] = 100
	w.expect(routertest.Link, want)
	w.put(2, 1, 0, 0)
	want = at(300, 0, 0)
	want["canary"] = 100
	w.expect(routertest.Link, want)
	w.edited("shop/front", "search", 1, "weight", int64(0))
	w.put(2, 1, 0, 0)
	w.expect(routertest.Link, at(10000, 0, 0))
}

// TestOverruled: who sets our weights is found, shown and overruled; what else they
// write stays.
func TestOverruled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.put(1, 0.5, 0.5, 0)
	w.edited("shop/front", "search", 0, "weight", int64(1))
	w.edited("shop/front", "reports", 0, "weight", int64(9))
	foreign := w.foreign()
	rows, err := w.target.Observe(t.Context(), routertest.Frontend)
	if err != nil || len(rows) != 2 || rows[0].Ratios[1].Share < 0.99 {
		t.Errorf("shows %v, %v", rows, err)
	}
	if n := w.put(1, 0.5, 0.5, 0); n != 1 {
		t.Errorf("%d weights were set again", n)
	}
	w.expect(routertest.Link, at(5000, 5000, 0))
	if after := w.foreign(); after != foreign {
		t.Errorf("before\n%s\nafter\n%s", foreign, after)
	}
}

// TestStartedAgain knows what drains, and which weights there were before it.
func TestStartedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.put(1, 0.5, 0.25, 0.25)
	north := shares.Replica{Component: routertest.Search, Site: "north"}
	if _, err := w.target.Drain(t.Context(), north); err != nil {
		t.Fatal(err)
	}
	w.expect(routertest.Link, at(6667, 0, 3333))
	if got := w.weights(checkout); got["north"] != 0 || got["east"] != 1 { // no table: its own weights
		t.Errorf("checkout has %v", got)
	}
	w.target = w.open(nil)
	w.put(1, 0.5, 0.25, 0.25)
	w.expect(routertest.Link, at(6667, 0, 3333))
	if err := w.target.Ready(t.Context(), north); !errors.Is(err, router.ErrNotReady) {
		t.Errorf("draining: %v", err)
	}
	w.target = w.open(nil)
	if err := w.target.Undrain(t.Context(), north); err != nil {
		t.Fatal(err)
	}
	if got := w.weights(checkout); got["north"] != 1 {
		t.Errorf("checkout has %v", got)
	}
	w.put(2, 0.5, 0.5, 0)
	w.target = w.open(nil)
	if err := w.target.Clear(t.Context(), routertest.Frontend); err != nil {
		t.Fatal(err)
	}
	w.expect(routertest.Link, at(100, 100, 100))
	b, err := os.ReadFile(filepath.Join(w.folder, "state"))
	if err != nil || string(b) != `{"first":{},"draining":null}` {
		t.Errorf("the state file holds %s, %v", b, err)
	}
	if left, _ := filepath.Glob(filepath.Join(w.folder, ".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if err := os.WriteFile(filepath.Join(w.folder, "state"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(w.target.o); !errors.Is(err, ErrState) {
		t.Errorf("a state file that can't be read: %v", err)
	}
}

// TestStateFile that can't be written holds no table up, and is written later.
func TestStateFile(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "later")
	w := newWorld(t, func(o *Options) { o.StateFile = filepath.Join(folder, "state") })
	w.put(1, 1, 0, 0)
	if w.counts.of(StateFile) == 0 {
		t.Error("no failure was counted")
	}
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	w.put(1, 1, 0, 0)
	if m, err := recall(filepath.Join(folder, "state")); err != nil || !slices.Equal(m.First["shop/front/search"]["west"], []int64{100}) {
		t.Errorf("the state file holds %+v, %v", m, err)
	}
}

// TestEndpoints: Services without a ready endpoint get nothing, unless none has one.
func TestEndpoints(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.put(1, 0.5, 0.5, 0)
	w.up("north", false)
	w.expect(routertest.Link, at(10000, 0, 0))
	rows, err := w.target.Observe(t.Context(), routertest.Frontend)
	if err != nil || rows[0].Ratios[1].Share != 0.5 {
		t.Errorf("shows %v, %v", rows, err)
	}
	w.up("east", false)
	w.expect(routertest.Link, at(5000, 5000, 0))
	w.up("north", true)
	w.expect(routertest.Link, at(0, 10000, 0))
	w.up("east", true)
	w.expect(routertest.Link, at(5000, 5000, 0))
	w.api.mu.Lock()
	delete(w.api.ready, "shop/search-north") // an external name has no slices
	w.api.mu.Unlock()
	w.put(1, 0.5, 0.5, 0)
	w.expect(routertest.Link, at(5000, 5000, 0))
	w.api.denied["endpointslices"] = http.StatusForbidden
	w.up("north", false)
	w.expect(routertest.Link, at(5000, 5000, 0))
	if w.counts.of(Unseen) == 0 {
		t.Error("what may not be seen was not counted")
	}
	w.api.denied["endpointslices"] = http.StatusInternalServerError
	if _, err := w.target.Put(t.Context(), routertest.Table(2, 1, 0, 0)); !errors.Is(err, router.ErrUnreachable) {
		t.Errorf("endpoints that can't be asked for: %v", err)
	}
}

// TestWrites have a rule of their own, or the table is rejected.
func TestWrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	table := routertest.Table(1, 1, 0, 0)
	table.Rows[0].WritesAt = "west"
	if _, err := w.target.Put(t.Context(), table); !errors.Is(err, shares.ErrTable) {
		t.Errorf("without: %v", err)
	}
	w = newWorld(t, func(o *Options) { o.Routes[2].Link, o.Routes[2].Writes = routertest.Link, true })
	if _, err := w.target.Put(t.Context(), table); err != nil {
		t.Fatal(err)
	}
	w.expect(routertest.Link, at(10000, 0, 0))
	o := w.read(key{"shop", "front"})
	if got := o.Spec.Rules[2].BackendRefs; got[0].weight() != 0 || got[2].weight() != 10000 {
		t.Errorf("writes go by %v, %v", got[0].weight(), got[2].weight())
	}
	rows, err := w.target.Observe(t.Context(), routertest.Frontend)
	if err != nil || len(rows) != 2 || rows[0].Ratios[0].Share != 1 {
		t.Errorf("shows %v, %v", rows, err)
	}
}
