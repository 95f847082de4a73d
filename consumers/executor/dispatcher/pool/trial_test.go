package pool

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// trialAfter is Options.Trial of these tests.
const trialAfter = 5 * time.Second

// estimating are the policies that make trials.
func estimating() []Policy {
	return slices.DeleteFunc(Policies(), func(p Policy) bool { return !estimators[p] })
}

// seen is what was tried where.
type seen struct {
	at   []int64
	late int // would be late by what was known
}

// watched follows the trials at a server: w.load with a look at each request that arrives.
func (w *world) watched(name string, d time.Duration, rate float64) (trials seen, first int64) {
	s := w.pool.known[name]
	for stop := w.now + int64(d); ; {
		next := w.now + nanoseconds(w.rnd.ExpFloat64()/rate)
		if next >= stop {
			w.until(stop)
			return trials, first
		}
		w.until(next)
		before := s.trials
		p, err := w.arrive(Request{Size: 1000 + 20000*w.rnd.Float64(), Class: int(w.id) % len(w.pool.options.Classes)})
		if err != nil {
			w.t.Fatal(err)
		}
		switch {
		case s.trials > before:
			trials.at = append(trials.at, w.now)
			if j := w.pool.jobs[p.ID]; j.late > 0 {
				trials.late++
			}
		case p.Server == name && first == 0:
			first = w.now
		}
	}
}

// slow makes a server ten times slower until an instant. Servers take longer for a request
// that has others beside it, as they do.
func (w *world) slow(name string, until *int64) {
	w.service = func(server string, now int64) float64 {
		took := 0.012 + 0.004*float64(w.pool.known[server].in-1)
		if server == name && now < *until {
			took *= 10
		}
		return took
	}
}

// series counts the series of trials: what is tried sooner than Trial after another belongs
// to the same.
func (s seen) series() (n, longest int) {
	of := 0
	for i, at := range s.at {
		if of++; i == 0 || at-s.at[i-1] >= int64(trialAfter) {
			n, of = n+1, 1
		}
		longest = max(longest, of)
	}
	return n, longest
}

// TestTrials: a server that was slow is tried when nothing was heard of it for Trial, one
// request at a time, and once in that time as long as it is as slow as was thought; when it is fast it is
// found so within that time and a few requests, and has what the policy gives it.
func TestTrials(t *testing.T) {
	t.Parallel()
	for _, policy := range estimating() {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, Options{Policy: policy, FreeFirst: true, Elapsed: true, Abreast: true, Trial: trialAfter, Classes: []Class{{Limit: 1, Penalty: 1}, {Limit: 0.1, Penalty: 5}}})
			w.servers(four()...)
			slow := int64(0)
			w.slow("b", &slow)
			w.load(3*time.Second, 200)
			slow = math.MaxInt64
			w.load(3*time.Second, 200)
			trials, _ := w.watched("b", 10*trialAfter, 200)
			if n, longest := trials.series(); n < 7 || n > 10 || longest > settling || len(trials.at) > n+settling || trials.late > 0 {
				t.Errorf("slow: %d trials in ten times %v, in %d series of up to %d, %d late; expected 7 to 10 series, most of one, and none late",
					len(trials.at), trialAfter, n, longest, trials.late)
			}
			slow = w.now
			trials, first := w.watched("b", 3*trialAfter, 200)
			if first == 0 {
				t.Fatalf("fast again: in %v the policy never chose it; %d trials", 3*trialAfter, len(trials.at))
			}
			took := time.Duration(first - slow)
			n := 0
			for _, at := range trials.at {
				if at <= first {
					n++
				}
			}
			t.Logf("chosen %v after it was fast again, upon %d trials", took, n)
			if took > trialAfter*5/4+time.Second || n > 8 {
				t.Errorf("chosen %v after it was fast again, upon %d trials; expected %v and a second, and at most 8", took, n, trialAfter*5/4)
			}
			got, other := w.pool.known["b"].model.Service(5000, false), w.pool.known["a"].model.Service(5000, false)
			if got > alike*other {
				t.Errorf("fast again, and estimated at %v, another at %v", got, other)
			}
		})
	}
}

// TestTrialsGiveTheShareBack: where the others suffice, a server that is fast again is known
// to be as fast as they are, not only about as fast, and has what it had before. So it is
// where times vary, too.
func TestTrialsGiveTheShareBack(t *testing.T) {
	t.Parallel()
	const draws = 5
	for _, policy := range estimating() {
		for _, varies := range []float64{0, 0.3} {
			for _, times := range []float64{1.4, 3, 10, 40} {
				before, after := 0., 0.
				for seed := range uint64(draws) {
					b, a := shares(t, policy, seed, varies, times)
					before, after = before+b/draws, after+a/draws
				}
				t.Logf("%s, times vary by %.1f: %.2f before, %.2f after it was %v times slower", policy, varies, before, after, times)
				if before < 0.2 || before > 0.3 {
					t.Errorf("%s, times vary by %.1f: one of four that are the same has a share of %.2f", policy, varies, before)
				}
				if after < before*2/3 {
					t.Errorf("%s, times vary by %.1f: its share is %.2f, and was %.2f before it was %v times slower", policy, varies, after, before, times)
				}
			}
		}
	}
}

