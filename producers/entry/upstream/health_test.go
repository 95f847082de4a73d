package upstream

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"penstock/infra/golden"
)

// TestGoldenHealth runs the scripts in testdata/health. A script has one command
// a line; after each stands what came of it, behind "  ".
//
//	health down=3 eject=10s …   settings that differ from the defaults
//	servers a b c
//	fail a [n]    n requests failed     ok a [n]     n requests succeeded
//	refuse a [n]  n requests found nobody listening
//	down a [n]    n probes failed       up a [n]     n probes succeeded
//	advance 5s
func TestGoldenHealth(t *testing.T) {
	golden.Marked(t, "testdata/health/*.txt", "  ", func(t *testing.T) func(string) string {
		return (&healthScript{t: t, b: board{o: Health{}.withDefaults()}, now: time.Unix(0, 0)}).line
	})
}

// healthScript is a board that a script drives by a clock of its own.
type healthScript struct {
	t     *testing.T
	b     board
	names []string
	now   time.Time
}

// line runs a command and returns how the servers stand then.
func (h *healthScript) line(text string) string {
	h.run(strings.Fields(text))
	if len(h.names) == 0 {
		return ""
	}
	return h.show()
}

func (h *healthScript) run(words []string) {
	n := 1
	if len(words) > 2 && words[0] != "servers" && words[0] != "health" {
		var err error
		if n, err = strconv.Atoi(words[2]); err != nil {
			h.t.Fatal(err)
		}
	}
	switch words[0] {
	case "health":
		for _, w := range words[1:] {
			h.set(w)
		}
	case "servers":
		h.names = words[1:]
		for range h.names {
			h.b.standing = append(h.b.standing, &standing{})
		}
	case "advance":
		d, err := time.ParseDuration(words[1])
		if err != nil {
			h.t.Fatal(err)
		}
		h.now = h.now.Add(d)
		h.b.tick(h.now)
	default:
		s := h.b.standing[slices.Index(h.names, words[1])]
		for range n {
			switch words[0] {
			case "fail":
				h.b.failed(s, h.now, ReasonReset)
			case "refuse":
				h.b.failed(s, h.now, ReasonConnect)
			case "ok":
				h.b.succeeded(s, h.now)
			case "up", "down":
				h.b.probed(s, words[0] == "up")
			default:
				h.t.Fatalf("command %q", words)
			}
		}
	}
}

func (h *healthScript) set(word string) {
	name, value, _ := strings.Cut(word, "=")
	switch name {
	case "max_ejected":
		f, err := strconv.ParseFloat(value, 64)
		if err != nil {
			h.t.Fatal(err)
		}
		h.b.o.MaxEjected = f
	case "failures":
		n, err := strconv.Atoi(value)
		if err != nil {
			h.t.Fatal(err)
		}
		h.b.o.Failures = n
	default:
		h.t.Fatalf("setting %q", word)
	}
}

func (h *healthScript) show() string {
	var parts []string
	for i, s := range h.b.standing {
		p := h.names[i] + " "
		switch {
		case s.out:
			p += "out"
		case s.bad():
			p += "suspect"
		default:
			p += "used"
		}
		if s.reason != "" {
			p += " (" + s.reason + ")"
		}
		if !s.until.IsZero() {
			p += " for " + s.until.Sub(h.now).String()
		}
		parts = append(parts, p)
	}
	text := strings.Join(parts, ", ")
	if h.b.panicked {
		text += fmt.Sprintf("; panic %d", h.b.panics)
	}
	return text
}

