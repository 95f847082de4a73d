package switching

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"penstock/consumers/decider/statecode"
)

var testFormat = statecode.Format{Magic: "test\n", Fault: errors.New("fault")}

// restarted is a rule of the same options that has the memory of another, by its code.
func restarted(t *rapid.T, r *Rule) *Rule {
	again, err := New(r.opts)
	if err != nil {
		t.Fatal(err)
	}
	c := testFormat.Write()
	r.Memory().Code(c)
	var b bytes.Buffer
	if err := c.Seal(&b); err != nil {
		t.Fatal(err)
	}
	if c, err = testFormat.Read(&b); err != nil {
		t.Fatal(err)
	}
	m := new(Memory)
	if m.Code(c); c.Err() != nil || !m.Fits(len(r.opts.Servers), r.zones) {
		t.Fatalf("%v, or it does not fit", c.Err())
	}
	at := func(n int) (out []int) {
		for i := range n {
			out = append(out, i)
		}
		return out
	}
	again.Adopt(m, at(len(r.opts.Servers)), at(r.zones))
	a, b2 := statecode.Digest(r.Memory().Digest), statecode.Digest(again.Memory().Digest)
	if a != b2 {
		t.Fatal("another digest after a restart")
	}
	return again
}

// Whatever comes in, a decision can be carried out, keeps to the bounds, changes nothing
// inside a cooldown, and is the same after a restart.
func TestDecisionsKeepToTheirBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "servers")
		zones := rapid.IntRange(1, min(n, 3)).Draw(t, "zones")
		o := Options{
			Fixed: rapid.IntRange(0, 5).Draw(t, "fixed") == 0, Forecast: rapid.Bool().Draw(t, "forecast"), Season: 20 * time.Second,
			Cooldown: time.Duration(rapid.IntRange(-1, 8).Draw(t, "cooldown")) * time.Second,
			Hold:     rapid.IntRange(1, 4).Draw(t, "hold"), Retry: 5 * time.Second, MostUp: rapid.IntRange(1, 3).Draw(t, "most up"),
			Least: rapid.IntRange(1, n).Draw(t, "least"),
		}
		o.Most = rapid.IntRange(o.Least, n).Draw(t, "most")
		for i := range n {
			o.Servers = append(o.Servers, Server{Zone: i % zones, Slots: rapid.SampledFrom([]int{1, 4, 16}).Draw(t, "slots"), Cost: rapid.SampledFrom([]float64{0, 0.5, 3}).Draw(t, "cost")})
		}
		r, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		cool := int64(max(0, r.opts.Cooldown))
		states := make([]State, n)
		for i := range states {
			states[i] = rapid.SampledFrom([]State{Off, On, On}).Draw(t, "at first")
		}
		switched := make([]int64, n)
		for i := range switched {
			switched[i] = noTime
		}
		changed := noTime
		at := int64(0)
		for range rapid.IntRange(1, 60).Draw(t, "periods") {
			at += rapid.SampledFrom([]int64{1, 1, 1, 1, 30}).Draw(t, "after") * int64(time.Second)
			for i := range states {
				if moves := rapid.IntRange(0, 3).Draw(t, "moves"); moves > 0 {
					continue
				}
				switch states[i] {
				case Starting:
					states[i] = rapid.SampledFrom([]State{On, Failed}).Draw(t, "started")
				case Draining:
					states[i] = Off
				case On:
					states[i] = rapid.SampledFrom([]State{On, On, On, Failed, Trying}).Draw(t, "stays")
				}
			}
			ob := Observation{At: at, Servers: slices.Clone(states), Gauged: rapid.IntRange(0, 3).Draw(t, "gauged") > 0}
			for range zones {
				x := rapid.SampledFrom([]float64{0, 0, 1, 5, 50}).Draw(t, "load")
				ob.Zones = append(ob.Zones, Load{
					Requests: int64(2 * x), Service: x, Penalty: rapid.SampledFrom([]float64{0, 0, 0.1, 5}).Draw(t, "penalty"),
					Queued: rapid.SampledFrom([]float64{0, 0, 10}).Draw(t, "queued"), InService: x, Potential: rapid.SampledFrom([]float64{0, 0, 50}).Draw(t, "potential"),
				})
			}
			again := restarted(t, r)
			d := r.Step(ob)
			if e := again.Step(ob); !reflect.DeepEqual(d, e) {
				t.Fatalf("after a restart %+v, expected %+v", e, d)
			}
			running, after := 0, 0
			for i, s := range states {
				if s == On || s == Starting {
					running++
				}
				if d.Wanted[i] {
					after++
				}
			}
			for _, i := range d.On {
				if s := states[i]; s != Off && s != Draining && s != Failed {
					t.Fatalf("server %d, state %d, is turned on", i, s)
				}
				if running > 0 && switched[i] != noTime && at-switched[i] < cool {
					t.Fatalf("server %d is turned on %d s after it was switched", i, (at-switched[i])/1e9)
				}
				switched[i], states[i] = at, Starting
			}
			for _, i := range d.Off {
				if states[i] != On || switched[i] != noTime && at-switched[i] < cool {
					t.Fatalf("server %d, state %d, is turned off", i, states[i])
				}
				switched[i], states[i] = at, Draining
			}
			if len(d.Off) > 0 && (len(d.On) > 0 || len(d.Off) > 1 || after < o.Least) {
				t.Fatalf("%+v turns too much off", d)
			}
			if len(d.On) > 0 && after > o.Most {
				t.Fatalf("%d run after %+v, expected %d at most", after, d, o.Most)
			}
			if after == 0 {
				t.Fatalf("nothing is to run after %+v", d)
			}
			if d.Changes() && d.Code != Replaced && d.Code != BelowLeast {
				if changed != noTime && at-changed < cool {
					t.Fatalf("%+v %d s after a change", d, (at-changed)/1e9)
				}
				changed = at
			}
			if d.Code == BelowLeast {
				changed = at
			}
			if o.Fixed && d.Changes() && d.Code != Replaced && d.Code != BelowLeast && d.Code != AboveMost {
				t.Fatalf("%+v of what is fixed", d)
			}
			sum := 0.0
			for z, w := range d.Weights {
				if sum += w; w < 0 || math.IsNaN(w) {
					t.Fatalf("zone %d has weight %v", z, w)
				}
			}
			if math.Abs(sum-1) > 1e-9 {
				t.Fatalf("weights %v add up to %v", d.Weights, sum)
			}
			for z, w := range d.Weights {
				on, some := false, false
				for i, s := range states {
					on = on || s == On && o.Servers[i].Zone == z
					some = some || s == On
				}
				if w > 0 && !on && some {
					t.Fatalf("zone %d has weight %v and no server on: %v", z, w, states)
				}
			}
			if _, err := json.Marshal(d); err != nil {
				t.Fatal(err) // Nothing in it is endless.
			}
		}
	})
}

