package mover

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/time/rate"

	"penstock/consumers/executor"
	"penstock/consumers/executor/locations"
	"penstock/infra/clock"
	"penstock/infra/objectstore"
	"penstock/schemas/control"
)

// Options of a mover.
type Options struct {
	// Attempts is how often a move is tried while a store errs. Defaults to 3.
	Attempts int
	// Bandwidth bounds what is copied, over all moves, in bytes per second; 0
	// bounds nothing.
	Bandwidth int64
	// Clock paces retries and deletions. Defaults to the machine's.
	Clock clock.Clock
	// DeleteAfter is how long a retired copy is kept, in wall time; 0 keeps it
	// until Purge, as a replay does.
	DeleteAfter time.Duration
	// Dir is the folder of the journal, for this mover alone.
	Dir string
	// HoldMax is how long writers of an owner are held at most. Defaults to 1 s.
	HoldMax time.Duration
	// Hook, if set, is told of each step of a move that was taken, by name, and of
	// copies that were deleted after one, for tests that kill the process there.
	// Several moves call it at once.
	Hook func(step string, m control.Move)
	// KeepAnswers is how long answered moves are remembered. Defaults to 2 h,
	// twice as long as the bus drops repeated outcomes.
	KeepAnswers time.Duration
	// Locations is where owners are.
	Locations locations.Table
	Logger    zerolog.Logger
	// Metrics gets the counts. Defaults to none.
	Metrics executor.Metrics
	// Name is this mover's, in marks of copies under way. Two movers of one bus
	// have different names; one that comes back has the one it had.
	Name string
	// NoSync leaves out the journal's syncs: it survives the death of the process
	// but not of the machine.
	NoSync bool
	// Parallel is how many moves run at a time, over all commands. Defaults to 4.
	Parallel int
	// Rounds is how often what changed meanwhile is copied again before writers
	// are held. Defaults to 5.
	Rounds int
	// Stores are the object stores by site.
	Stores map[string]objectstore.Store

	// after is called after each step of a move; its error ends the move as a
	// crash would. Tests set it.
	after func(step, *task) error
}

// step names a point in a move at which a crash leaves something behind.
type step string

// The steps, in their order.
const (
	stepPlanned    step = "planned"    // journalled
	stepMarked     step = "marked"     // the destination's copy is incoming
	stepObject     step = "object"     // one object was copied
	stepCopied     step = "copied"     // all were, verified and journalled
	stepHeld       step = "held"       // writers wait
	stepFenced     step = "fenced"     // the source's copy is retired
	stepFlipped    step = "flipped"    // locations names the destination
	stepJournalled step = "journalled" // and the journal knows
	stepSettled    step = "settled"    // the destination's copy is live
	stepAnswered   step = "answered"   // the outcome is on the bus
	stepClosed     step = "closed"     // and the journal knows
	stepDeleted    step = "deleted"    // the source's copy is gone, and the journal doesn't know
)

// Mover is the executor's target for placement. It is safe for concurrent use.
type Mover struct {
	o       Options
	journal *journal
	limit   *rate.Limiter // nil: none
	slots   chan struct{}
	owners  ownerLocks
	changed chan struct{} // tells Run that a deletion was planned
}

var _ executor.Target = (*Mover)(nil)

// New opens the journal and returns the mover. ErrInUse, ErrCorrupt. Close it.
func New(o Options) (*Mover, error) {
	o.Attempts = cmp.Or(o.Attempts, 3)
	o.HoldMax = cmp.Or(o.HoldMax, time.Second)
	o.KeepAnswers = cmp.Or(o.KeepAnswers, 2*time.Hour)
	o.Parallel = cmp.Or(o.Parallel, 4)
	o.Rounds = cmp.Or(o.Rounds, 5)
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	if o.Metrics == nil {
		o.Metrics = executor.NoMetrics{}
	}
	if o.Dir == "" || o.Name == "" || o.Locations == nil || o.Attempts < 0 || o.Parallel < 0 || o.Bandwidth < 0 || o.DeleteAfter < 0 {
		return nil, fmt.Errorf("mover: a folder, a name and locations are needed, and no negative bound: %w", executor.ErrOptions)
	}
	j, err := openJournal(o.Dir, !o.NoSync, o.Clock.Now(), o.KeepAnswers)
	if err != nil {
		return nil, err
	}
	m := &Mover{
		o: o, journal: j, slots: make(chan struct{}, o.Parallel), changed: make(chan struct{}, 1),
		owners: ownerLocks{held: map[string]*ownerLock{}},
	}
	if o.Bandwidth > 0 {
		m.limit = rate.NewLimiter(rate.Limit(o.Bandwidth), max(copyChunk, int(min(o.Bandwidth/4, 1<<30))))
	}
	return m, nil
}

// Close gives the journal free. Moves under way fail as in a crash. It is safe to
// call twice.
func (m *Mover) Close() error { return m.journal.close() }

// Kind is placement.
func (m *Mover) Kind() control.Kind { return control.Placement }

// Open is how many moves were begun and not answered.
func (m *Mover) Open() int { return len(m.journal.openTasks()) }

// Retired reports whether this mover has a deletion of the owner's copy at the
// site before it.
func (m *Mover) Retired(owner, site string) bool {
	_, ok := m.journal.retirement(owner, site)
	return ok
}

