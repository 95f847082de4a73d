package split_test

import (
	"fmt"
	"testing"
	"time"

	"penstock/consumers/decider"
	"penstock/consumers/decider/split"
	"penstock/schemas/control"
)

// twoSites is an application at two sites 60 ms apart.
func twoSites(t *testing.T) *split.Policy {
	t.Helper()
	p, err := split.New(split.Config{
		Sites: []split.Site{{Name: "east"}, {Name: "west"}},
		Links: []split.Link{{From: "east", To: "west", Delay: 60 * time.Millisecond}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// at are the calls of a window at both sites: those of web to callees, with what each
// takes on the way (µs), and those of search to the first callee.
func at(callees int, network func(site string, callee int) float64, search float64) (calls []call) {
	for _, site := range []string{"east", "west"} {
		calls = append(calls, call{from: "", fromSite: site, to: "web", toSite: site, requests: 300, service: 1000, unsampled: false})
		for i := range callees {
			n := int64(100)
			if i == 0 && callees > 4 {
				n = 8 // Hardly ever called: its mean is anything.
			}
			calls = append(calls, call{from: "web", fromSite: site, to: fmt.Sprint("callee-", i), toSite: site, requests: n, service: 3000, network: network(site, i)})
		}
		over := 2000.0
		if site == "east" {
			over = search
		}
		calls = append(calls, call{from: "search", fromSite: site, to: "callee-0", toSite: site, requests: 100, service: 3000, network: over})
	}
	return calls
}

func decide(p *split.Policy, n int, calls []call) decider.Output {
	return p.Decide(decider.Input{Window: windowOf(n, p.Width()), Tables: tableOf(n, p.Width(), calls)})
}

// moved are the rows of components from a site whose share of it is below 1.
func moved(out decider.Output, from, site string) (rows []string) {
	for _, c := range out.Commands {
		if c.Scope != from {
			continue
		}
		for _, r := range c.Split.Table {
			if r.FromSite != site {
				continue
			}
			for _, x := range r.Ratios {
				if x.Site == site && x.Share < 1 {
					rows = append(rows, r.To)
				}
			}
		}
	}
	return rows
}

func reasonOf(out decider.Output, code, scope string) *control.Reason {
	for i := range out.Reasons {
		if r := &out.Reasons[i]; r.Code == code && (scope == "" || r.Scope == scope) {
			return &out.Reasons[i]
		}
	}
	return nil
}

// A caller whose links rise by 50 to 110 ms is slow, whatever a link says that is
// hardly used, and though another caller's link rose by as much as noise does. It stays
// so for as long as that lasts, and nothing leaves its callees.
func TestASlowCallerAmongNoisyLinks(t *testing.T) {
	p := twoSites(t)
	healthy := func(string, int) float64 { return 2000 }
	for n := range 5 {
		decide(p, n, at(6, healthy, 2000))
	}
	for n := 5; n < 12; n++ {
		out := decide(p, n, at(6, func(site string, i int) float64 {
			if site == "west" || i == 0 {
				return 2000
			}
			return 2000 + []float64{50_000, 80_000, 110_000, 95_000, 60_000, 70_000}[(i+n)%6]
		}, 2800))
		if reasonOf(out, split.CallerSlow, "web") == nil {
			t.Fatalf("window %d: the caller is not found: %+v", n, out.Reasons)
		}
		if rows := moved(out, "web", "east"); len(rows) > 0 {
			t.Fatalf("window %d: calls leave %v, which are as they were", n, rows)
		}
	}
}

// Where half of a caller's links rise it is not the caller, and calls leave what is
// behind them.
func TestSomeSlowLinksAreNoSlowCaller(t *testing.T) {
	p := twoSites(t)
	left := map[string]bool{}
	for n := range 12 {
		out := decide(p, n, at(4, func(site string, i int) float64 {
			if n >= 5 && site == "east" && i >= 2 {
				return 150_000
			}
			return 2000
		}, 2000))
		if r := reasonOf(out, split.CallerSlow, ""); r != nil {
			t.Fatalf("window %d: %+v", n, r)
		}
		for _, to := range moved(out, "web", "east") {
			left[to] = true
		}
	}
	if len(left) != 2 || !left["callee-2"] || !left["callee-3"] {
		t.Errorf("calls have left %v, expected callee-2 and callee-3", left)
	}
}

// The first window may be cut short: that the next one has more calls, and some that
// take longer, is no overload.
func TestAShortFirstWindowShowsNoLimit(t *testing.T) {
	p := twoSites(t)
	for n := range 6 {
		calls := at(2, func(string, int) float64 { return 2000 }, 2000)
		for i := range calls {
			switch n {
			case 0:
				calls[i].requests, calls[i].service = 4, 3000
			case 1:
				calls[i].service = 9000
			}
		}
		out := decide(p, n, calls)
		for _, code := range []string{split.NoRoom, split.Overloaded} {
			if r := reasonOf(out, code, ""); r != nil {
				t.Errorf("window %d: %+v", n, r)
			}
		}
	}
}
