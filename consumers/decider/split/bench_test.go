package split_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"penstock/consumers/decider"
	"penstock/consumers/decider/split"
	"penstock/schemas/control"
	"penstock/schemas/window"
)

// BenchmarkDecide is a window of 100 components × 10 sites, planned anew
// (DESIGN §7: 50 ms at least, 10 ms aimed at).
func BenchmarkDecide(b *testing.B) {
	for _, policy := range []string{split.Greedy, split.Closest, split.LocalityFailover} {
		b.Run(policy, func(b *testing.B) {
			r := rand.New(rand.NewPCG(5, 5))
			var names []string
			for n := range 10 {
				names = append(names, fmt.Sprint("site-", n))
			}
			p, err := split.New(split.Config{Policy: policy, Sites: sitesOf(names...), Change: -1})
			if err != nil {
				b.Fatal(err)
			}
			var calls []call
			for j := range 100 {
				from := ""
				if j > 0 {
					from = fmt.Sprint("c", r.IntN(j))
				}
				for _, a := range names {
					for _, to := range names {
						calls = append(calls, call{from: from, fromSite: a, to: fmt.Sprint("c", j), toSite: to, requests: 40, service: 1000 + 9000*r.Float64(), network: 1000 + 40_000*r.Float64()})
					}
				}
			}
			var tables []map[string]*window.Table
			for n := range 8 {
				tables = append(tables, tableOf(n, p.Width(), calls))
			}
			n := 0
			b.ReportAllocs()
			for b.Loop() {
				p.Decide(decider.Input{Window: windowOf(n, p.Width()), Tables: tables[n%8], Operator: control.Operator{Mode: control.Act}})
				n++
			}
			b.StopTimer()
		})
	}
}
