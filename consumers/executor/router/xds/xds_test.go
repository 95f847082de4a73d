package xds

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"penstock/consumers/executor"
	"penstock/consumers/executor/router"
	"penstock/consumers/executor/router/routertest"
	"penstock/infra/shares"
)

// both is a table for the two links of Frontend.
func both(epoch uint64, split ...float64) shares.Table {
	t := routertest.Table(epoch, split...)
	row := t.Rows[0]
	row.To = second.To
	t.Rows = append(t.Rows, row)
	return t
}

// TestThousandChanges has clients of both variants follow 1,000 tables: after each
// both have it, in routes and in localities, exactly.
func TestThousandChanges(t *testing.T) {
	t.Parallel()
	w := open(t, nil).follow(&client{}, &client{})
	foreign := w.suite().Foreign()
	random := rand.New(rand.NewPCG(5, 1000))
	const changes = 1000
	for epoch := range uint64(changes) {
		split := []float64{random.Float64(), random.Float64(), float64(random.IntN(2)) * random.Float64()}
		table := both(epoch+1, split...)
		if _, err := w.target.Put(t.Context(), table); err != nil {
			t.Fatal(err)
		}
		units, err := shares.Remainder(split, Units)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range []shares.Link{routertest.Link, second} {
			for name, c := range map[string]*client{"whole": w.whole, "delta": w.delta} {
				weights := c.weights(w.split(l))
				for i, site := range routertest.Sites {
					if int(weights[site]) != units[i] {
						t.Fatalf("epoch %d, %s to %s: weights %v, not %v", table.Epoch, name, l.To, weights, units)
					}
				}
			}
		}
	}
	// The types that change, and nothing else, were sent once each.
	for name, c := range map[string]*client{"whole": w.whole, "delta": w.delta} {
		if n := c.responses.Load(); n > int64(len(asked))+2*changes {
			t.Errorf("%s got %d responses for %d changes", name, n, changes)
		}
	}
	if after := w.suite().Foreign(); after != foreign {
		t.Error("what isn't Frontend's has changed")
	}
}

// mostNorth refuses more than nine tenths at north.
func mostNorth(b Base) error {
	s := splits()[0]
	if len(b.Routes) == 0 {
		return nil
	}
	split, err := s.shares(&b)
	if err != nil {
		return err
	}
	if split["north"] > 0.9 {
		return fmt.Errorf("north has %v", split["north"])
	}
	return nil
}

// TestRefusal (NACK) of either client keeps the last good for all, is not sent
// again, and ends with another table.
func TestRefusal(t *testing.T) {
	t.Parallel()
	for _, variant := range []string{"whole", "delta"} {
		t.Run(variant, func(t *testing.T) {
			t.Parallel()
			clients := map[string]*client{"whole": {}, "delta": {}}
			clients[variant].judge = mostNorth
			w := open(t, nil).follow(clients["whole"], clients["delta"])
			good := both(1, 0.5, 0.5, 0)
			if _, err := w.target.Put(t.Context(), good); err != nil {
				t.Fatal(err)
			}
			expect := func(north uint32) {
				t.Helper()
				late := time.Now().Add(10 * time.Second)
				for {
					a, b := w.whole.weights(w.split(routertest.Link))["north"], w.delta.weights(w.split(routertest.Link))["north"]
					if a == north && b == north {
						return
					}
					if time.Now().After(late) {
						t.Fatalf("north has %d and %d, not %d", a, b, north)
					}
					time.Sleep(time.Millisecond)
				}
			}
			bad := both(2, 0.05, 0.95, 0)
			for i := range 3 {
				// Rows of others don't make it another table.
				bad.Rows = append(bad.Rows, shares.Row{FromSite: strconv.Itoa(i), To: "others", Ratios: []shares.Ratio{{Site: "east", Share: 1}}})
				n, err := w.target.Put(t.Context(), bad)
				if !errors.Is(err, ErrRefused) || errors.Is(err, executor.ErrAgain) || !strings.Contains(err.Error(), "north has 0.95") {
					t.Errorf("%d changes, %v", n, err)
				}
				expect(5000)
			}
			if n := clients[variant].refusals.Load(); n != 1 {
				t.Errorf("what was refused was sent %d times", n)
			}
			rows, err := w.target.Observe(t.Context(), routertest.Frontend)
			if err != nil || len(rows) != 2 || rows[0].Ratios[1].Share != 0.5 {
				t.Errorf("shows %v, %v", rows, err)
			}
			if n, err := w.target.Put(t.Context(), good); n != 0 || err != nil {
				t.Errorf("the good one: %d changes, %v", n, err)
			}
			if _, err := w.target.Put(t.Context(), both(3, 0.2, 0.8, 0)); err != nil {
				t.Error(err)
			}
			expect(8000)
			for name, c := range clients {
				select {
				case err := <-c.ended:
					t.Errorf("the stream of %s has ended: %v", name, err)
				default:
				}
			}
		})
	}
}

