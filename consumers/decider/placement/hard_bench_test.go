package placement

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"

	"penstock/consumers/decider"
)

const (
	hardOver = 5   // sites that are over capacity under the L-match
	hardLoad = 0.9 // of the total capacity
)

// hardConfig is benchConfig with capacities that make balancing hard: the five
// sites to which the L-match sends most take 70 % of it, the others share what
// makes the total load 90 % of all capacity, in proportion to theirs.
func hardConfig(owners int, policy string) Config {
	sample := min(50_000, 4*owners)
	c := benchConfig(owners, rand.New(rand.NewPCG(3, 4)))
	c.Policy, c.Place = policy, Latest
	wide := c
	wide.Policy, wide.Sites = TMatch, slices.Clone(c.Sites)
	for i := range wide.Sites {
		wide.Sites[i].Capacity = 1 << 50
	}
	p, err := New(wide)
	if err != nil {
		panic(err)
	}
	p.Decide(benchWindow(sample, 1, rand.New(rand.NewPCG(5, 6))))
	load, all := make([]float64, benchSites), 0.0
	for id, best := range p.state.best {
		v := float64(p.state.traffic[id]) * float64(owners) / float64(sample)
		load[best-1] += v
		all += v
	}
	order := make([]int, benchSites)
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return int(load[b] - load[a]) })
	var over float64
	for _, i := range order[:hardOver] {
		over += load[i]
		c.Sites[i].Capacity = int64(0.7 * load[i])
	}
	for _, i := range order[hardOver:] {
		c.Sites[i].Capacity = int64((all/hardLoad - 0.7*over) * load[i] / (all - over))
	}
	return c
}

// hardSizes are the numbers of owners of BenchmarkHard: those of benchOwners, and
// a hundredth and a tenth of it, so that growth shows.
func hardSizes(b *testing.B) []int {
	n := benchOwners(b)
	return slices.DeleteFunc([]int{n / 100, n / 10, n}, func(n int) bool { return n < 2000 })
}

// peakMB returns the greatest memory that this process has held since the last
// call of forgetPeak.
func peakMB(b *testing.B) float64 {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "VmHWM:"); ok {
			kb, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64)
			if err != nil {
				b.Fatal(err)
			}
			return kb / 1000
		}
	}
	b.Fatal("no VmHWM")
	return 0
}

func forgetPeak(b *testing.B) {
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		b.Fatal(err)
	}
}

// hardMemory is how much the process may hold besides the window's tables, in
// bytes: the runtime is told so, as by GOMEMLIMIT, and collects for as much as it
// must (DESIGN §7: 4 GB).
const hardMemory = 3_800_000_000

// BenchmarkHard decides, with either policy, one window in which everything is
// new and one in which everybody is somewhere else, on a hard instance. MB-process
// is the peak of the whole process, MB-policy what of it isn't the window's
// tables; gap-% is by how much the plan may be above the least total.
func BenchmarkHard(b *testing.B) {
	for _, owners := range hardSizes(b) {
		for _, policy := range []string{TMatch, Optimal} {
			p, err := New(hardConfig(owners, policy))
			if err != nil {
				b.Fatal(err)
			}
			r := rand.New(rand.NewPCG(3, 4))
			for n, name := range []string{"first", "next"} {
				base := heapMB()
				in := benchWindow(owners, n+1, r)
				tables := heapMB() - base
				b.Run(fmt.Sprintf("%s/%s/owners=%d", policy, name, owners), func(b *testing.B) {
					b.ReportAllocs()
					defer debug.SetMemoryLimit(debug.SetMemoryLimit(int64(tables*1e6) + hardMemory))
					forgetPeak(b)
					cpu := cpuTime()
					out := p.Decide(in)
					b.ReportMetric((cpuTime() - cpu).Seconds(), "cpu-s")
					peak := peakMB(b)
					b.ReportMetric(peak, "MB-process")
					b.ReportMetric(peak-tables, "MB-policy")
					b.ReportMetric(b.Elapsed().Seconds(), "s")
					b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(owners), "ns/owner")
					hardReasons(b, policy, out)
				})
			}
		}
	}
}

// hardReasons checks that the instance is as hard as it should be, and reports
// the gap.
func hardReasons(b *testing.B, policy string, out decider.Output) {
	over := 0
	for _, r := range out.Reasons {
		switch r.Code {
		case "OverCapacity":
			over++
		case "Optimised":
			b.ReportMetric(100*r.Evidence["gap"].(float64), "gap-%")
		}
	}
	if policy == TMatch && out.Case == "overhead-first" && over != hardOver {
		b.Errorf("%d sites are over capacity under the L-match, must be %d", over, hardOver)
	}
	if len(out.Commands) == 0 {
		b.Error("nothing moves")
	}
}
