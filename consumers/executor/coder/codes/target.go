package codes

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
	"penstock/infra/wholefile"
	"penstock/schemas/control"
)

// TargetOptions of a Target.
type TargetOptions struct {
	// Choosers are those of this process by the names of their coders, which are the
	// scopes of commands. Needed.
	Choosers map[string]*Chooser
	// Clock ends tables at their ttl. Defaults to the machine's.
	Clock clock.Clock
	// Every is how often Run looks whether a ttl is over, and whether something else
	// is to be kept in the file. Defaults to 1 s.
	Every time.Duration
	// File keeps the tables in force over restarts; see Restore. Defaults to none.
	File string
	// History calls fn for each command of kind coding that the bus still holds, as
	// executor.History does: a target that starts takes the last tables up from there.
	// Defaults to none.
	History func(ctx context.Context, fn func(c *control.Command, at time.Time) error) error
	Logger  zerolog.Logger
	// Metrics gets the counts. Defaults to none.
	Metrics executor.Metrics
	// Name is the target in outcomes. Defaults to coder.
	Name string
}

// Target is the executor's target of kind coding: it brings tables into force at
// choosers and gives way to their defaults when a ttl is over. It is safe for concurrent
// use.
type Target struct {
	o      TargetOptions
	tables executor.Tables

	mu    sync.Mutex
	taken map[string]uint64 // epochs taken up from the bus and not delivered yet

	file wholefile.JSON[[]held]
}

var _ executor.Target = (*Target)(nil)

// NewTarget returns a target that has brought nothing into force yet. ErrOptions.
func NewTarget(o TargetOptions) (*Target, error) {
	if len(o.Choosers) == 0 || o.Every < 0 {
		return nil, fmt.Errorf("a target needs a chooser, and no negative time: %w", ErrOptions)
	}
	for name, c := range o.Choosers {
		if c == nil {
			return nil, fmt.Errorf("no chooser of %.80q: %w", name, ErrOptions)
		}
	}
	o.Every, o.Name = cmp.Or(o.Every, time.Second), cmp.Or(o.Name, "coder")
	o.Choosers = maps.Clone(o.Choosers)
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	if o.Metrics == nil {
		o.Metrics = executor.NoMetrics{}
	}
	t := &Target{o: o, taken: map[string]uint64{}, file: wholefile.JSON[[]held]{Name: o.File}}
	t.tables.Of, t.tables.Name, t.tables.Put = control.Coding, o.Name, t.put
	return t, nil
}

// Kind is coding.
func (t *Target) Kind() control.Kind { return control.Coding }

// Apply brings a command's table into force and answers it, once per epoch.
func (t *Target) Apply(ctx context.Context, c *control.Command, answer executor.Answer) error {
	if t.deliver(c) {
		return answer(ctx, control.Outcome{Scope: c.Scope, Epoch: c.Epoch, Status: control.Done, Target: t.o.Name})
	}
	return t.tables.Apply(ctx, c, answer)
}

// deliver says whether a table was taken up from the bus before it was delivered: nobody
// may have answered it yet, and if somebody did, the bus drops the same answer.
func (t *Target) deliver(c *control.Command) bool {
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
func (t *Target) Decline(ctx context.Context, c *control.Command, s control.Status, answer executor.Answer) error {
	if t.o.Choosers[c.Scope] == nil && s == control.Advised {
		return answer(ctx, control.Outcome{Scope: c.Scope, Epoch: c.Epoch, Target: t.o.Name, Status: s, Reason: control.NotConcerned})
	}
	return t.tables.Decline(ctx, c, s, answer)
}

// put is what executor.Tables calls for a table that is new.
func (t *Target) put(ctx context.Context, c *control.Command) error {
	chooser := t.o.Choosers[c.Scope]
	if chooser == nil {
		return fmt.Errorf("coder %.80q: %w", c.Scope, executor.ErrNotConcerned)
	}
	until, err := executor.OverBy(ctx, c, t.o.Clock)
	if err != nil {
		return err
	}
	return t.bring(chooser, c, until)
}

// bring brings a command's table into force.
func (t *Target) bring(chooser *Chooser, c *control.Command, until time.Time) error {
	if c.Coding == nil {
		return fmt.Errorf("%.80q, epoch %d, has none: %w", c.Scope, c.Epoch, ErrTable)
	}
	if err := chooser.Set(c.Coding, c.Epoch, until); err != nil {
		return fmt.Errorf("%.80q, epoch %d: %w", c.Scope, c.Epoch, err)
	}
	t.o.Logger.Info().Str("coder", c.Scope).Uint64("epoch", c.Epoch).Str("policy", string(c.Coding.Policy)).Msg("a table of codes is in force")
	return nil
}

// Resume brings into force what was in force before: of each coder the last table that
// is to be acted on, unless its ttl is over, else the default. It is answered when it is
// delivered. A coder of which the bus has none stays at what Restore gave it.
func (t *Target) Resume(ctx context.Context, _ executor.Answer) error {
	if t.o.History == nil {
		return nil
	}
	last, until := map[string]*control.Command{}, map[string]time.Time{}
	err := t.o.History(ctx, func(c *control.Command, at time.Time) error {
		if c.Kind != control.Coding || c.Mode != control.Act || t.o.Choosers[c.Scope] == nil {
			return nil
		}
		over, err := executor.Over(c, at)
		last[c.Scope], until[c.Scope] = c, over
		return err
	})
	if err != nil {
		return fmt.Errorf("tables of before: %w", err)
	}
	for _, name := range t.names() {
		if c := last[name]; c != nil {
			t.takeUp(c, until[name])
		}
	}
	return nil
}

// takeUp brings into force what the bus has last for a coder.
func (t *Target) takeUp(c *control.Command, until time.Time) {
	chooser := t.o.Choosers[c.Scope]
	if !until.After(t.o.Clock.Now()) {
		chooser.giveWay()
		return
	}
	if err := t.bring(chooser, c, until); err != nil {
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
func (t *Target) Run(ctx context.Context) error {
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
func (t *Target) look() {
	now := t.o.Clock.Now()
	for _, name := range t.names() {
		if t.o.Choosers[name].Expire(now) {
			t.o.Metrics.Count(executor.Outcomes, "ttl-over", 1)
			t.o.Logger.Warn().Str("coder", name).Msg("the ttl of a table is over: the default is in force")
		}
	}
}

func (t *Target) names() []string { return slices.Sorted(maps.Keys(t.o.Choosers)) }
