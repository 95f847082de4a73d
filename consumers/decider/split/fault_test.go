package split_test

import (
	"testing"

	"penstock/consumers/decider/split"
)

// A component of one site gets 300 ms slower for 180 s, three times. After two
// windows its share is at most 0.7 of what it was, after four at most 0.1, and 90 s
// after the end it is back. Nothing goes A→B→A inside a cooldown.
func TestASlowReplicaIsLeftAndComesBack(t *testing.T) {
	for _, policy := range []string{split.Greedy, split.LP} {
		t.Run(policy, func(t *testing.T) {
			w := shop(t, split.Config{Policy: policy, Sites: sitesOf("east", "west")})
			faulty := func(n int) bool { return n >= 12 && (n-12)%36 < 18 && n < 12+3*36 }
			w.service = func(n int, component, site string, _ float64) float64 {
				if component == "cart" && site == "east" && faulty(n) {
					return 305_000
				}
				return 5000
			}
			watch := newFlapWatch(6)
			for n := range 12 + 3*36 {
				w.step(act())
				watch.window(t, w)
				switch share := w.share("web", "east", "cart", "east"); (n - 12) % 36 {
				case 35:
					if share < 0.95 {
						t.Errorf("window %d: before the fault %v", n, share)
					}
				case 2:
					if n >= 12 && share > 0.7 {
						t.Errorf("window %d: two windows after the fault began %v", n, share)
					}
				case 4:
					if n >= 12 && share > 0.1 {
						t.Errorf("window %d: four windows after %v", n, share)
					}
				case 18 + 9:
					if share < 0.95 {
						t.Errorf("window %d: 90 s after the end %v", n, share)
					}
				}
				for _, other := range []string{"search", "db"} {
					from := map[string]string{"search": "web", "db": "cart"}[other]
					if s := w.share(from, "east", other, "east"); s < 0.95 {
						t.Errorf("window %d: %s has %v, and is not slow", n, other, s)
					}
				}
			}
		})
	}
}

// Probes are few, and of few samples one that was held up moves the mean of a
// window. That does not keep calls away from a replica that is well again.
func TestARecoveryIsSeenInFewUnevenSamples(t *testing.T) {
	w := shop(t, split.Config{Sites: sitesOf("east", "west")})
	w.service = func(n int, component, site string, _ float64) float64 {
		switch {
		case component != "cart" || site != "east":
			return 5000
		case n >= 12 && n < 30:
			return 305_000
		}
		return []float64{4200, 8000}[n%2]
	}
	for n := range 40 {
		w.step(act())
		if share := w.share("web", "east", "cart", "east"); n == 12+18+8 && share < 0.95 {
			t.Errorf("window %d: 80 s after the end %v", n, share)
		}
	}
}

// flapWatch fails on a share that goes up and down, or down and up, inside a
// cooldown.
type flapWatch struct {
	cooldown int
	last     map[string]float64
	rose     map[string]int
	fell     map[string]int
	changes  int
}

func newFlapWatch(cooldown int) *flapWatch {
	return &flapWatch{cooldown: cooldown, last: map[string]float64{}, rose: map[string]int{}, fell: map[string]int{}}
}

func (f *flapWatch) window(t testing.TB, w *world) {
	t.Helper()
	for row, shares := range w.force {
		var sum float64
		for site, s := range shares {
			sum += s
			k := row + "|" + site
			before, known := f.last[k]
			f.last[k] = s
			if !known || s == before {
				continue
			}
			f.changes++
			if s > before {
				if at, ok := f.fell[k]; ok && w.n-at < f.cooldown {
					t.Errorf("window %d: %s rose to %v, %d windows after it fell", w.n, k, s, w.n-at)
				}
				f.rose[k] = w.n
			} else {
				if at, ok := f.rose[k]; ok && w.n-at < f.cooldown {
					t.Errorf("window %d: %s fell to %v, %d windows after it rose", w.n, k, s, w.n-at)
				}
				f.fell[k] = w.n
			}
		}
		if sum < 0.999 || sum > 1.001 {
			t.Errorf("window %d: %s adds up to %v", w.n, row, sum)
		}
	}
}
