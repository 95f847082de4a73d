package router

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"penstock/consumers/executor"
	"penstock/infra/clock"
	"penstock/infra/shares"
	"penstock/schemas/control"
)

// KeeperOptions of a Keeper.
type KeeperOptions struct {
	// Clock paces looks at the target and ends tables at their ttl. Defaults to the
	// machine's.
	Clock clock.Clock
	// Defaults are in force for a calling component without a table and after a ttl
	// is over. Their epoch is 0. A component without one is left to the target's own
	// configuration.
	Defaults []shares.Table
	// Every is how often the target is looked at: whether it still has what it was
	// told, and whether a ttl is over. Defaults to 1 s.
	Every time.Duration
	// History calls fn for each command of kind split that the bus still holds, in
	// its order, with the time at which the server stored it. A keeper that starts
	// takes the last good tables up from there. Needed.
	History func(ctx context.Context, fn func(c *control.Command, at time.Time) error) error
	Logger  zerolog.Logger
	// Metrics gets the counts. Defaults to none.
	Metrics executor.Metrics
	// Target is what tables are put to. Needed.
	Target Target
}

// Keeper is the executor's target of kind split: it brings tables into force at a
// Target and keeps them there until their ttl is over. It is safe for concurrent
// use.
type Keeper struct {
	o        KeeperOptions
	tables   executor.Tables
	defaults map[string]shares.Table

	mu     sync.Mutex
	scopes map[string]*scope
}

// scope is a calling component.
type scope struct {
	mu    sync.Mutex   // held while the target is told something for it
	good  shares.Table // what is in force, or is to be again
	until time.Time    // zero: for ever
	has   bool         // good is a table or a default; else it is the target's own business
	lost  error        // the target has lost good and would not take it again
	taken uint64       // the epoch that was taken up from the bus and not delivered yet
}

// State is what a keeper knows of a calling component.
type State struct {
	Table shares.Table
	// Until is when its ttl is over; zero for a default.
	Until time.Time
	// Lost says why the target, which has lost the table, would not take it again.
	// Nothing is sent to it until there is another table.
	Lost error
}

var _ executor.Target = (*Keeper)(nil)

// NewKeeper returns a keeper that has told its target nothing yet. ErrOptions,
// shares.ErrTable and shares.ErrShares for defaults that can't be.
func NewKeeper(o KeeperOptions) (*Keeper, error) {
	if o.Target == nil || o.History == nil || o.Every < 0 {
		return nil, fmt.Errorf("keeper: a target and a history are needed, and no negative time: %w", ErrOptions)
	}
	o.Every = cmp.Or(o.Every, time.Second)
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	if o.Metrics == nil {
		o.Metrics = executor.NoMetrics{}
	}
	k := &Keeper{o: o, defaults: map[string]shares.Table{}, scopes: map[string]*scope{}}
	for _, t := range o.Defaults {
		if err := t.Check(); err != nil {
			return nil, err
		}
		if _, twice := k.defaults[t.From]; twice || t.Epoch != 0 {
			return nil, fmt.Errorf("default of %.80q: expected one, of epoch 0: %w", t.From, ErrOptions)
		}
		k.defaults[t.From] = t
	}
	k.tables.Of, k.tables.Name, k.tables.Put = control.Split, o.Target.Name(), k.put
	return k, nil
}

// Kind is split.
func (k *Keeper) Kind() control.Kind { return control.Split }

// Apply brings a command's table into force and answers it, once per epoch.
func (k *Keeper) Apply(ctx context.Context, c *control.Command, answer executor.Answer) error {
	o, taken, err := k.deliver(ctx, c)
	switch {
	case err != nil:
		return err
	case taken:
		return answer(ctx, o)
	}
	return k.tables.Apply(ctx, c, answer)
}