// TestRefusalOfTheGood ends the stream of a client that refuses what others took.
func TestRefusalOfTheGood(t *testing.T) {
	t.Parallel()
	for _, delta := range []bool{false, true} {
		w := open(t, nil).follow(&client{}, &client{})
		if _, err := w.target.Put(t.Context(), both(1, 0.05, 0.95, 0)); err != nil {
			t.Fatal(err)
		}
		strange := follow(t, w.conn, &client{delta: delta, judge: mostNorth})
		if err := <-strange.ended; status.Code(err) == codes.OK || !strings.Contains(err.Error(), ErrStream.Error()) {
			t.Errorf("the stream ended with %v", err)
		}
		if n := strange.refusals.Load(); n != 1 {
			t.Errorf("it refused %d times", n)
		}
		if weights := w.whole.weights(w.split(routertest.Link)); weights["north"] != 9500 {
			t.Errorf("others have %v", weights)
		}
	}
}

// TestSilence of a client is waited for, counted, and may end in a refusal, which
// counts for all.
func TestSilence(t *testing.T) {
	t.Parallel()
	c := &counts{}
	mute := make(chan struct{})
	slow := &client{mute: mute, judge: mostNorth}
	w := open(t, func(o *Options) { o.Wait, o.Metrics = 30*time.Millisecond, c }).follow(slow, &client{})
	bad := both(1, 0.05, 0.95, 0)
	if _, err := w.target.Put(t.Context(), bad); err != nil {
		t.Error(err)
	}
	if c.silent.Load() == 0 {
		t.Error("nobody was silent")
	}
	close(mute)
	late := time.Now().Add(10 * time.Second)
	for w.delta.weights(w.split(routertest.Link))["north"] != 100 {
		if time.Now().After(late) {
			t.Fatal("what was refused stays")
		}
		time.Sleep(time.Millisecond)
	}
	if _, err := w.target.Put(t.Context(), bad); !errors.Is(err, ErrRefused) || slow.refusals.Load() != 1 {
		t.Errorf("the same again: %v, refused %d times", err, slow.refusals.Load())
	}
}

