package inforce

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"penstock/consumers/executor"
	"penstock/infra/clock"
	"penstock/schemas/control"
)

// Options of a Target.
type Options struct {
	// Clock ends tables at their ttl. Defaults to the machine's.
	Clock clock.Clock
	// Every is how often Run looks whether a ttl is over, and whether something else
	// is to be kept in the file. Defaults to 1 s.
	Every time.Duration
	// File keeps the tables in force over restarts; see Restore. Defaults to none.
	File string
	// History calls fn for each command of the kind that the bus still holds, as
	// executor.History does: a target that starts takes the last tables up from there.
	// Defaults to none.
	History func(ctx context.Context, fn func(c *control.Command, at time.Time) error) error
	// Logger is told what is in force.
	Logger zerolog.Logger
	// Metrics gets the counts. Defaults to none.
	Metrics executor.Metrics
	// Name is the target in outcomes. Needed.
	Name string
}

// Target is the executor's target of a kind of tables: it brings them into force at their
// holders and gives way to the defaults when a ttl is over. It is safe for concurrent use.
type Target[T any] struct {
	o       Options
	kind    Kind[T]
	holders map[string]Holder[T]
	tables  executor.Tables
	file    File[T] // nil: none

	mu    sync.Mutex
	taken map[string]uint64 // epochs taken up from the bus and not delivered yet
}

var _ executor.Target = (*Target[struct{}])(nil)

// New returns a target for the holders of this process by their scopes. It has brought
// nothing into force yet. ErrOptions.
func New[T any](kind Kind[T], holders map[string]Holder[T], o Options) (*Target[T], error) {
	if len(holders) == 0 || o.Every < 0 || o.Name == "" {
		return nil, fmt.Errorf("a target needs a %s, no negative time, and a name: %w", kind.Scope, ErrOptions)
	}
	o.Every = cmp.Or(o.Every, time.Second)
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	if o.Metrics == nil {
		o.Metrics = executor.NoMetrics{}
	}
	t := &Target[T]{o: o, kind: kind, holders: maps.Clone(holders), taken: map[string]uint64{}}
	if o.File != "" {
		t.file = kind.File(o.File)
	}
	t.tables.Of, t.tables.Name, t.tables.Put = kind.Kind, o.Name, t.put
	return t, nil
}

// Kind is that of its commands.
func (t *Target[T]) Kind() control.Kind { return t.kind.Kind }

// Apply brings a command's table into force and answers it, once per epoch.
func (t *Target[T]) Apply(ctx context.Context, c *control.Command, answer executor.Answer) error {
	if t.deliver(c) {
		return answer(ctx, control.Outcome{Scope: c.Scope, Epoch: c.Epoch, Status: control.Done, Target: t.o.Name})
	}
	return t.tables.Apply(ctx, c, answer)
}

// deliver says whether a table was taken up from the bus before it was delivered: nobody
// may have answered it yet, and if somebody did, the bus drops the same answer.
func (t *Target[T]) deliver(c *control.Command) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	epoch, some := t.taken[c.Scope]
	if !some || epoch != c.Epoch {
		return false
	}
	delete(t.taken, c.Scope)
	return true
}

// Decline answers a table without applying it.
func (t *Target[T]) Decline(ctx context.Context, c *control.Command, s control.Status, answer executor.Answer) error {
	if t.holders[c.Scope] == nil && s == control.Advised {
		return answer(ctx, control.Outcome{Scope: c.Scope, Epoch: c.Epoch, Target: t.o.Name, Status: s, Reason: control.NotConcerned})
	}
	return t.tables.Decline(ctx, c, s, answer)
}

// put is what executor.Tables calls for a table that is new.
func (t *Target[T]) put(ctx context.Context, c *control.Command) error {
	if t.holders[c.Scope] == nil {
		return fmt.Errorf("%s %.80q: %w", t.kind.Scope, c.Scope, executor.ErrNotConcerned)
	}
	until, err := executor.OverBy(ctx, c, t.o.Clock)
	if err != nil {
		return err
	}
	return t.bring(c, until)
}

// bring brings a command's table into force, of a scope that is held here.
func (t *Target[T]) bring(c *control.Command, until time.Time) error {
	table := t.kind.Of(c)
	if table == nil {
		return fmt.Errorf("%.80q, epoch %d, has none: %w", c.Scope, c.Epoch, t.kind.ErrTable)
	}
	if err := t.holders[c.Scope].Put(table, c.Epoch, until); err != nil {
		return fmt.Errorf("%.80q, epoch %d: %w", c.Scope, c.Epoch, err)
	}
	e := t.o.Logger.Info().Str(t.kind.Scope, c.Scope).Uint64("epoch", c.Epoch)
	t.kind.Log(e, table)
	e.Msgf("a table of %s is in force", t.kind.Kind)
	return nil
}

// Resume brings into force what was in force before: of each scope the last table that is
// to be acted on, unless its ttl is over, else the default. It is answered when it is
// delivered. A scope of which the bus has none stays at what Restore gave it.
func (t *Target[T]) Resume(ctx context.Context, _ executor.Answer) error {
	if t.o.History == nil {
		return nil
	}
	last, until := map[string]*control.Command{}, map[string]time.Time{}
	err := t.o.History(ctx, func(c *control.Command, at time.Time) error {
		if c.Kind != t.kind.Kind || c.Mode != control.Act || t.holders[c.Scope] == nil {
			return nil
		}
		over, err := executor.Over(c, at)
		last[c.Scope], until[c.Scope] = c, over
		return err
	})
	if err != nil {
		return fmt.Errorf("tables of before: %w", err)
	}
	for _, scope := range t.scopes() {
		if c := last[scope]; c != nil {
			t.takeUp(c, until[scope])
		}
	}
	return nil
}

// takeUp brings into force what the bus has last for a scope.
func (t *Target[T]) takeUp(c *control.Command, until time.Time) {
	if !until.After(t.o.Clock.Now()) {
		t.holders[c.Scope].GiveWay()
		return
	}
	if err := t.bring(c, until); err != nil {
		t.tables.Epochs.Rejected(c.Scope, c.Epoch, err.Error())
		t.o.Metrics.Count(executor.Rejected, "table", 1)
		t.o.Logger.Error().Err(err).Msg("a table of before is not taken; what was in force stays")
		return
	}
	t.tables.Epochs.InForce(c.Scope, c.Epoch)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.taken[c.Scope] = c.Epoch
}

// Run ends tables whose ttl is over, and keeps those in force in the file, until ctx
// ends. It returns nil.
func (t *Target[T]) Run(ctx context.Context) error {
	tick := t.o.Clock.NewTicker(t.o.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			t.keep()
			return nil
		case <-tick.C():
			t.look()
			t.keep()
		}
	}
}

// look gives way to the defaults where it is time.
func (t *Target[T]) look() {
	now := t.o.Clock.Now()
	for _, scope := range t.scopes() {
		if t.holders[scope].Expire(now) {
			t.o.Metrics.Count(executor.Outcomes, "ttl-over", 1)
			t.o.Logger.Warn().Str(t.kind.Scope, scope).Msg("the ttl of a table is over: the default is in force")
		}
	}
}

func (t *Target[T]) scopes() []string { return slices.Sorted(maps.Keys(t.holders)) }