// deliver makes the outcome of a table that was taken up from the bus before it
// was delivered: nobody may have answered it yet, and if somebody did, the bus
// drops the same answer.
func (k *Keeper) deliver(ctx context.Context, c *control.Command) (o control.Outcome, taken bool, err error) {
	s := k.scope(c.Scope)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken == 0 || s.taken != c.Epoch {
		return o, false, nil
	}
	o = control.Outcome{Scope: c.Scope, Epoch: c.Epoch, Status: control.Done, Target: k.o.Target.Name()}
	if s.has && s.good.Epoch == c.Epoch {
		_, err = k.o.Target.Put(ctx, s.good) // it may have been away until now
	}
	switch {
	case errors.Is(err, executor.ErrAgain) || ctx.Err() != nil:
		return o, true, fmt.Errorf("table of %.80q, epoch %d: %w", c.Scope, c.Epoch, err)
	case err != nil:
		k.tables.Epochs.Rejected(c.Scope, c.Epoch, err.Error())
		o.Status, o.Reason, s.lost = control.Failed, err.Error(), err
	}
	s.taken = 0
	return o, true, nil
}

// Decline answers a table without applying it.
func (k *Keeper) Decline(ctx context.Context, c *control.Command, s control.Status, answer executor.Answer) error {
	if s == control.Advised && c.Split != nil && !k.concerned(tableFrom(c)) {
		return answer(ctx, control.Outcome{Scope: c.Scope, Epoch: c.Epoch, Target: k.tables.Name, Status: s, Reason: control.NotConcerned})
	}
	return k.tables.Decline(ctx, c, s, answer)
}

// candidates is how many tables of a component are kept in mind while the history
// is read, should the target not take the last ones.
const candidates = 8

type candidate struct {
	c     *control.Command
	until time.Time
}

// Resume brings into force what was in force before: of each calling component
// the last table that is to be acted on, whose ttl is not over and which the target
// takes, else the default; the default too if the last one has nothing for the
// target. It is answered when it is delivered.
func (k *Keeper) Resume(ctx context.Context, _ executor.Answer) error {
	found := map[string][]candidate{}
	err := k.o.History(ctx, func(c *control.Command, at time.Time) error {
		if c.Kind != control.Split || c.Mode != control.Act || c.Split == nil {
			return nil
		}
		until, err := executor.Over(c, at)
		if err != nil {
			return err
		}
		all := append(found[c.Scope], candidate{c, until})
		found[c.Scope] = all[max(0, len(all)-candidates):]
		return nil
	})
	if err != nil {
		return fmt.Errorf("tables of before: %w", err)
	}
	for from := range k.defaults {
		if _, some := found[from]; !some {
			found[from] = nil
		}
	}
	for from, all := range found {
		if err := k.takeUp(ctx, from, all); err != nil {
			return err
		}
	}
	return nil
}

// takeUp puts the last of the candidates that the target takes, if its ttl is not
// over, else the default. If the target can't be reached Run goes on trying.
func (k *Keeper) takeUp(ctx context.Context, from string, all []candidate) error {
	now := k.o.Clock.Now()
	for _, x := range slices.Backward(all) {
		if !x.until.After(now) {
			break
		}
		t := tableFrom(x.c)
		if !k.concerned(t) {
			k.tables.Epochs.NotConcerned(from, x.c.Epoch)
			break
		}
		err := k.bring(ctx, t, x.until, false)
		if ctx.Err() != nil {
			return fmt.Errorf("table of %.80q: %w", from, ctx.Err())
		}
		if err == nil || errors.Is(err, executor.ErrAgain) {
			k.tables.Epochs.InForce(from, x.c.Epoch)
			k.owe(from, t, x.until, err)
			k.take(from, x.c.Epoch)
			return nil
		}
		k.tables.Epochs.Rejected(from, x.c.Epoch, err.Error())
	}
	s := k.scope(from)
	s.mu.Lock()
	err := k.giveWay(ctx, from, s)
	s.mu.Unlock()
	if ctx.Err() != nil {
		return err
	}
	k.owe(from, shares.Table{}, now, err)
	return nil
}

func (k *Keeper) take(from string, epoch uint64) {
	s := k.scope(from)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken = epoch
}

// owe notes what Run is to do because a target could not be reached: to put a
// table, or what comes after one that ended.
func (k *Keeper) owe(from string, t shares.Table, until time.Time, err error) {
	if err == nil {
		return
	}
	k.o.Metrics.Count(executor.Retried, "target", 1)
	k.o.Logger.Warn().Err(err).Str("component", from).Msg("the target can't be told what is in force; it is tried again")
	s := k.scope(from)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.good, s.until, s.has = t, until, t.From != ""
}

func tableFrom(c *control.Command) shares.Table {
	return shares.Table{From: c.Scope, Epoch: c.Epoch, Rows: c.Split.Table, Probes: c.Split.Probes}
}

