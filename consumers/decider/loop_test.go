package decider

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"penstock/infra/bus"
)

// traffic is the rows of window n, the same each time.
func traffic(n int) []row {
	r := rand.New(rand.NewPCG(uint64(n), 7))
	var out []row
	for i := range 12 {
		if r.IntN(3) > 0 {
			out = append(out, row{n, fmt.Sprintf("owner-%d", i), int64(r.IntN(3))})
		}
	}
	return append(out, row{n, "regular", 1})
}

// lockstep closes windows one by one and answers what is decided.
func (w *world) lockstep(from, to int) {
	w.t.Helper()
	for n := from; n < to; n++ {
		w.close(n, traffic(n)...)
		d := w.next()
		if got, want := d.record.Window.End.UnixMicro(), epoch+int64(n+1)*hour; got != want {
			w.t.Fatalf("decided the window ending %s, expected the one after %d", d.record.Window.End, want)
		}
		w.settle(d)
	}
}

func TestBodiesAreEqualWhateverThePartitions(t *testing.T) {
	var want string
	for _, partitions := range []int{1, 4, 16} {
		w := newWorld(t, partitions, bus.Replay)
		r := w.start()
		w.lockstep(0, 12)
		r.stop()
		got := w.dump()
		if want == "" {
			want = got
		}
		same(t, fmt.Sprintf("%d partitions", partitions), got, want)
	}
}

// same compares two dumps and shows the first line that differs.
func same(t *testing.T, what, got, want string) {
	t.Helper()
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(g), len(w)) {
		if i >= len(g) || i >= len(w) || g[i] != w[i] {
			line := func(s []string) string {
				if i < len(s) {
					return s[i]
				}
				return "(nothing)"
			}
			t.Errorf("%s: line %d of %d is\n%s\nexpected, of %d,\n%s", what, i, len(g), line(g), len(w), line(w))
			return
		}
	}
}
