package picker

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"penstock/infra/clock"
	"penstock/schemas/control"
)

var (
	errBroken = errors.New("broken")
	errGone   = fmt.Errorf("call: %w", &net.OpError{Op: "dial", Err: errors.New("connection refused")})
)

// still is a picker that knows what it is told here, and follows nothing.
func still(t testing.TB, answers ...*control.SplitAnswer) (*Picker, *callee, *clock.Manual) {
	t.Helper()
	c := clock.NewManual(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	p := open(t, "http://127.0.0.1:1", func(o *Options) { o.Clock = c })
	cart := newCallee(p, "cart")
	p.callees.Store(&map[string]*callee{"cart": cart})
	for _, a := range answers {
		ok(t, cart.apply(a, false))
	}
	return p, cart, c
}

// TestKeys: the same key has the same server from all who know the same, and only
// those of a server that goes go elsewhere.
func TestKeys(t *testing.T) {
	t.Parallel()
	a := told(1, 0.6, 0.4)
	a.Ratios[0].Servers = []string{"http://e1", "http://e2", "http://e3"}
	one, _, _ := still(t, a)
	reversed := told(1, 0.6, 0.4)
	reversed.Ratios[0].Servers = []string{"http://e3", "http://e2", "http://e1"}
	two, _, _ := still(t, told(0, 1, 0), reversed)
	const keys = 3000
	got := map[string]int{}
	for k := range keys {
		key := fmt.Sprint("session-", k)
		c := one.PickFor("cart", key)
		if d := two.PickFor("cart", key); c.Server != d.Server || c.Site != d.Site {
			t.Fatalf("%s: %s and %s", key, c.Server, d.Server)
		}
		got[c.Server]++
	}
	for server, want := range map[string]int{"http://e1": keys / 5, "http://e2": keys / 5, "http://e3": keys / 5, "http://w1": 2 * keys / 5} {
		if n := got[server]; n < want*8/10 || n > want*12/10 {
			t.Errorf("%s has %d keys, not about %d", server, n, want)
		}
	}
	for k := range keys { // one fails: its keys alone move
		if c := two.PickFor("cart", fmt.Sprint("session-", k)); c.Server == "http://e2" {
			c.Done(errGone)
			break
		}
	}
	for k := range keys {
		key := fmt.Sprint("session-", k)
		c, d := one.PickFor("cart", key), two.PickFor("cart", key)
		if (c.Server == d.Server) != (c.Server != "http://e2") || d.Site != c.Site {
			t.Fatalf("%s was at %s and is at %s", key, c.Server, d.Server)
		}
	}
}

// TestWrites go to the site for writes, whatever its share and health.
func TestWrites(t *testing.T) {
	t.Parallel()
	a := told(4, 1, 0)
	a.WritesAt = "west"
	p, _, _ := still(t, told(3, 1, 0))
	if c := p.PickWrite("cart"); c.Site != "east" {
		t.Errorf("without a site for writes: %+v", c)
	}
	p, _, _ = still(t, a)
	for range 3 {
		c := p.PickWrite("cart")
		if c.Site != "west" || c.Server != "http://w1" || c.Epoch != 4 {
			t.Errorf("%+v", c)
		}
		c.Done(errGone)
	}
	if c := p.Pick("cart"); c.Site != "east" {
		t.Errorf("a read: %+v", c)
	}
}

// TestChoicesAreWhole: while tables, sites and servers change under picks, each is a
// server of the site, by the shares of a table, and the sites of one and the other
// exist in that table alone.
func TestChoicesAreWhole(t *testing.T) {
	t.Parallel()
	answer := func(epoch uint64) *control.SplitAnswer {
		site := "site-" + strconv.FormatUint(epoch, 10)
		return &control.SplitAnswer{Component: "cart", From: "web", FromSite: "east", Epoch: epoch, Known: true, Ratios: []control.SplitSite{
			{Site: site, Share: 1, Servers: []string{"http://" + site + "-a", "http://" + site + "-b"}},
		}}
	}
	p, cart, _ := still(t, answer(1))
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
				c := p.PickFor("cart", [...]string{"", "a", "b"}[g])
				want := "site-" + strconv.FormatUint(c.Epoch, 10)
				if c.Site != want || c.Server != "http://"+want+"-a" && c.Server != "http://"+want+"-b" || c.Epoch < last {
					t.Errorf("%+v after epoch %d", c, last)
					return
				}
				last = c.Epoch
				if g == 2 {
					c.Done(errBroken)
				} else {
					c.Done(nil)
				}
			}
		})
	}
	for epoch := uint64(2); epoch <= 300; epoch++ {
		ok(t, cart.apply(answer(epoch), epoch%50 == 0))
	}
	close(stop)
	all.Wait()
}