// put is what executor.Tables calls for a table that is new.
func (k *Keeper) put(ctx context.Context, c *control.Command) error {
	if c.Split == nil {
		return fmt.Errorf("a command without a table: %w", shares.ErrTable)
	}
	until, err := executor.OverBy(ctx, c, k.o.Clock)
	if err != nil {
		return err
	}
	return k.bring(ctx, tableFrom(c), until, true)
}

// bring puts a table in place → ready → weight order: no share rises where nothing
// is ready. What was in force before a start is not asked to be ready again. A table
// without a row that the target carries is put nowhere: executor.ErrNotConcerned. One
// that was in force before it gives way to the default.
func (k *Keeper) bring(ctx context.Context, t shares.Table, until time.Time, ordered bool) error {
	if err := t.Check(); err != nil {
		return err
	}
	s := k.scope(t.From)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !k.concerned(t) {
		if !s.until.IsZero() {
			if err := k.giveWay(ctx, t.From, s); err != nil {
				return err
			}
		}
		return fmt.Errorf("table of %.80q, epoch %d: %w", t.From, t.Epoch, executor.ErrNotConcerned)
	}
	if ordered {
		if err := k.ready(ctx, t); err != nil {
			return err
		}
	}
	if _, err := k.o.Target.Put(ctx, t); err != nil {
		return fmt.Errorf("table of %.80q, epoch %d: %w", t.From, t.Epoch, err)
	}
	s.good, s.until, s.has, s.lost = t, until, true, nil
	return nil
}

// carries says whether the target carries a row of a calling component.
func (k *Keeper) carries(from string, r shares.Row) bool {
	c, some := k.o.Target.(Carrier)
	return !some || c.Carries(shares.Link{From: from, FromSite: r.FromSite, To: r.To})
}

// concerned says whether there is anything in a table for the target. One without
// rows is for those that carry all.
func (k *Keeper) concerned(t shares.Table) bool {
	_, some := k.o.Target.(Carrier)
	return !some || slices.ContainsFunc(t.Rows, func(r shares.Row) bool { return k.carries(t.From, r) })
}

// ready says whether the target can take what a table raises in rows that are its own.
func (k *Keeper) ready(ctx context.Context, t shares.Table) error {
	now, err := k.o.Target.Observe(ctx, t.From)
	if err != nil {
		return fmt.Errorf("look at the shares of %.80q: %w", t.From, err)
	}
	t.Rows = slices.DeleteFunc(slices.Clone(t.Rows), func(r shares.Row) bool { return !k.carries(t.From, r) })
	for _, replica := range t.Raised(now) {
		if err := k.o.Target.Ready(ctx, replica); err != nil {
			return fmt.Errorf("table of %.80q, epoch %d: %w", t.From, t.Epoch, err)
		}
	}
	return nil
}

// giveWay puts the default in the place of a table, for a scope that is locked.
func (k *Keeper) giveWay(ctx context.Context, from string, s *scope) error {
	t, has := k.defaults[from]
	var err error
	if has {
		_, err = k.o.Target.Put(ctx, t)
	} else {
		err = k.o.Target.Clear(ctx, from)
	}
	if errors.Is(err, executor.ErrAgain) || ctx.Err() != nil {
		return fmt.Errorf("default of %.80q: %w", from, err)
	}
	s.good, s.until, s.has, s.lost = t, time.Time{}, has, err
	if err != nil {
		k.o.Metrics.Count(executor.Rejected, "default", 1)
		k.o.Logger.Error().Err(err).Str("component", from).Msg("the target does not take the default; what it had stays")
	}
	return nil
}

// State is what is in force for a calling component; false if it is the target's
// own business.
func (k *Keeper) State(from string) (State, bool) {
	s := k.scope(from)
	s.mu.Lock()
	defer s.mu.Unlock()
	return State{Table: s.good, Until: s.until, Lost: s.lost}, s.has
}

func (k *Keeper) known() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := make([]string, 0, len(k.scopes))
	for from := range k.scopes {
		all = append(all, from)
	}
	slices.Sort(all)
	return all
}

func (k *Keeper) scope(from string) *scope {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.scopes[from]
	if s == nil {
		s = &scope{}
		k.scopes[from] = s
	}
	return s
}
