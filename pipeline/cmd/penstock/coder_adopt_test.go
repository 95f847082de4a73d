package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"penstock/consumers/executor/coder"
	"penstock/infra/testserver"
)

// diary is what a client has written, one object after the other, and when it was told.
type diary struct {
	key   string // of an object that is overwritten each time, with the number
	notes []note
	ended error // why it stopped
	told  atomic.Int64
}

// note is one of its objects, of a key of its own.
type note struct {
	key  string
	data []byte
	told time.Time // zero: it was not
	n    int
}

// keepDiaries has clients write until one of them fails, which it does when the coder is
// gone.
func (w *coderWorld) keepDiaries(work *sync.WaitGroup, prefix string) []*diary {
	var all []*diary
	for i := range 4 {
		c, d := w.client(i), &diary{key: fmt.Sprintf("%s/last/%d", prefix, i)}
		all = append(all, d)
		work.Go(func() {
			for n := 1; ; n++ {
				x := note{key: fmt.Sprintf("%s/%d/%d", prefix, i, n), n: n}
				x.data = noise(uint64(i*1000+n), []int{10, 5000, 70_000, 300_000}[n%4])
				if d.ended = c.put(context.Background(), x.key, x.data); d.ended != nil {
					return
				}
				if d.ended = c.put(context.Background(), d.key, fmt.Appendf(nil, "%d", n)); d.ended == nil {
					x.told = time.Now()
					d.told.Add(1)
				}
				if d.notes = append(d.notes, x); x.told.IsZero() {
					return
				}
			}
		})
	}
	return all
}

// loaded waits until so much was written that something of it is older than the last
// moments.
func loaded(t testing.TB, all []*diary) {
	t.Helper()
	for _, d := range all {
		eventually(t, "something to be written", func() bool { return d.told.Load() >= 4 })
	}
	<-time.After(lastMoments) // by the very promise
}

// kept sees that everything is there that the clients were told before some time, and
// that what is there is whole. It says how many later notes are not.
func (w *coderWorld) kept(all []*diary, before time.Time) (lost int) {
	w.t.Helper()
	c, old := w.client(0), 0
	for _, d := range all {
		least := 0
		for _, x := range d.notes {
			got, err := c.get(w.t.Context(), x.key)
			is := !x.told.IsZero() && x.told.Before(before)
			if is {
				old++
				least = x.n
			}
			if err != nil || (got != nil || is) && !bytes.Equal(got, x.data) {
				w.t.Errorf("%s, told %v before the limit: %d bytes of %d, %v", x.key, before.Sub(x.told), len(got), len(x.data), err)
			} else if got == nil {
				lost++
			}
		}
		got, err := c.get(w.t.Context(), d.key)
		var last int
		if _, scan := fmt.Sscan(string(got), &last); err != nil || scan != nil && least > 0 || last < least {
			w.t.Errorf("%s: %q, %v; at least %d", d.key, got, err, least)
		}
	}
	if old < len(all) {
		w.t.Errorf("%d notes were told in time for this to mean something", old)
	}
	return lost
}

// lastMoments is what the loss of a coder's machine may cost: a second, and what it takes
// to put a blob of the log on a machine that is busy with other tests.
const lastMoments = 2500 * time.Millisecond

// layouts are those that a test is for: both with PENSTOCK_WHOLE, or the one.
func layouts(one bool) []bool {
	if whole {
		return []bool{false, true}
	}
	return []bool{one}
}

// farAway is later than all that is told.
var farAway = time.Now().Add(time.Hour)