// TestTheCap: whatever happens to a pool's servers, those out of use are what a
// plain search says (PROBLEMS P31): the longest row of bad servers, in the order
// in which they went bad, that leaves the share of used ones above 1 − cap, and
// never none, and beside it those that take no connections; none at all when all are bad.
func TestTheCap(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 7).Draw(rt, "servers")
		o := Health{
			MaxEjected: rapid.SampledFrom([]float64{-1, 0.1, 0.3, 1.0 / 3, 0.5, 0.7, 1}).Draw(rt, "cap"),
			Failures:   rapid.IntRange(1, 3).Draw(rt, "failures"),
		}.withDefaults()
		b := board{o: o}
		for range n {
			b.standing = append(b.standing, &standing{})
		}
		b.settle()
		now := time.Unix(0, 0)
		var order []int // bad servers as they went bad
		panics := uint64(0)
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			i := rapid.IntRange(0, n-1).Draw(rt, "server")
			s := b.standing[i]
			switch rapid.IntRange(0, 5).Draw(rt, "what") {
			case 0:
				b.failed(s, now, ReasonReset)
			case 1:
				b.succeeded(s, now)
			case 2:
				b.probed(s, false)
			case 3:
				b.probed(s, true)
			case 4:
				now = now.Add(time.Duration(rapid.IntRange(1, 30).Draw(rt, "s")) * time.Second)
				b.tick(now)
			case 5:
				b.failed(s, now, ReasonConnect)
			}
			was := len(order)
			order = slices.DeleteFunc(order, func(j int) bool { return !b.standing[j].bad() })
			for j, s := range b.standing {
				if s.bad() && !slices.Contains(order, j) {
					order = append(order, j)
				}
			}
			if len(order) == n && was < n {
				panics++
			}
			out := slices.Clone(plainCap(order, n, o.MaxEjected))
			for _, j := range order {
				if len(order) < n && o.MaxEjected > 0 && b.standing[j].reason == ReasonConnect && !slices.Contains(out, j) {
					out = append(out, j)
				}
			}
			used := 0
			for j, s := range b.standing {
				if s.out != slices.Contains(out, j) {
					rt.Fatalf("server %d of %d: out %v, bad in order %v", j, n, s.out, order)
				}
				if !s.out {
					used++
				}
			}
			if used == 0 || b.panicked != (len(order) == n) || b.panics != panics {
				rt.Fatalf("%d used, bad %v, panic %v %d, want %d", used, order, b.panicked, b.panics, panics)
			}
		}
	})
}

// plainCap tries how many of the bad servers can go out.
func plainCap(bad []int, n int, share float64) []int {
	if len(bad) == n {
		return nil
	}
	for k := len(bad); k > 0; k-- {
		if k < n && float64(k) <= share*float64(n)+1e-9 {
			return bad[:k]
		}
	}
	return nil
}

// TestBudget compares the budget with a list of all that happened.
func TestBudget(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		b := Budget{share: rapid.SampledFrom([]float64{0, 0.2, 1}).Draw(rt, "share"), least: rapid.SampledFrom([]float64{0, 0.5, 3}).Draw(rt, "least")}
		now := time.Unix(1_000_000, 0)
		var requests, retries []int64
		within := func(list []int64) (n int) {
			for _, s := range list {
				if s > now.Unix()-budgetWindow {
					n++
				}
			}
			return n
		}
		for range rapid.IntRange(1, 200).Draw(rt, "steps") {
			switch rapid.IntRange(0, 9).Draw(rt, "what") {
			case 0:
				now = now.Add(time.Duration(rapid.IntRange(1, 15_000).Draw(rt, "ms")) * time.Millisecond)
			case 1, 2, 3:
				may := float64(within(retries)+1) <= max(b.share*float64(within(requests)), b.least*budgetWindow)
				if got := b.Retry(now); got != may {
					rt.Fatalf("retry: %v, want %v after %d requests and %d retries", got, may, within(requests), within(retries))
				}
				if may {
					retries = append(retries, now.Unix())
				}
			default:
				b.Request(now)
				requests = append(requests, now.Unix())
			}
		}
	})
}

// TestPicking: least outstanding by weight, equals in turn by weight, suspects
// last.
func TestPicking(t *testing.T) {
	t.Parallel()
	members := func(weights ...int) (m []*Member) {
		for _, w := range weights {
			s := &server{}
			s.weight.Store(int64(w))
			m = append(m, &Member{s: s})
		}
		return m
	}
	picks := func(m []*Member, n int) string {
		var l LeastOutstanding
		var b strings.Builder
		for range n {
			b.WriteString(strconv.Itoa(l.Pick(nil, m)))
		}
		return b.String()
	}
	if got := picks(members(1, 1, 1), 7); got != "0120120" {
		t.Errorf("equals: %s", got)
	}
	if got := picks(members(2, 1), 6); got != "001001" {
		t.Errorf("weights: %s", got)
	}
	m := members(1, 1, 1)
	m[0].s.outstanding.Store(1)
	if got := picks(m, 4); strings.Contains(got, "0") {
		t.Errorf("the busy one: %s", got)
	}
	m = members(4, 1)
	m[0].s.outstanding.Store(3)
	m[1].s.outstanding.Store(1)
	if got := picks(m, 5); got != "00000" {
		t.Errorf("3 of weight 4 beside 1 of weight 1: %s", got)
	}
	m = members(1, 1)
	m[0].suspect = true
	m[1].s.outstanding.Store(3)
	if got := picks(m, 2); got != "11" {
		t.Errorf("a suspect beside one with 3: %s", got)
	}
	m[1].s.outstanding.Store(5)
	if got := picks(m, 2); got != "00" {
		t.Errorf("a suspect beside one with 5: %s", got)
	}
}
