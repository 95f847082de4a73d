package dispatcher

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// others is Others that a test says.
type others struct {
	mu  sync.Mutex
	all map[string]Load
}

func (o *others) Zone(name string) (Load, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	l, ok := o.all[name]
	return l, ok
}

func (o *others) set(name string, l Load) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all[name] = l
}

// Of zones without weights the one with the least potential penalty per request gets the
// next one, that of others counted in; least load decides among equals, and where what
// others say is old.
func TestZonesByPenalty(t *testing.T) {
	t.Parallel()
	o := &others{all: map[string]Load{}}
	w := begin(t, func(opts *Options) { opts.InService, opts.Others = 4, o }, zoneOf("z", "a"), zoneOf("y", "b"))
	next := func(want, why string) {
		t.Helper()
		w.clock.Advance(figures10)
		a := w.ask(Facts{Class: "dynamic"})
		if got := a.at(); got != want {
			t.Errorf("%s: got %s, expected %s", why, got, want)
		}
		a.ticket.Done(Result{Gone: true})
	}
	next("a", "equal, so the first")
	kept := w.ask(Facts{})
	next("b", "less loaded")
	o.set("y", Load{Requests: 10, Potential: 5, At: w.clock.Now()})
	next("a", "no penalty")
	o.set("z", Load{Requests: 2, Potential: 5, At: w.clock.Now()})
	next("b", "less penalty per request")
	w.clock.Advance(freshFor + 1)
	next("b", "old, so that less load of our own counts")
	o.set("z", Load{Requests: 0, Potential: 0, At: w.clock.Now()})
	next("b", "one of them is old, so that load counts: of y only ours is known")
	o.set("y", Load{Requests: 40, Potential: 0, At: w.clock.Now()})
	next("a", "all are fresh, and y has more")
	kept.served(0)
}

const figures10 = time.Duration(figuresFor)

// By load it is requests for places.
func TestZonesByLoad(t *testing.T) {
	t.Parallel()
	w := begin(t, func(o *Options) { o.Zone, o.InService = ByLoad, 2 }, zoneOf("z", "a"), zoneOf("y", "b", "c", "d"))
	got := ""
	for range 8 {
		got += w.ask(Facts{}).at()
	}
	if strings.Count(got, "a") != 2 {
		t.Errorf("got %s", got)
	}
	for range 8 {
		w.next().served(0)
	}
}

// Weights in force are kept to within the slack, whatever penalties say; a zone without
// one gets nothing unless nobody else can.
func TestZonesByWeight(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		o := &others{all: map[string]Load{}}
		names := []string{"x", "y", "z"}
		w := begin(t, func(opts *Options) { opts.InService, opts.Others = 1000, o },
			zoneOf("x", "x0"), zoneOf("y", "y0", "y1"), zoneOf("z", "z0"))
		weights, sum := map[string]float64{}, 0.0
		for _, name := range names {
			weights[name] = rapid.SampledFrom([]float64{0, 0.5, 1, 2, 7}).Draw(rt, name)
			sum += weights[name]
		}
		if sum == 0 {
			weights["x"], sum = 1, 1
		}
		if err := w.Put(table(nil, weights, "x0", "y0", "y1", "z0"), 1, time.Time{}); err != nil {
			rt.Fatal(err)
		}
		worst := rapid.SampledFrom(names).Draw(rt, "worst")
		n := rapid.IntRange(1, 300).Draw(rt, "n")
		got := map[string]int{}
		for range n {
			w.clock.Advance(time.Duration(rapid.IntRange(100, 300).Draw(rt, "ms")) * time.Millisecond)
			o.set(worst, Load{Requests: 1, Potential: 100, At: w.clock.Now()})
			ticket, err := w.Admit(t.Context(), Facts{Class: "dynamic"})
			if err != nil {
				rt.Fatal(err)
			}
			got[ticket.Server()[:1]]++
			if rapid.Bool().Draw(rt, "ends") {
				ticket.Done(Result{OK: true, Service: time.Millisecond})
			}
		}
		for _, name := range names {
			if due := float64(n) * weights[name] / sum; math.Abs(float64(got[name])-due) > 2*(leastSlack+2) || weights[name] == 0 && got[name] > 0 {
				rt.Errorf("of %d zone %s got %d, due are %.1f (all %v, weights %v)", n, name, got[name], due, got, weights)
			}
		}
		if up := len(names); up > 0 {
			w.Usable([]string{"z0"})
			ticket, err := w.Admit(t.Context(), Facts{})
			if err != nil || ticket.Server() != "z0" {
				rt.Errorf("the only one that is left got nothing: %v", err)
			}
		}
	})
}

// Dispatchers that share M by fixed numbers never have more than M together.
func TestStaticShares(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		of, m := rapid.IntRange(1, 9).Draw(rt, "of"), rapid.IntRange(0, 40).Draw(rt, "m")
		server := rapid.StringN(1, 20, 40).Draw(rt, "server")
		sum := 0
		for rank := range of {
			n := Static{Of: of, Rank: rank}.Share(server, m)
			if n < m/of || n > m/of+1 {
				rt.Errorf("rank %d of %d has %d of %d", rank, of, n, m)
			}
			sum += n
		}
		if sum != m {
			rt.Errorf("%d share %d out of %d", of, sum, m)
		}
	})
	has := map[int]bool{}
	for server := range 20 {
		for rank := range 3 {
			has[rank] = has[rank] || Static{Of: 3, Rank: rank}.Share(fmt.Sprint("10.0.0.", server, ":80"), 1) == 1
		}
	}
	if len(has) != 3 || !has[0] || !has[1] || !has[2] {
		t.Errorf("places at some server have %v", has)
	}
}