// shares of a server before it is so many times slower for a while, and three trials after.
func shares(t *testing.T, policy Policy, seed uint64, varies, times float64) (before, after float64) {
	w := newWorld(t, Options{Policy: policy, FreeFirst: true, Elapsed: true, Abreast: true, Trial: trialAfter, Seed: seed, Classes: []Class{{Limit: 10, Penalty: 1}}})
	w.rnd = rand.New(rand.NewPCG(seed, 0))
	w.servers(four()...)
	slow := 1.
	w.service = func(server string, _ int64) float64 {
		took := 0.03 * math.Exp(varies*w.rnd.NormFloat64())
		if server == "b" {
			took *= slow
		}
		return took
	}
	w.load(10*time.Second, 200)
	before = share(w.load(20*time.Second, 200), "b")
	slow = times
	w.load(5*time.Second, 200)
	slow = 1
	w.load(3*trialAfter*5/4, 200)
	return before, share(w.load(20*time.Second, 200), "b")
}

// share of a server in what was placed.
func share(placed map[string]int, server string) float64 {
	n := 0
	for _, k := range placed {
		n += k
	}
	return float64(placed[server]) / float64(max(n, 1))
}

// TestNoTrials: without the option, and by policies that go by no estimates, nothing is
// tried; the server that was slow once is left alone by those that do.
func TestNoTrials(t *testing.T) {
	t.Parallel()
	for _, policy := range Policies() {
		after := trialAfter
		if estimators[policy] {
			after = 0
		}
		w := newWorld(t, Options{Policy: policy, FreeFirst: true, Elapsed: true, Trial: after})
		w.servers(four()...)
		slow := int64(0)
		w.slow("b", &slow)
		w.load(3*time.Second, 200)
		slow = w.now + 3*second
		w.load(3*time.Second, 200)
		trials, first := w.watched("b", 4*trialAfter, 100)
		if len(trials.at) > 0 {
			t.Errorf("%s: %d trials", policy, len(trials.at))
		}
		if (policy == A1 || policy == Auto) && first > 0 {
			t.Errorf("%s chose it by itself: trials are not needed", policy)
		}
	}
}

// TestTrialsWithLittleTime: where each request would be late at a server that is as slow as
// it was, the server is tried all the same, as what is known of it fades, but not as often.
// What is late already is never taken for it.
func TestTrialsWithLittleTime(t *testing.T) {
	t.Parallel()
	for _, policy := range estimating() {
		var n [2]int
		for i, limit := range []float64{1, 0.05} {
			w := newWorld(t, Options{Policy: policy, FreeFirst: true, Elapsed: true, Trial: trialAfter, Classes: []Class{{Limit: limit, Penalty: 1}}})
			w.servers(four()...)
			slow := int64(0)
			w.slow("b", &slow)
			w.load(3*time.Second, 100)
			slow = math.MaxInt64
			w.load(3*time.Second, 100)
			trials, _ := w.watched("b", 10*trialAfter, 100)
			n[i] = len(trials.at)
		}
		if n[0] < 7 || n[0] > 10 || n[1] < 3 || n[1] >= n[0] {
			t.Errorf("%s: %d trials in ten times %v, with little time %d; expected 7 to 10, and fewer", policy, n[0], trialAfter, n[1])
		}
		w := newWorld(t, Options{Policy: policy, Trial: trialAfter})
		w.servers(four()...)
		w.now += 10 * int64(trialAfter)
		if _, err := w.arrive(Request{Entered: w.now - second}); err != nil {
			t.Fatal(err)
		}
		for _, s := range w.pool.servers {
			if s.trials > 0 {
				t.Errorf("%s: tried with what was late", policy)
			}
		}
	}
}

// TestTrialThatHangs: a trial that has no end is the only one; one whose client goes, or
// that fails, is followed by another no sooner than Trial after.
func TestTrialThatHangs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{Policy: A1, FreeFirst: true, Elapsed: true, Trial: trialAfter, Classes: []Class{{Limit: 1, Penalty: 1}}})
	w.servers(four()...)
	w.load(time.Second, 200)
	slow := int64(math.MaxInt64)
	w.slow("b", &slow)
	w.load(3*time.Second, 200)
	w.service = func(server string, _ int64) float64 {
		if server == "b" {
			return 1e6
		}
		return 0.012
	}
	w.watched("b", 2*trialAfter, 200)
	s := w.pool.known["b"]
	if s.trials != 1 || s.trial == nil {
		t.Fatalf("%d trials, expected one that hangs", s.trials)
	}
	w.watched("b", 4*trialAfter, 200)
	if s.trials != 1 {
		t.Fatalf("%d trials beside one that hangs", s.trials)
	}
	for i, end := range []func(id uint64){
		func(id uint64) { w.pool.Cancel(w.now, id, nil) },
		func(id uint64) { w.pool.Done(w.now, id, Outcome{Service: 1e-3}, nil) },
	} {
		end(s.trial.id)
		ended := w.now
		trials, _ := w.watched("b", 6*trialAfter, 200)
		if len(trials.at) != 1 || trials.at[0]-ended < int64(trialAfter) {
			t.Errorf("end %d: trials at %v, the last ended at %v", i, trials.at, ended)
		}
	}
}

// TestTrialsOfSeveral: switches with other seeds, and a switch at its servers, don't wait
// for the same time; each waits for Trial and up to a quarter more.
func TestTrialsOfSeveral(t *testing.T) {
	t.Parallel()
	times := map[int64]bool{}
	for seed := range uint64(20) {
		p, err := New(Options{Policy: Auto, Classes: []Class{{}}, Seed: seed, Trial: trialAfter})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a", "b"} {
			v := p.patience(name)
			if v < int64(trialAfter) || v > int64(trialAfter)*5/4 || v != p.patience(name) {
				t.Errorf("seed %d, %s: waits for %v", seed, name, time.Duration(v))
			}
			times[v] = true
		}
	}
	if len(times) != 40 {
		t.Errorf("40 waits have %d lengths", len(times))
	}
}
