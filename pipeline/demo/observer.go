package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"penstock/infra/bus"
	"penstock/pipeline/demo/stage"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// observer watches the bus as anybody could: where owners are, what is decided,
// and what becomes of it. It changes nothing.
type observer struct {
	client *bus.Client
	now    func() time.Time

	mu      sync.Mutex
	owners  map[string]located // by owner
	moves   map[moveID]control.Window
	done    map[control.Status]int
	bytes   int64 // moved
	last    *control.Decision
	windows int // decided
	changed chan struct{}
}

// located is where an owner's data is, since when, by our clock.
type located struct {
	control.Location
	seen time.Time
}

// moveID is how a move is told from all others.
type moveID struct {
	owner   string
	version uint64
}

func newObserver(c *bus.Client, now func() time.Time) *observer {
	return &observer{
		client: c, now: now, owners: map[string]located{}, moves: map[moveID]control.Window{},
		done: map[control.Status]int{}, changed: make(chan struct{}),
	}
}

// run watches until the context ends.
func (o *observer) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	prefix := o.client.KeyPrefix(subject.LocationsKV)
	kind := string(control.Placement)
	var running sync.WaitGroup
	errs := make([]error, 3)
	watch := func(n int, open func() (*bus.Reader, error), take func(bus.Msg) error) {
		running.Go(func() {
			defer cancel()
			errs[n] = stage.Watch(ctx, open, take)
		})
	}
	watch(0, func() (*bus.Reader, error) { return o.client.ReadKV(ctx, subject.LocationsKV, 0) },
		func(m bus.Msg) error { return o.location(strings.TrimPrefix(m.Subject, prefix), m) })
	watch(1, func() (*bus.Reader, error) {
		return o.client.Read(ctx, subject.CommandsStream, []string{subject.Decisions(kind), subject.CommandsOf(kind)}, 0)
	}, o.command)
	watch(2, func() (*bus.Reader, error) {
		return o.client.Read(ctx, subject.OutcomesStream, []string{subject.OutcomesOf(kind)}, 0)
	}, o.outcome)
	running.Wait()
	return errors.Join(errs...)
}

// change locks the observer, and tells who waits when it is unlocked.
func (o *observer) change(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f()
	close(o.changed)
	o.changed = make(chan struct{})
}

func (o *observer) location(key string, m bus.Msg) error {
	owner, err := subject.Decode(key)
	if err != nil {
		return err
	}
	if len(m.Data) == 0 {
		return nil // a deletion, which nobody makes here
	}
	l, err := control.DecodeLocation(m.Data)
	if err != nil {
		return err
	}
	o.change(func() {
		was := o.owners[owner]
		at := located{*l, o.now()}
		if was.Site == l.Site {
			at.seen = was.seen
		}
		o.owners[owner] = at
	})
	return nil
}

func (o *observer) command(m bus.Msg) error {
	if strings.HasPrefix(m.Subject, subject.Decisions("")) {
		d, err := control.DecodeDecision(m.Data)
		if err != nil {
			return err
		}
		o.change(func() {
			o.windows++
			o.last = d
		})
		return nil
	}
	c, err := control.DecodeCommand(m.Data)
	if err != nil {
		return err
	}
	o.change(func() {
		if c.Placement == nil {
			return
		}
		for _, v := range c.Placement.Moves {
			o.moves[moveID{v.Owner, v.Version}] = c.Window
		}
	})
	return nil
}

func (o *observer) outcome(m bus.Msg) error {
	x, err := control.DecodeOutcome(m.Data)
	if err != nil {
		return err
	}
	o.change(func() {
		o.done[x.Status]++
		if x.Status == control.Done {
			o.bytes += x.Bytes
		}
	})
	return nil
}

// await returns when holds does, which is asked under the lock after each change.
func (o *observer) await(ctx context.Context, holds func() bool) error {
	for {
		o.mu.Lock()
		ok, changed := holds(), o.changed
		o.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// at is how many owners are at each site.
func (o *observer) at() map[string]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := map[string]int{}
	for _, l := range o.owners {
		out[l.Site]++
	}
	return out
}

// arrived is which part of some owners is at a site; the lock is held.
func (o *observer) arrived(owners []string, site string) float64 {
	n := 0
	for _, owner := range owners {
		if o.owners[owner].Site == site {
			n++
		}
	}
	return float64(n) / float64(len(owners))
}

// arrival is when a part of some owners had come to a site, and the end of the
// window whose decision moved the last of that part. They must be there.
func (o *observer) arrival(owners []string, site string, part float64) (at, decided time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	type arrived struct {
		at time.Time
		by control.Window
	}
	var there []arrived
	for _, owner := range owners {
		if l := o.owners[owner]; l.Site == site {
			there = append(there, arrived{l.seen, o.moves[moveID{owner, l.Version}]})
		}
	}
	slices.SortFunc(there, func(a, b arrived) int { return a.at.Compare(b.at) })
	for _, a := range there[:min(len(there), int(math.Ceil(part*float64(len(owners)))))] {
		at = a.at
		if a.by.End.After(decided) {
			decided = a.by.End
		}
	}
	return at, decided
}

// decision is the last one in words, and its reasons.
func (o *observer) decision() (what, why string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.last == nil {
		return "nothing yet", ""
	}
	moves := 0
	for _, c := range o.last.Commands {
		moves += c.Moves
	}
	return fmt.Sprintf("%s, in the window to %s UTC", count(moves, "move"), o.last.Window.End.UTC().Format("15:04:05")), reasons(o.last.Reasons)
}

// reasons are the most frequent of a decision's, in words.
func reasons(list []control.Reason) string {
	by := map[string]int64{}
	for _, r := range list {
		by[r.Code] += max(r.Count, 1)
	}
	codes := make([]string, 0, len(by))
	for c := range by {
		codes = append(codes, c)
	}
	slices.SortFunc(codes, func(a, b string) int { return cmp.Or(cmp.Compare(by[b], by[a]), cmp.Compare(a, b)) })
	var out []string
	for _, c := range codes[:min(len(codes), 3)] {
		out = append(out, fmt.Sprintf("%s %d", c, by[c]))
	}
	if len(out) == 0 {
		return "no reasons"
	}
	return strings.Join(out, ", ")
}

// moved is how many moves were done, and what else became of moves.
func (o *observer) moved() (done int, bytes int64, others map[control.Status]int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	others = map[control.Status]int{}
	for s, n := range o.done {
		switch s {
		case control.Done:
			done = n
		case control.Imported:
		default:
			others[s] = n
		}
	}
	return done, o.bytes, others
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
