package publisher

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// scene is a watch and what it looks at, a look every 100 ms.
type scene struct {
	w        *watch
	start    time.Time
	now      time.Time
	until    time.Time // the last answer, or the first question after it
	answers  uint64
	open     bool // a question has no answer
	answered bool // by the bus, to questions of now on
	linked   bool
}

const look = 100 * time.Millisecond

func newScene() *scene {
	start := time.UnixMicro(1_700_000_000_000_000)
	return &scene{w: newWatch(), start: start, now: start, answered: true, linked: true}
}

// step asks, answers and looks once.
func (s *scene) step() {
	s.now = s.now.Add(look)
	if !s.open {
		s.open, s.until = true, s.now
	}
	if s.answered && s.linked {
		s.open = false
		s.answers++
	}
	s.look()
}

// look shows the watch what there is.
func (s *scene) look() {
	until := s.now
	if s.open {
		until = s.until
	}
	s.w.look(s.now, until, s.answers, s.linked, until.UnixMicro())
}

func (s *scene) pass(d time.Duration) {
	for range d / look {
		s.step()
	}
}

// at is an instant after the start, µs.
func (s *scene) at(d time.Duration) int64 { return s.start.Add(d).UnixMicro() }

const flows = math.MaxInt64

// expect compares the ceiling with an instant, give or take a look.
func (s *scene) expect(t *testing.T, what string, want int64) {
	t.Helper()
	got := s.w.ceiling()
	if (want == flows || want == earliest) && got != want || want != flows && want != earliest && (got > want || got < want-look.Microseconds()) {
		t.Errorf("%s, %v after the start: ceiling %d, want %d", what, s.now.Sub(s.start), got, want)
	}
}

// TestStandsStill goes through what can happen to a bus.
func TestStandsStill(t *testing.T) {
	t.Parallel()
	t.Run("lost", func(t *testing.T) {
		t.Parallel()
		s := newScene()
		s.pass(10 * time.Second)
		s.expect(t, "there", flows)
		s.linked = false
		s.pass(time.Minute)
		s.expect(t, "away", s.at(10*time.Second))
		s.linked, s.answered = true, false
		s.pass(time.Minute)
		s.expect(t, "connected, without an answer", s.at(10*time.Second))
		s.answered = true
		// Somebody who is 6 s slower must find it as it was before the outage.
		s.pass(7 * time.Second)
		s.expect(t, "settling", s.at(10*time.Second))
		s.pass(settleFor - 7*time.Second + look)
		s.expect(t, "settled", flows)
	})
	t.Run("silent", func(t *testing.T) {
		t.Parallel()
		s := newScene()
		s.pass(10 * time.Second)
		s.answered = false
		s.pass(silence - look)
		s.expect(t, "slow, but not too slow", flows)
		s.pass(2 * look)
		// Not where it was noticed, but where it began.
		s.expect(t, "frozen", s.at(10*time.Second+look))
		s.answered = true
		s.pass(settleFor)
		s.expect(t, "settling", s.at(10*time.Second+look))
		s.pass(2 * look)
		s.expect(t, "settled", flows)
	})
	t.Run("nothing asked", func(t *testing.T) {
		t.Parallel()
		s := newScene()
		s.pass(10 * time.Second)
		s.linked = false
		s.now = s.now.Add(look)
		s.look()
		s.linked = true
		for range 200 { // A connection alone proves nothing.
			s.now = s.now.Add(look)
			s.look()
		}
		s.expect(t, "connected", s.at(10*time.Second))
		s.pass(settleFor)
		s.expect(t, "settling", s.at(10*time.Second))
		s.pass(2 * look)
		s.expect(t, "settled", flows)
	})
	t.Run("begins without", func(t *testing.T) {
		t.Parallel()
		s := newScene()
		s.linked = false
		s.look()
		s.expect(t, "at once", earliest)
		s.pass(time.Minute)
		s.expect(t, "away", earliest)
		s.linked = true
		s.pass(settleFor)
		s.expect(t, "settling", earliest)
		s.pass(2 * look)
		s.expect(t, "settled", flows)
	})
	t.Run("twice", func(t *testing.T) {
		t.Parallel()
		s := newScene()
		s.pass(10 * time.Second)
		s.linked = false
		s.pass(time.Minute)
		s.linked = true
		s.pass(4 * time.Second)
		s.linked = false
		s.pass(time.Hour)
		s.expect(t, "the second time", s.at(10*time.Second))
		s.linked = true
		s.pass(settleFor - 2*time.Second)
		s.expect(t, "settling", s.at(10*time.Second))
		s.pass(4 * look)
		s.expect(t, "settled", flows)
		s.linked = false
		s.pass(time.Second)
		s.linked = true
		s.pass(settleFor - look)
		if s.w.ceiling() == flows {
			t.Error("what was cut short before it had settled still counts")
		}
	})
}

// TestComesAndGoes: on a bus that is never there for long enough the watermark
// stands still for no more than some rounds.
func TestComesAndGoes(t *testing.T) {
	t.Parallel()
	for _, x := range []struct{ up, down time.Duration }{
		{4 * time.Second, time.Second}, {time.Second, 10 * time.Second}, {200 * time.Millisecond, time.Second},
	} {
		s := newScene()
		s.pass(time.Second)
		behind := time.Duration(0)
		for s.now.Sub(s.start) < 20*time.Minute {
			s.linked = false
			s.pass(x.down)
			s.linked = true
			for range x.up / look {
				s.step()
				if c := s.w.ceiling(); c != flows {
					behind = max(behind, s.now.Sub(time.UnixMicro(c)))
				}
			}
		}
		// It needs 8 s, of which each round but the last gives half of what it lasts.
		most := time.Duration(0)
		for range 2*settleFor/x.up + 2 {
			most += x.up + x.down + 2*look
		}
		if behind > most || behind < settleFor {
			t.Errorf("there for %v, away for %v: %v behind, at most %v expected", x.up, x.down, behind, most)
		}
	}
}