// Resume finishes the moves that the journal has open.
func (m *Mover) Resume(ctx context.Context, answer executor.Answer) error {
	tasks := m.journal.openTasks()
	if len(tasks) > 0 {
		m.o.Logger.Info().Int("moves", len(tasks)).Msg("resuming moves of before")
	}
	return m.all(ctx, tasks, func(ctx context.Context, t *task) error { return m.do(ctx, t, answer) })
}

// Apply carries the moves of a command out, several at a time.
func (m *Mover) Apply(ctx context.Context, c *control.Command, answer executor.Answer) error {
	return m.all(ctx, tasksOf(c), func(ctx context.Context, t *task) error { return m.do(ctx, t, answer) })
}

func tasksOf(c *control.Command) []task {
	tasks := make([]task, len(c.Placement.Moves))
	for i, mv := range c.Placement.Moves {
		tasks[i] = task{Move: mv, scope: c.Scope, window: c.Window.End}
	}
	return tasks
}

// Decline answers moves that are not to be carried out. One that expired while it
// was under way here is carried out; what another mover left of it is removed, or
// is answered done if that one had flipped.
func (m *Mover) Decline(ctx context.Context, c *control.Command, status control.Status, answer executor.Answer) error {
	return m.all(ctx, tasksOf(c), func(ctx context.Context, t *task) error {
		if status == control.Advised {
			return answer(ctx, outcome(t, status, "", 0))
		}
		if m.journal.isOpen(t.key()) {
			return m.do(ctx, t, answer)
		}
		unlock, err := m.owners.lock(ctx, t.Owner)
		if err != nil {
			return err
		}
		defer unlock()
		if m.journal.isAnswered(t.key()) {
			return answer(ctx, outcome(t, control.AlreadyApplied, "journal", 0))
		}
		done, err := m.abandon(ctx, t)
		if err != nil {
			return err
		}
		if done {
			return m.finish(ctx, t, answer)
		}
		return m.close(ctx, t, outcome(t, status, "", 0), answer)
	})
}

// all calls f for each task, as many at a time as there are slots. After an error
// it begins no more, lets those under way come to their end, and returns the
// first.
func (m *Mover) all(ctx context.Context, tasks []task, f func(context.Context, *task) error) error {
	var (
		wg    sync.WaitGroup
		once  sync.Once
		first error
	)
	failed := make(chan struct{})
	fail := func(err error) { once.Do(func() { first = err; close(failed) }) }
	for i := range tasks {
		select {
		case <-failed:
		case <-ctx.Done():
			fail(ctx.Err())
		case m.slots <- struct{}{}:
			wg.Go(func() {
				defer func() { <-m.slots }()
				if err := f(ctx, &tasks[i]); err != nil {
					fail(err)
				}
			})
			continue
		}
		break
	}
	wg.Wait()
	return first
}

// do carries one move out and answers it.
func (m *Mover) do(ctx context.Context, t *task, answer executor.Answer) error {
	unlock, err := m.owners.lock(ctx, t.Owner)
	if err != nil {
		return err
	}
	defer unlock()
	if m.journal.isAnswered(t.key()) {
		return answer(ctx, outcome(t, control.AlreadyApplied, "journal", 0))
	}
	return m.finish(ctx, t, answer)
}

// finish carries one move to its end and answers it. Its owner is locked.
func (m *Mover) finish(ctx context.Context, t *task, answer executor.Answer) error {
	start := m.o.Clock.Now()
	o, err := m.carry(ctx, t)
	if err != nil {
		return fmt.Errorf("move %d of owner %.80q: %w", t.Version, t.Owner, err)
	}
	o.TookUS = m.o.Clock.Now().Sub(start).Microseconds()
	return m.close(ctx, t, o, answer)
}

// close answers a move and journals that it did.
func (m *Mover) close(ctx context.Context, t *task, o control.Outcome, answer executor.Answer) error {
	if err := answer(ctx, o); err != nil {
		return err
	}
	if err := m.passed(stepAnswered, t); err != nil {
		return err
	}
	if err := m.journal.answer(t, o.Status, m.o.Clock.Now()); err != nil {
		return err
	}
	return m.passed(stepClosed, t)
}

func outcome(t *task, s control.Status, reason string, bytes int64) control.Outcome {
	return control.Outcome{
		Scope: t.scope, Owner: t.Owner, Move: t.Version, Status: s, Reason: reason, Bytes: bytes,
	}
}

// passed tells a test that a step was taken.
func (m *Mover) passed(s step, t *task) error {
	if m.o.Hook != nil {
		m.o.Hook(string(s), t.Move)
	}
	if m.o.after == nil {
		return nil
	}
	return m.o.after(s, t)
}

// ownerLocks makes moves of one owner wait for each other.
type ownerLocks struct {
	mu   sync.Mutex
	held map[string]*ownerLock
}

type ownerLock struct {
	sem  chan struct{}
	uses int
}

func (l *ownerLocks) lock(ctx context.Context, owner string) (unlock func(), err error) {
	l.mu.Lock()
	k := l.held[owner]
	if k == nil {
		k = &ownerLock{sem: make(chan struct{}, 1)}
		l.held[owner] = k
	}
	k.uses++
	l.mu.Unlock()
	drop := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if k.uses--; k.uses == 0 {
			delete(l.held, owner)
		}
	}
	select {
	case k.sem <- struct{}{}:
		return func() { <-k.sem; drop() }, nil
	case <-ctx.Done():
		drop()
		return nil, ctx.Err()
	}
}
