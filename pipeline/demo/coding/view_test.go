package coding

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"penstock/consumers/executor/coder/admin"
	"penstock/infra/clock"
	"penstock/infra/golden"
	"penstock/pipeline/demo/coding/delayed"
	"penstock/schemas/control"
)

var t0 = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// watched is a demonstration of which only what can be seen is there.
func watched(t *testing.T) *show {
	t.Helper()
	s := &show{Demo: &Demo{Scale: 2, Writes: 0.05, Seed: 7}, clock: clock.NewManual(t0.Add(seconds(95))), start: t0, seen: make([][]sight, len(policies))}
	s.phases = s.timetable()
	s.world = &world{show: s, seer: newObserver(nil)}
	for _, p := range policies {
		people, err := newPeople(s, "127.0.0.1:1", "secret")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(people.close)
		s.world.arms = append(s.world.arms, &arm{policy: p, people: people})
	}
	return s
}

func TestGoldenView(t *testing.T) {
	s := watched(t)
	scenes := []*scene{s.scene()}
	s.now.Store(3)
	now := s.clock.Now()
	for i, a := range s.world.arms {
		for k := range 20 {
			a.people.seen.Add(now.Add(-seconds(2)), time.Duration(50*(i+1)+10*k)*time.Millisecond, shot{})
		}
		a.people.seen.Add(now.Add(-seconds(60)), time.Hour, shot{})
		a.people.seen.Add(now.Add(-seconds(1)), time.Hour, shot{write: true})
		for k := range 20 {
			st := admin.Status{Read: admin.Code{N: 12 - 2*i, K: 6 - i}, Backlog: 10 * i, Smoothed: float64(i) / 3, Connections: 16 - 5*i, Limit: 16}
			s.seen[i] = append(s.seen[i], sight{at: seconds(85) + time.Duration(k)*500*time.Millisecond, status: st, counts: delayed.Counts{Reads: uint64(10 * (k + 1) * (3 - i))}})
		}
	}
	s.world.arms[2].people.refusals.Add(now.Add(-seconds(1)), time.Millisecond, shot{})
	s.world.arms[2].people.fail(errWrong)
	s.world.seer.commands = []*control.Command{{Epoch: 4, Reason: control.Reason{Code: "ModelChanged"}, Coding: &control.CodingTable{
		Model: control.CodingModel{Read: control.CodingDelay{Delta: 40.5, DeltaPerMB: 238, Psi: 20.7, PsiPerMB: 402}},
		Read:  control.CodingCodes{K: []float64{0.954, 0.565, 0.213, 0.111, 0.0655}},
	}}}
	scenes = append(scenes, s.scene())
	var b strings.Builder
	for _, c := range scenes {
		for _, line := range c.picture() {
			if n := utf8.RuneCountInString(line); n > 110 {
				t.Errorf("%d columns: %s", n, line)
			}
			b.WriteString(line + "\n")
		}
		b.WriteString(c.line() + "\n")
	}
	golden.File(t, "view.golden", b.String())
}

// TestPlan: the same seed gives the same requests, as many as the phases' rates say.
func TestPlan(t *testing.T) {
	for _, fast := range []bool{true, false} {
		d := &Demo{Scale: 2, Fast: fast}
		list := d.timetable()
		all := *d.instants(list, rand.New(rand.NewPCG(7, 2)))
		if again := *d.instants(list, rand.New(rand.NewPCG(7, 2))); len(again) != len(all) || again[len(all)/2] != all[len(all)/2] {
			t.Error("another plan of the same seed")
		}
		at := time.Duration(0)
		for _, p := range list {
			if p.from != at || p.to != at+p.For || p.For <= settling {
				t.Errorf("%+v begins at %v", p, at)
			}
			at = p.to
			n := 0.0
			for _, x := range all {
				if x >= p.from && x < p.to {
					n++
				}
			}
			if want := float64(p.Percent) / 100 * d.capacity(1, 1) * p.For.Seconds(); n < want-5*want/8-10 || n > want+5*want/8+10 {
				t.Errorf("%s has %v requests, expected about %.0f", p.Name, n, want)
			}
		}
		p := all
		n := 0
		for last := time.Duration(-1); ; n++ {
			x, ok := p.Next()
			if !ok {
				break
			}
			if x < last {
				t.Fatal("not in order")
			}
			last = x
		}
		if n != len(all) {
			t.Errorf("%d of %d", n, len(all))
		}
	}
}

// TestReadersKnowWhatTheyRead: each version of each object tells itself from all others.
func TestReadersKnowWhatTheyRead(t *testing.T) {
	p := watched(t).world.arms[0].people
	good := p.content(3, 5)
	flipped := append([]byte(nil), good...)
	flipped[objectBytes-1] ^= 1
	for name, c := range map[string]struct {
		object      int
		b           []byte
		least, most uint32
		ok          bool
	}{
		"the newest":      {3, good, 5, 5, true},
		"an older one":    {3, good, 4, 6, true},
		"overwritten":     {3, good, 6, 6, false},
		"not yet written": {3, good, 1, 4, false},
		"another object":  {2, good, 1, 9, false},
		"a bit":           {3, flipped, 5, 5, false},
		"short":           {3, good[:100], 5, 5, false},
	} {
		if err := p.check(c.object, c.b, c.least, c.most); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