// TestCoderLosesItsMachine deletes the state of a coder that was killed under load. One
// with an empty state is refused the stores, unless it is told to adopt them: then it has
// everything that is older than the last second.
func TestCoderLosesItsMachine(t *testing.T) {
	t.Parallel()
	for _, spread := range layouts(true) {
		t.Run(fmt.Sprintf("spread %v", spread), func(t *testing.T) {
			t.Parallel()
			w := newCoder(t, "nats://"+testserver.FreeAddress(t), coderSettings{spread: spread})
			w.begin()
			w.makeBucket()
			var work sync.WaitGroup
			all := w.keepDiaries(&work, "first")
			loaded(t, all)
			killed := time.Now()
			w.proc.kill()
			work.Wait()
			if err := os.RemoveAll(w.state); err != nil {
				t.Fatal(err)
			}

			w.refused("stores belong to another instance")
			w.more = []string{"--adopt"}
			w.begin()
			lost := w.kept(all, killed.Add(-lastMoments))
			t.Logf("%d of the notes of the last moments are lost", lost)
			// It is the owner from now on, and needs no word for it.
			w.proc.stop()
			w.more = nil
			w.begin()
			if more := w.kept(all, killed.Add(-lastMoments)); more != lost {
				t.Errorf("%d notes are lost after a restart, %d before", more, lost)
			}
			w.sweep()
		})
	}
}

// sweep has what the last second before a takeover has left deleted: nothing knows it.
func (w *coderWorld) sweep() {
	w.t.Helper()
	w.abortUploads()
	w.journalRan()
	w.proc.stop()
	w.scrub(coder.ScrubOptions{Orphans: true, Repair: true})
	w.begin()
	w.clean()
}

// refused starts the process, which must end and say why.
func (w *coderWorld) refused(why string) {
	w.t.Helper()
	w.launch()
	if code := w.proc.code(); code == 0 || !strings.Contains(w.proc.errs.String(), why) {
		w.t.Errorf("exit code %d, %s; expected that %s", code, w.proc.errs.String(), why)
	}
}

// TestCoderIsReplaced starts a second coder, with a state of its own, while the first one
// serves: it is refused, and the first does not notice. One that is told to adopt the
// stores has them, and the first one ends by itself. Nothing is lost but what was written
// in the second before.
func TestCoderIsReplaced(t *testing.T) {
	t.Parallel()
	for _, spread := range layouts(false) {
		t.Run(fmt.Sprintf("spread %v", spread), func(t *testing.T) {
			t.Parallel()
			first := newCoder(t, "nats://"+testserver.FreeAddress(t), coderSettings{spread: spread})
			first.begin()
			first.makeBucket()
			var work sync.WaitGroup
			all := first.keepDiaries(&work, "first")
			loaded(t, all)

			second := *first
			second.state = filepath.Join(first.dir, "second")
			second.listen = testserver.FreeAddress(t)
			second.more = []string{"--listen", second.listen, "--admin", "off"}
			second.refused("stores belong to another instance")
			again := *first
			again.more = second.more
			again.refused("another process")
			if first.proc.gone() {
				t.Fatalf("the first one has ended: %s", first.proc.errs.String())
			}
			second.more = append(second.more, "--adopt")
			began := time.Now()
			second.begin()
			if code := first.proc.code(); code != 1 || !strings.Contains(first.proc.errs.String(), "another state") {
				t.Errorf("exit code %d of who was replaced: %s", code, first.proc.errs.String())
			}
			t.Logf("the first one has ended %v after the second was begun", time.Since(began))
			work.Wait()
			second.kept(all, began.Add(-lastMoments))
			for _, d := range all {
				last := slices.MaxFunc(d.notes, func(a, b note) int { return a.told.Compare(b.told) }).told
				t.Logf("the last answer of the first came %v after", last.Sub(began))
			}
			first.refused("another instance") // for good

			work = sync.WaitGroup{}
			more := second.keepDiaries(&work, "second")
			eventually(t, "the second to be written to", func() bool { return more[0].told.Load() > 3 })
			second.proc.stop()
			work.Wait()
			second.more = slices.DeleteFunc(second.more, func(s string) bool { return s == "--adopt" })
			second.begin()
			second.kept(more, farAway)
			second.sweep()
		})
	}
}
