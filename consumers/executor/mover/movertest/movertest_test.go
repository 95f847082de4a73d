package movertest

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/objectstore"
	"penstock/infra/objectstore/dir"
	"penstock/infra/objectstore/jetstream"
	"penstock/infra/objectstore/manifest"
)

func folder(t *testing.T) objectstore.Store {
	t.Helper()
	s, err := dir.Open(t.TempDir(), dir.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func bucket(t *testing.T, c *bus.Client, name string) objectstore.Store {
	t.Helper()
	s, err := jetstream.Open(t.Context(), jetstream.Options{JS: c.JS, Bucket: name})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func memory(t *testing.T) objectstore.Store {
	t.Helper()
	s := manifest.New(manifest.NewMemory(nil), manifest.Options{})
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestDir(t *testing.T) {
	Run(t, map[string]objectstore.Store{"a": folder(t), "b": folder(t), "c": folder(t)}, Objects)
}

func TestJetStream(t *testing.T) {
	c := bustest.Client(t, bustest.Start(t))
	Run(t, map[string]objectstore.Store{"a": bucket(t, c, "a"), "b": bucket(t, c, "b"), "c": bucket(t, c, "c")}, Objects)
}

// TestMixed: every site has another kind of store.
func TestMixed(t *testing.T) {
	c := bustest.Client(t, bustest.Start(t))
	Run(t, map[string]objectstore.Store{"dir": folder(t), "jetstream": bucket(t, c, "js"), "manifest": memory(t)}, Objects)
}

// open is a store that says that it has no barrier.
type open struct{ objectstore.Store }

func (s open) Capabilities() objectstore.Capabilities { return objectstore.Capabilities{} }

func (open) Hold(context.Context, string, string) (objectstore.Held, error) {
	return nil, objectstore.ErrNoBarrier
}

// TestNoBarrier: the moves of a store without one end, and the result says that
// nothing is promised.
func TestNoBarrier(t *testing.T) {
	if res := Run(t, map[string]objectstore.Store{"a": folder(t), "b": open{folder(t)}}, Objects); res.Barrier || res.Moves < Moves() {
		t.Errorf("the result is %+v", res)
	}
}

// forgetful acknowledges writes that it throws away.
type forgetful struct{ Writer }

func (f forgetful) Write(ctx context.Context, owner string, n uint64) error {
	if n%10 == 5 {
		return nil
	}
	return f.Writer.Write(ctx, owner, n)
}

// TestLost: a lost write is found.
func TestLost(t *testing.T) {
	r := &run{t: t, clients: map[string]Writer{"a": forgetful{Objects("", folder(t))}}}
	for n := range uint64(20) {
		if err := r.clients["a"].Write(t.Context(), owner, n+1); err != nil {
			t.Fatal(err)
		}
		r.res.Writes++
	}
	r.check("a")
	if r.res.Lost != 2 {
		t.Errorf("%d lost writes were found", r.res.Lost)
	}
}

func TestCircuit(t *testing.T) {
	for n := 2; n <= 6; n++ {
		var sites []string
		for i := range n {
			sites = append(sites, fmt.Sprint(i))
		}
		path := circuit(sites)
		var pairs []string
		for i := range path {
			pairs = append(pairs, path[i]+path[(i+1)%len(path)])
		}
		slices.Sort(pairs)
		if len(slices.Compact(pairs)) != n*(n-1) {
			t.Errorf("of %d sites: %v", n, path)
		}
	}
}