// A zone's weight is what its places give, by their speed, in steps; one that is small has a
// part, and who stands where in the configuration decides nothing but ties (P33).
func TestWeights(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		slots   []int
		service []float64 // s of a request
		want    []float64
	}{
		{[]int{1, 1, 1}, []float64{1, 1, 1}, []float64{0.334, 0.333, 0.333}},
		{[]int{1, 3}, []float64{1, 1}, []float64{0.25, 0.75}},
		{[]int{2, 2}, []float64{1, 2}, []float64{0.667, 0.333}},
		{[]int{2, 2}, []float64{1, 100}, []float64{0.8, 0.2}},
		{[]int{100_000, 1}, []float64{1, 1}, []float64{0.999, 0.001}},
		{[]int{1, 100_000}, []float64{1, 1}, []float64{0.001, 0.999}},
	} {
		o := Options{Fixed: true, WeightStep: 0.05}
		ob := Observation{Gauged: true}
		for z := range c.slots {
			o.Servers = append(o.Servers, Server{Zone: z, Slots: c.slots[z]})
			ob.Servers = append(ob.Servers, On)
			ob.Zones = append(ob.Zones, Load{Requests: 100, Service: 100 * c.service[z], InService: 1})
		}
		r, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		var last []float64
		for n := range 30 {
			ob.At = int64(n+1) * int64(time.Second)
			d := r.Step(ob)
			for z, w := range d.Weights {
				if last != nil && math.Abs(w-last[z]) > 0.06 {
					t.Errorf("%v: from %v to %v in a period", c.slots, last, d.Weights)
				}
			}
			last = d.Weights
		}
		if !reflect.DeepEqual(last, c.want) {
			t.Errorf("%v of %v s: got %v, expected %v", c.slots, c.service, last, c.want)
		}
	}
}

