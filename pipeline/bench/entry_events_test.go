package bench

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"
)

const (
	// eventPairs is DESIGN §7's number of interleaved pairs.
	eventPairs = 15
	// eventTurn is half of what each side of a pair gets.
	eventTurn = time.Second
	// studentT is the 97.5 % quantile of Student's distribution with 14 degrees of
	// freedom, one less than there are pairs.
	studentT = 2.145
)

// BenchmarkEntryEvents is the entry point with against without events: two
// processes that differ in nothing else, in front of one service. A pair is one
// turn of the one, two of the other, and one of the first again, so that a machine
// that gets busier or less so makes no difference between them; which is the first
// changes from pair to pair. The ratio of each pair is one sample; ratios are
// compared by their logarithms, so that a half and a double even out.
func BenchmarkEntryEvents(b *testing.B) {
	back, bus := startService(b), processCommand(b, "bus", "-", "-")
	nats := listening(b, bus)
	var stored time.Duration // what the bus took of the processors
	with, without := startProxy(b, "entry", back.Address, nats), startProxy(b, "silent", back.Address, nats)
	for range b.N {
		with.turns, without.turns = nil, nil
		for _, p := range []*proxy{with, without} { // connections, spool and buffers are there
			p.load(b, time.Second)
			p.turns = nil
		}
		before := processorTime(b, bus.Process.Pid)
		for i := range eventPairs {
			first, second := with, without
			if i%2 == 1 {
				first, second = second, first
			}
			for _, p := range []*proxy{first, second, second, first} {
				p.load(b, eventTurn)
			}
		}
		stored = processorTime(b, bus.Process.Pid) - before
		with.turns, without.turns = byTwo(with.turns), byTwo(without.turns)
	}
	rate, low, high := ratio(with.turns, without.turns, perSecond)
	cpu, _, _ := ratio(with.turns, without.turns, cpuPerRequests)
	requests := uint64(0)
	for _, t := range with.turns {
		requests += t.Requests
	}
	b.ReportMetric(rate, "requests/s-ratio")
	results.add(line{
		name: "entry with against without events, requests/s", figure: low, unit: "x at least", least: 0.90,
		note: fmt.Sprintf("lower bound of the 95 %% interval of the ratio, %.3f to %.3f around %.3f of %d pairs; processor time x %.2f (%.2f CPU-s per 100,000), and %.2f of the bus",
			low, high, rate, eventPairs, cpu, with.cpu(), stored.Seconds()/float64(requests)*1e5),
	})
}

// byTwo makes one turn out of each two.
func byTwo(turns []turn) (out []turn) {
	for i := 0; i+1 < len(turns); i += 2 {
		t, more := turns[i], turns[i+1]
		t.Requests += more.Requests
		t.Took += more.Took
		t.cpu += more.cpu
		out = append(out, t)
	}
	return out
}

// ratio returns the geometric mean of the ratios of pairs and its 95 % interval.
func ratio(a, b []turn, of func(turn) float64) (mean, low, high float64) {
	n, sum, squares := float64(len(a)), 0.0, 0.0
	for i := range a {
		sum += math.Log(of(a[i]) / of(b[i]))
	}
	mean = sum / n
	for i := range a {
		d := math.Log(of(a[i])/of(b[i])) - mean
		squares += d * d
	}
	half := studentT * math.Sqrt(squares/(n-1)/n)
	return math.Exp(mean), math.Exp(mean - half), math.Exp(mean + half)
}

func TestRatioOfPairs(t *testing.T) {
	var a, b []turn
	for i := range eventPairs {
		var x, y turn
		x.Took, y.Took, x.Requests, y.Requests = time.Second, time.Second, 1000, 2000
		if i%2 == 1 { // half of them a tenth to one side, half to the other, one in the middle
			x.Requests = 1100
		} else if i > 0 {
			y.Requests = 2200
		}
		a, b = append(a, x), append(b, y)
	}
	mean, low, high := ratio(byTwo(slices.Concat(a[:1], a[:1], a[1:2], a[1:2])), byTwo(slices.Concat(b[:1], b[:1], b[1:2], b[1:2])), perSecond)
	if want := math.Sqrt(0.5 * 0.55); math.Abs(mean-want) > 1e-9 || low >= mean || high <= mean {
		t.Errorf("two pairs of two: %.4f, %.4f to %.4f", mean, low, high)
	}
	mean, low, high = ratio(a, b, perSecond)
	// The logarithms are ±0.0953 around ln 0.5: their deviation is 0.0953, the half
	// width 2.145 × 0.0953 / √15 = 0.0528.
	if math.Abs(mean-0.5) > 1e-9 || math.Abs(low-0.4743) > 5e-4 || math.Abs(high-0.5271) > 5e-4 {
		t.Errorf("%.4f, %.4f to %.4f", mean, low, high)
	}
}