// TestFewAreFollowed: a caller that picks by what others send makes no questions
// without end.
func TestFewAreFollowed(t *testing.T) {
	t.Parallel()
	p := open(t, "http://127.0.0.1:1", func(o *Options) { o.Retry = time.Minute })
	many := map[string]*callee{}
	for i := range mostCallees {
		name := strconv.Itoa(i)
		many[name] = newCallee(p, name)
	}
	p.callees.Store(&many)
	for _, name := range []string{"cart", "", string(make([]byte, control.MaxID+1))} {
		if c := p.Pick(name); c.Site != "east" || (c.Server != "") != (name == "cart") {
			t.Errorf("%.10q: %+v", name, c)
		}
	}
	if n := len(p.States()); n != mostCallees {
		t.Errorf("%d are followed", n)
	}
	if n := testutil.ToFloat64(p.metrics.tooMany); n != 3 {
		t.Errorf("%v are not", n)
	}
}

// TestOpenAndClose while others pick: nothing hangs, leaks, or picks nothing.
func TestOpenAndClose(t *testing.T) {
	t.Parallel()
	x := startAPI(t, told(1, 0.5, 0.5))
	for range 30 {
		p := open(t, x.url(), nil)
		var all sync.WaitGroup
		for g := range 4 {
			all.Go(func() {
				for i := range 20 {
					if c := p.Pick("cart"); c.Server == "" {
						t.Error("no server")
					}
					p.Pick(strconv.Itoa(g*100 + i)).Done(nil)
				}
			})
		}
		all.Go(p.Close)
		p.Close()
		all.Wait()
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	good := func() Options { return Options{URL: "http://x", Component: "web", Site: "east"} }
	for name, change := range map[string]func(*Options){
		"no URL":       func(o *Options) { o.URL = "" },
		"no component": func(o *Options) { o.Component = "" },
		"no site":      func(o *Options) { o.Site = "" },
		"no scheme":    func(o *Options) { o.URL = "x:80" },
		"a query":      func(o *Options) { o.URL = "http://x?y" },
		"a fallback":   func(o *Options) { o.Fallback = map[string][]string{"cart": {"x"}} },
		"negative":     func(o *Options) { o.Out = -1 },
	} {
		o := good()
		change(&o)
		if p, err := Open(t.Context(), o); !errors.Is(err, ErrOptions) || p != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	registry := prometheus.NewRegistry()
	o := good()
	o.Registerer, o.URL = registry, "https://x/base/"
	p, err := Open(t.Context(), o)
	ok(t, err)
	defer p.Close()
	if got := p.o.question("a/b c"); got != "https://x/base/v1/split/a%2Fb%20c?from=web&from_site=east&wait=30s" {
		t.Errorf("asks %s", got)
	}
	if _, err := Open(t.Context(), o); err == nil {
		t.Error("metrics twice")
	}
}

// TestPickAllocatesNothing in any way of picking.
func TestPickAllocatesNothing(t *testing.T) {
	a := told(1, 0.5, 0.5)
	a.WritesAt = "west"
	p, _, _ := still(t, a)
	p.Pick("cart").Done(errGone)
	if n := testing.AllocsPerRun(1000, func() {
		p.Pick("cart").Done(nil)
		p.PickFor("cart", "session").Done(nil)
		p.PickWrite("cart").Done(nil)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkPick picks among 20 components with ten sites of four servers each.
func BenchmarkPick(b *testing.B) {
	p := open(b, "http://127.0.0.1:1", nil)
	all := map[string]*callee{}
	var names []string
	for i := range 20 {
		name := fmt.Sprint("component-", i)
		a := &control.SplitAnswer{Component: name, From: "web", FromSite: "site-0", Epoch: 1, Known: true, WritesAt: "site-3"}
		for s := range 10 {
			site := control.SplitSite{Site: fmt.Sprint("site-", s), Share: 0.1}
			for n := range 4 {
				site.Servers = append(site.Servers, fmt.Sprintf("http://10.0.%d.%d:8080", s, n))
			}
			a.Ratios = append(a.Ratios, site)
		}
		c := newCallee(p, name)
		c.link.FromSite = "site-0"
		ok(b, c.apply(a, false))
		all[name] = c
		names = append(names, name)
	}
	p.callees.Store(&all)
	for name, pick := range map[string]func(i int) Choice{
		"turn":  func(i int) Choice { return p.Pick(names[i%20]) },
		"key":   func(i int) Choice { return p.PickFor(names[i%20], names[i%7]) },
		"write": func(i int) Choice { return p.PickWrite(names[i%20]) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				pick(i).Done(nil)
				i++
			}
		})
	}
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			i := 0
			for pb.Next() {
				p.Pick(names[i%20]).Done(nil)
				i++
			}
		})
	})
}
