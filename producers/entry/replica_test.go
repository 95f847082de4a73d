package entry

import (
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"penstock/infra/clock"
	"penstock/infra/shares"
)

// A replica that fails again as soon as it is tried rests twice as long, up to eight
// times; one answer makes it as good as new.
func TestReplicasRestLonger(t *testing.T) {
	t.Parallel()
	manual := clock.NewManual(time.Date(2026, 5, 17, 10, 0, 0, 0, time.UTC))
	router := shares.New(shares.Options{})
	e := &Entry{o: Options{Clock: manual, Shares: router}}
	e.watches.Store(true)
	r := &replica{name: shares.Replica{Component: "cart", Site: "b"}}
	up := func() bool { return router.Ready(t.Context(), r.name) == nil }
	fail := func(times int, sure bool) {
		for range times {
			e.failed(r, sure)
		}
	}
	rests := func() (seconds int) {
		for !up() {
			manual.Advance(time.Second)
			seconds++
			e.looksAt(r, nil)
		}
		return seconds
	}
	if fail(2, false); !up() {
		t.Error("down after two failures")
	}
	if e.succeeded(r); r.blemished.Load() {
		t.Error("blemished after an answer")
	}
	fail(3, false)
	for i, want := range []int{5, 10, 20, 40, 40} {
		if got := rests(); got != want {
			t.Errorf("rest %d took %d s, expected %d", i, got, want)
		}
		fail(1, false)
	}
	if e.succeeded(r); !up() {
		t.Error("down after an answer")
	}
	if fail(1, true); up() {
		t.Error("up after what is sure")
	}
	if got := rests(); got != 5 {
		t.Errorf("rested %d s", got)
	}
	fail(1, false)
	e.o.Shares = router
	e.components = []*component{{replicas: []*replica{r}}}
	if e.forget(); !up() {
		t.Error("down when nobody looks any more")
	}
	if fail(5, true); !up() {
		t.Error("told when nobody looks any more")
	}
}

// No link ever sends more than its part, whatever the order of requests and probes.
func TestAllowances(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.SampledFrom([]float64{0, 0.001, 0.02, 0.1}).Draw(t, "part")
		var a allowance
		requests, sent := 0, 0
		for _, due := range rapid.SliceOfN(rapid.Bool(), 0, 500).Draw(t, "due") {
			requests++
			if a.earn(part); due && a.spend() {
				sent++
			}
			if float64(sent) > part*float64(requests)+1e-9 {
				t.Fatalf("%d probes of %d requests", sent, requests)
			}
		}
		burst := 0
		for a.spend() {
			burst++
		}
		if burst > probesSaved {
			t.Fatalf("%d probes at once", burst)
		}
	})
}

// So many probes run at once and no more; none does when they have ended.
func TestProbesAtOnce(t *testing.T) {
	t.Parallel()
	var p probes
	if _, reason := p.enter(); reason != "ended" {
		t.Errorf("before the beginning: %q", reason)
	}
	p.begin()
	for i := range probesAtOnce {
		if _, reason := p.enter(); reason != "" {
			t.Fatalf("number %d: %s", i, reason)
		}
	}
	if _, reason := p.enter(); reason != "busy" {
		t.Errorf("one too many: %s", reason)
	}
	p.leave()
	ctx, reason := p.enter()
	if reason != "" {
		t.Errorf("after one has left: %s", reason)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.end()
	}()
	<-ctx.Done()
	select {
	case <-ended:
		t.Error("it does not wait for those that run")
	default:
	}
	for range probesAtOnce {
		p.leave()
	}
	<-ended
	if _, reason := p.enter(); reason != "ended" {
		t.Errorf("after the end: %q", reason)
	}
}

// The links that are counted are bounded.
func TestLinksOfProbesAreBounded(t *testing.T) {
	t.Parallel()
	var p probes
	full := make(map[shares.Link]*allowance, probeLinks)
	for i := range probeLinks {
		full[shares.Link{From: strconv.Itoa(i)}] = new(allowance)
	}
	p.links.Store(&full)
	if p.make(shares.Link{From: "one more"}) != nil || p.make(shares.Link{From: "7"}) != full[shares.Link{From: "7"}] || len(*p.links.Load()) != probeLinks {
		t.Error("one link too many is counted")
	}
}

func TestHosts(t *testing.T) {
	t.Parallel()
	c := &component{hosts: []string{"cart.internal", ".shop.example"}}
	for host, want := range map[string]bool{
		"cart.internal": true, "CART.internal:80": true, "cart.internal.": true, "cart.internal.:8080": true, "x.cart.internal": false,
		"a.shop.example": true, "a.b.shop.example": true, "shop.example": false, ".shop.example": false, "xshop.example": false,
		"": false, ":": false, "[::1]:80": false, "cart.internal:80:80": false,
	} {
		if got := c.matches(hostOf(host), "/"); got != want {
			t.Errorf("%q: %v", host, got)
		}
	}
}