// TestRefusedDrain leaves the replica where it was.
func TestRefusedDrain(t *testing.T) {
	t.Parallel()
	w := open(t, nil).follow(&client{judge: mostNorth}, &client{})
	if _, err := w.target.Put(t.Context(), both(1, 0.5, 0.5, 0)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.target.Drain(t.Context(), shares.Replica{Component: routertest.Search, Site: "east"}); !errors.Is(err, ErrRefused) {
		t.Errorf("drain: %v", err)
	}
	if _, err := w.target.Put(t.Context(), both(2, 0.4, 0.6, 0)); err != nil {
		t.Error(err)
	}
	if weights := w.delta.weights(w.split(routertest.Link)); weights["east"] != 4000 {
		t.Errorf("weights %v", weights)
	}
}

// TestNobodyListens: what is put is served to those who come.
func TestNobodyListens(t *testing.T) {
	t.Parallel()
	w := open(t, func(o *Options) { o.Running = nil })
	if _, err := w.target.Put(t.Context(), both(1, 0.25, 0.25, 0.5)); err != nil {
		t.Fatal(err)
	}
	if n, err := w.target.Drain(t.Context(), shares.Replica{Component: routertest.Search, Site: "west"}); n != -1 || !errors.Is(err, shares.ErrRemaining) {
		t.Errorf("a drain that nobody can see: %d, %v", n, err)
	}
	w.follow(&client{}, &client{})
	want := map[string]uint32{"east": 5000, "north": 5000, "west": 0}
	for _, c := range []*client{w.whole, w.delta} {
		if weights := c.weights(w.split(routertest.Link)); !maps.Equal(weights, want) {
			t.Errorf("weights %v", weights)
		}
	}
}

// TestTotalWeight keeps the sum that an old route says, foreign weights included.
func TestTotalWeight(t *testing.T) {
	t.Parallel()
	o := Options{Base: base(t), Splits: splits()}
	old := o.Splits[0].weighted(&o.Base)
	old.TotalWeight = wrapperspb.UInt32(100) //nolint:staticcheck // As above.
	old.Clusters[3].Weight = wrapperspb.UInt32(10)
	for _, c := range old.Clusters[:3] {
		c.Weight = wrapperspb.UInt32(30)
	}
	target, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := target.Put(t.Context(), routertest.Table(1, 0.5, 0.3, 0.2)); err != nil {
		t.Fatal(err)
	}
	var got []uint32
	for _, c := range target.o.Splits[0].weighted(&target.current.base).GetClusters() {
		got = append(got, c.GetWeight().GetValue())
	}
	if fmt.Sprint(got) != "[45 27 18 10]" {
		t.Errorf("weights %v", got)
	}
}

// TestOptions that can't work, and configurations that can't be served.
func TestOptions(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		spoil func(o *Options)
		err   error
	}{
		"no splits":          {func(o *Options) { o.Splits = nil }, router.ErrOptions},
		"negative time":      {func(o *Options) { o.Wait = -1 }, router.ErrOptions},
		"no link":            {func(o *Options) { o.Splits[0].Link = shares.Link{} }, router.ErrOptions},
		"route and zones":    {func(o *Options) { o.Splits[0].Endpoints, o.Splits[0].Zones = "cart", o.Splits[2].Zones }, router.ErrOptions},
		"no such route":      {func(o *Options) { o.Splits[0].Route = "x" }, router.ErrOptions},
		"no such cluster":    {func(o *Options) { o.Splits[0].Clusters = map[string]string{"east": "x"} }, router.ErrOptions},
		"no such endpoints":  {func(o *Options) { o.Splits[2].Endpoints = "x" }, router.ErrOptions},
		"weights not minded": {func(o *Options) { o.Base.Clusters[0].CommonLbConfig = nil }, router.ErrOptions},
		"not valid":          {func(o *Options) { o.Base.Routes[0].VirtualHosts[0].Domains = nil }, ErrInvalid},
		"dangling":           {func(o *Options) { o.Base.Listeners = []*listenerv3.Listener{} }, ErrInvalid},
	} {
		o := Options{Base: base(t), Splits: splits()}
		tc.spoil(&o)
		if _, err := New(o); !errors.Is(err, tc.err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWrites need something of their own.
func TestWrites(t *testing.T) {
	t.Parallel()
	table := routertest.Table(1, 1, 0, 0)
	table.Rows[0].WritesAt = "west"
	o := Options{Base: base(t), Splits: splits()}
	target, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := target.Put(context.Background(), table); !errors.Is(err, shares.ErrTable) {
		t.Errorf("without: %v", err)
	}
	o.Splits[1].Link, o.Splits[1].Writes = routertest.Link, true
	if target, err = New(o); err != nil {
		t.Fatal(err)
	}
	if _, err := target.Put(context.Background(), table); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"east", "west"} {
		if split, err := target.o.Splits[i].shares(&target.current.base); err != nil || split[want] != 1 {
			t.Errorf("split %d: %v, %v", i, split, err)
		}
	}
}

type counts struct{ silent atomic.Int64 }

func (c *counts) Count(k executor.Counter, _ string, n int64) {
	if k == Silent {
		c.silent.Add(n)
	}
}
