package router_test

import (
	"fmt"
	"slices"
	"testing"

	"penstock/consumers/executor/router"
	"penstock/consumers/executor/router/routertest"
	"penstock/infra/shares"
)

// TestRouterIsATarget runs the suite on the router of this process.
func TestRouterIsATarget(t *testing.T) {
	t.Parallel()
	routertest.Run(t, func(t *testing.T) routertest.World {
		r := shares.New(shares.Options{Sites: routertest.Sites})
		other := routertest.Table(3, 0.1, 0.2, 0.7)
		other.From = "other"
		if _, err := r.Put(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		return routertest.World{
			Target: router.Local(r), Resolution: 0.0011, Second: shares.Link{From: routertest.Frontend, FromSite: "north", To: "cart"},
			Send: func(l shares.Link, n int) map[string]int {
				got := map[string]int{}
				for range n {
					c := r.Enter(l, "", "", false)
					got[c.Site]++
					c.Leave()
				}
				return got
			},
			Hold: func() (string, func()) {
				c := r.Enter(routertest.Link, "", "", false)
				return c.Site, c.Leave
			},
			Up: func(site string, up bool) { r.Up(shares.Replica{Component: routertest.Search, Site: site}, up) },
			Foreign: func() string {
				rows, err := router.Local(r).Observe(t.Context(), "other")
				picks := make([]string, 50)
				for i := range picks {
					picks[i] = r.Pick(shares.Link{From: "other", FromSite: routertest.East, To: routertest.Search}, fmt.Sprint(i)).Site
				}
				return fmt.Sprint(rows, err, slices.Compact(picks))
			},
		}
	})
}
