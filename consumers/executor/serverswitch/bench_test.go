package serverswitch

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkTable switches half of a site's servers off and on again: what the loops and
// the journal cost, as hooks cost nothing here.
func BenchmarkTable(b *testing.B) {
	for _, n := range []int{10, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			names := make([]string, n)
			for i := range names {
				names[i] = fmt.Sprint("server-", i)
			}
			m := newMachines(names...)
			go func() {
				for range m.called { // they are only taken
				}
			}()
			defer close(m.called)
			g := open(b, m, strings.Join(names, " "), nil).run()
			defer g.end()
			all, half := strings.Join(names, " ")+"/", strings.Join(names[:n/2], " ")+"/"+strings.Join(names[n/2:], " ")
			epoch := uint64(0)
			for b.Loop() {
				g.apply(epoch+1, half)
				g.apply(epoch+2, all)
				epoch += 2
			}
		})
	}
}