// TestSlowIsNotAway: what a bus was slow once, it may be again, for a while.
func TestSlowIsNotAway(t *testing.T) {
	t.Parallel()
	s := newScene()
	stall := func(d time.Duration) (stood bool) {
		s.answered = false
		for range d / look {
			s.step()
			stood = stood || s.w.ceiling() != flows
		}
		s.answered = true
		return stood
	}
	s.pass(2 * slowFor)
	if !stall(3 * time.Second) {
		t.Error("a silence is not seen")
	}
	s.pass(settleFor + 2*look)
	for range 20 {
		if stall(5 * time.Second) {
			t.Fatalf("%v: it takes a slow bus for one that is away", s.now.Sub(s.start))
		}
		s.pass(10 * time.Second)
	}
	if !stall(silenceMost + look) {
		t.Error("an outage is taken for slowness")
	}
	s.pass(slowFor + settleFor)
	if !stall(3 * time.Second) {
		t.Error("it is slow for ever")
	}
}

// TestWatchRules draws what happens to a bus.
func TestWatchRules(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := newScene()
		good := int64(math.MaxInt64) // when the bus was there last
		there := time.Duration(0)    // how long it was connected since it was away
		before := s.w.ceiling()
		for range rapid.IntRange(1, 30).Draw(t, "changes") {
			s.linked, s.answered = rapid.Bool().Draw(t, "linked"), rapid.Bool().Draw(t, "answers")
			for range rapid.IntRange(1, 150).Draw(t, "looks") {
				s.step()
				now := s.w.ceiling()
				switch {
				case before != flows && now != flows && now != before:
					t.Fatalf("%v: it stood at %d and is at %d", s.now.Sub(s.start), before, now)
				case before == flows && now != flows && good != math.MaxInt64 && now > good+look.Microseconds():
					t.Fatalf("%v: it stands at %d, the bus was there until %d", s.now.Sub(s.start), now, good)
				case before != flows && now == flows && there < settleFor-2*look:
					t.Fatalf("%v: it goes on although the bus is back for %v only", s.now.Sub(s.start), there)
				case before != flows && now == flows && s.now.Sub(s.until) >= silence && s.open:
					t.Fatalf("%v: it goes on while the bus is silent", s.now.Sub(s.start))
				}
				if s.linked && s.answered {
					good = s.now.UnixMicro()
				}
				if s.linked {
					there += look
				}
				if now == flows {
					there = 0
				}
				before = now
			}
		}
		// In the end it goes on, whatever was before.
		s.linked, s.answered = true, true
		s.pass(settleFor + 2*look)
		if s.w.ceiling() != flows {
			t.Fatal("it stands still for ever")
		}
	})
}

// TestEvidence: an answer counts, a refusal or a lost message doesn't.
func TestEvidence(t *testing.T) {
	t.Parallel()
	count, err := newCounters(nil, "web")
	if err != nil {
		t.Fatal(err)
	}
	o := newOutbox(true, 1<<20, 1<<20, 1, count)
	start := time.UnixMicro(1_700_000_000_000_000)
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	expect := func(now, until int, answers uint64) {
		t.Helper()
		if u, n := o.evidence(at(now)); !u.Equal(at(until)) || n != answers {
			t.Errorf("at %d: until %v, %d answers; want %d, %d", now, u.Sub(start), n, until, answers)
		}
	}
	send := func(now int) *entry {
		o.add(&entry{loose: true})
		e, _ := o.nextReady(at(now), 0)
		return e
	}
	expect(5, 5, 0)
	first := send(5)
	expect(7, 5, 0)
	second := send(7)
	o.acked(first.number, at(8)) // the second waits since at least then
	expect(9, 8, 1)
	o.acked(second.number, at(10))
	expect(12, 12, 2)
	third := send(12)
	o.failed(third, "refused", errNoAnswer, at(13))
	expect(20, 12, 2)
	fourth := send(20)
	o.acked(third.number, at(22)) // a late answer is one
	expect(23, 22, 3)
	o.acked(fourth.number, at(24))
	expect(30, 30, 4)
}

// TestAloneGoesFirst: what is sent alone goes before what came earlier, and lets
// nothing follow until it is answered; it is the same for one that failed.
func TestAloneGoesFirst(t *testing.T) {
	t.Parallel()
	count, err := newCounters(nil, "web")
	if err != nil {
		t.Fatal(err)
	}
	o := newOutbox(true, 1<<20, 1<<20, 1, count)
	now := time.UnixMicro(1_700_000_000_000_000)
	batch := &entry{seq: 1}
	o.add(batch)
	for range 2 {
		e := &entry{loose: true, first: true, alone: true}
		o.add(e)
		if got, _ := o.nextReady(now, 0); got != e {
			t.Fatalf("first came %+v", got)
		}
		if got, _ := o.nextReady(now, 0); got != nil {
			t.Fatalf("%+v follows what has no answer", got)
		}
		if e.number == batch.number {
			t.Fatal("one number for two")
		}
		o.failed(e, "refused", errNoAnswer, now)
		now = now.Add(pauseMost)
	}
	e := &entry{loose: true, first: true, alone: true}
	o.add(e)
	o.nextReady(now, 0)
	o.acked(e.number, now)
	if got, _ := o.nextReady(now, 0); got != batch {
		t.Errorf("then came %+v", got)
	}
}