func TestOptionsWithFaults(t *testing.T) {
	t.Parallel()
	one := []Server{{Slots: 1}}
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{}, `servers: got "0", expected 1 to 4096`},
		{Options{Servers: []Server{{Slots: 1}, {Zone: 2, Slots: 1}}}, `servers: got "no server of zone 1"`},
		{Options{Servers: []Server{{}}}, `servers[0].slots: got "0", expected 1 to 1,048,576`},
		{Options{Servers: []Server{{Slots: 1, Cost: -1}}}, `servers[0].cost: got "-1", expected above 0`},
		{Options{Servers: one, Cost: math.NaN()}, `cost: got "NaN", expected above 0`},
		{Options{Servers: one, Critical: -1}, `critical: got "-1", expected above 0`},
		{Options{Servers: one, Hysteresis: 1}, `hysteresis: got "1", expected above 0, below 1`},
		{Options{Servers: one, Utilisation: 1.1}, `utilisation: got "1.1", expected above 0, at most 1`},
		{Options{Servers: one, Hold: -1}, `hold: got "-1", expected 1 to 3600 periods`},
		{Options{Servers: one, Period: 1}, `period: got "1ns", expected 1 ms to a day`},
		{Options{Servers: one, Cooldown: 1000 * time.Hour}, `cooldown: got "1000h0m0s", expected at most a week`},
		{Options{Servers: one, StartDelay: 100 * time.Hour}, `start_delay: got "100h0m0s", expected at most a day`},
		{Options{Servers: one, Least: 2}, `least: got "2", expected 1 to the number of servers`},
		{Options{Servers: one, Most: 2}, `most: got "2", expected least to the number of servers`},
		{Options{Servers: one, MostUp: -1}, `most_up: got "-1", expected at least 1`},
		{Options{Servers: one, Retry: -1}, `retry: got "-1ns", expected above 0`},
		{Options{Servers: one, MinSamples: -1}, `min_samples: got "-1", expected at least 1`},
		{Options{Servers: one, WeightStep: 2}, `weight_step: got "2", expected above 0, at most 1`},
		{Options{Servers: one, Season: time.Second}, `season: got "1s", expected four periods to a year`},
	} {
		if _, err := New(c.o); !errors.Is(err, ErrOptions) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v\nexpected %s", err, c.want)
		}
	}
}

// An observation of other zones or servers is left out, and nothing is decided by it.
func TestWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	r, err := New(Options{Servers: []Server{{Slots: 1}, {Slots: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []Observation{{}, {At: 1, Zones: make([]Load, 2), Servers: make([]State, 2)}, {At: 1, Zones: make([]Load, 1), Servers: make([]State, 1)}} {
		if d := r.Step(o); d.Changes() || d.Code != InsufficientSamples || len(d.Wanted) != 2 || len(d.Weights) != 1 {
			t.Errorf("%+v", d)
		}
	}
}

func BenchmarkStep(b *testing.B) {
	servers := make([]Server, 100)
	o := Observation{Zones: make([]Load, 4), Servers: make([]State, 100), Gauged: true}
	for i := range servers {
		servers[i] = Server{Zone: i % 4, Slots: 16}
		o.Servers[i] = State(i / 50 * int(On))
	}
	r, err := New(Options{Servers: servers, Forecast: true})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		o.At += int64(time.Second)
		for z := range o.Zones {
			o.Zones[z] = Load{Requests: 500, Service: 100, InService: 120, Queued: 3}
		}
		r.Step(o)
	}
}
