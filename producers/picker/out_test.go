package picker

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestMarks: what fails in a row is put out, for longer each time, tried again when
// its time has come, and in again with the first success.
func TestMarks(t *testing.T) {
	t.Parallel()
	p, _, c := still(t, told(1, 1, 0))
	// end ends a request to e1 in some way.
	end := func(err error) {
		t.Helper()
		for range 10 {
			if choice := p.Pick("cart"); choice.Server == "http://e1" {
				choice.Done(err)
				return
			}
		}
		t.Fatal("e1 is not picked")
	}
	in := func(what string, want bool) {
		t.Helper()
		got := count(p, 40)
		if (got["http://e1"] > 0) != want || got["http://e1"]+got["http://e2"] != 40 || want && got["http://e1"] != 20 {
			t.Errorf("%s: %v", what, got)
		}
	}
	end(errBroken)
	end(errBroken)
	end(nil) // not in a row
	end(errBroken)
	end(context.Canceled)
	end(errBroken)
	in("two in a row", true)
	end(errBroken)
	in("three in a row", false)
	for i, seconds := range []int{1, 2, 4, 8, 16, 30, 30} {
		c.Advance(time.Duration(seconds)*time.Second - time.Nanosecond)
		in(fmt.Sprint("out for the time ", i), false)
		c.Advance(time.Nanosecond)
		in("on trial", true)
		end(errBroken) // one is enough
		in("failed on trial", false)
	}
	c.Advance(30 * time.Second)
	end(nil)
	in("in again", true)
	end(errBroken)
	in("one failure", true)
	end(errGone)
	in("nothing listens there", false)
	c.Advance(time.Second)
	in("for a second again", true)
	if n := testutil.ToFloat64(p.metrics.out); n != 9 {
		t.Errorf("put out %v times", n)
	}
}

// TestLateFailures of requests that began before a server was put out say nothing
// new, nor those to a server that is no longer one.
func TestLateFailures(t *testing.T) {
	t.Parallel()
	p, cart, c := still(t, told(1, 1, 0))
	var to []Choice
	for len(to) < 20 {
		if choice := p.Pick("cart"); choice.Server == "http://e1" {
			to = append(to, choice)
		}
	}
	for _, choice := range to[:10] {
		choice.Done(errBroken)
	}
	c.Advance(time.Second)
	if got := count(p, 10); got["http://e1"] != 5 {
		t.Errorf("on trial after a second: %v", got)
	}
	next := told(2, 1, 0)
	next.Ratios[0].Servers = []string{"http://e2", "http://e3"}
	ok(t, cart.apply(next, false))
	for _, choice := range to[10:] {
		choice.Done(errBroken)
	}
	if n := cart.now.Load().at("east").trouble.Load(); n != 0 {
		t.Errorf("%d servers in trouble that aren't there", n)
	}
	counted(t, "others", p, map[string]int{"http://e2": 10, "http://e3": 10})
}

// TestSitesThatAreOut get nothing while another has a share, and are tried again. If
// all are out they are picked all the same.
func TestSitesThatAreOut(t *testing.T) {
	t.Parallel()
	p, _, c := still(t, told(1, 0.5, 0.5))
	fail := func(server string) {
		t.Helper()
		for range 100 {
			if choice := p.Pick("cart"); choice.Server == server {
				choice.Done(errGone)
				return
			}
		}
		t.Fatalf("%s is not picked", server)
	}
	fail("http://e1")
	counted(t, "one of two", p, map[string]int{"http://e2": 20, "http://w1": 20})
	fail("http://e2")
	counted(t, "a whole site", p, map[string]int{"http://w1": 40})
	c.Advance(500 * time.Millisecond)
	for range 2 {
		choice := p.Pick("cart")
		choice.Done(errGone)
	}
	got := count(p, 40)
	if got["http://w1"] != 20 || got["http://e1"] != 10 || got["http://e2"] != 10 {
		t.Errorf("all are out: %v", got)
	}
	c.Advance(500 * time.Millisecond)
	// The site is told to the shares in the background, when its time has come.
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		got := count(p, 4)
		if got["http://e1"] > 0 && got["http://e2"] > 0 && got["http://w1"] == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("east is not tried again: %v", got)
		}
	}
	if s := p.States()[0]; s.Out != 1 || s.Servers != 3 {
		t.Errorf("%+v", s)
	}
}
