package dispatcher

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"penstock/consumers/executor"
	"penstock/infra/clock"
	"penstock/infra/wholefile"
	"penstock/schemas/control"
)

// TargetOptions of a Target. The zero value of a field is its default.
type TargetOptions struct {
	// Site that tables are for. Needed.
	Site *Site
	// Clock ends tables at their ttl. Defaults to the machine's.
	Clock clock.Clock
	// Every is how often Run looks whether a ttl is over, and whether something else is
	// to be kept in the file. Defaults to 1 s.
	Every time.Duration
	// File keeps the table in force over restarts; see Restore. Defaults to none.
	File string
	// History calls fn for each command of kind servers that the bus still holds, as
	// executor.History does: a target that starts takes the last table up from there.
	// Defaults to none.
	History func(ctx context.Context, fn func(c *control.Command, at time.Time) error) error
	// Logger is told what is in force.
	Logger zerolog.Logger
	// Metrics gets the counts. Defaults to none.
	Metrics executor.Metrics
	// Name is the target in outcomes; the server switch's is another, see
	// control.SwitchTarget. Defaults to dispatcher.
	Name string
}

// Target is the executor's target of kind servers at a dispatcher: it brings tables into
// force at its site and gives way to the default when a ttl is over. It is safe for
// concurrent use.
type Target struct {
	o      TargetOptions
	tables executor.Tables
	file   wholefile.JSON[*held]

	mu    sync.Mutex
	taken uint64 // epoch taken up from the bus and not delivered yet
}

var _ executor.Target = (*Target)(nil)

// held is the table in the file.
type held struct {
	Site  string               `json:"site"`
	Epoch uint64               `json:"epoch"`
	Until time.Time            `json:"until"`
	Table control.ServersTable `json:"table"`
}

// NewTarget returns a target that has brought nothing into force yet. ErrOptions.
func NewTarget(o TargetOptions) (*Target, error) {
	if o.Site == nil || o.Every < 0 || o.Name == control.SwitchTarget {
		return nil, fmt.Errorf("a target needs a site, no negative time, and another name than %s: %w", control.SwitchTarget, ErrOptions)
	}
	o.Every, o.Name = cmp.Or(o.Every, time.Second), cmp.Or(o.Name, "dispatcher")
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	if o.Metrics == nil {
		o.Metrics = executor.NoMetrics{}
	}
	t := &Target{o: o, file: wholefile.JSON[*held]{Name: o.File}}
	t.tables.Of, t.tables.Name, t.tables.Put = control.Servers, o.Name, t.put
	return t, nil
}

// Kind is servers.
func (t *Target) Kind() control.Kind { return control.Servers }

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
	if c.Scope != t.o.Site.o.Site || t.taken == 0 || t.taken != c.Epoch {
		return false
	}
	t.taken = 0
	return true
}

// Decline answers a table without applying it.
func (t *Target) Decline(ctx context.Context, c *control.Command, s control.Status, answer executor.Answer) error {
	if c.Scope != t.o.Site.o.Site && s == control.Advised {
		return answer(ctx, control.Outcome{Scope: c.Scope, Epoch: c.Epoch, Target: t.o.Name, Status: s, Reason: control.NotConcerned})
	}
	return t.tables.Decline(ctx, c, s, answer)
}

// put is what executor.Tables calls for a table that is new.
func (t *Target) put(ctx context.Context, c *control.Command) error {
	if c.Scope != t.o.Site.o.Site {
		return fmt.Errorf("site %.80q: %w", c.Scope, executor.ErrNotConcerned)
	}
	until, err := executor.OverBy(ctx, c, t.o.Clock)
	if err != nil {
		return err
	}
	return t.bring(c, until)
}

// bring brings a command's table into force.
func (t *Target) bring(c *control.Command, until time.Time) error {
	if c.Servers == nil {
		return fmt.Errorf("%.80q, epoch %d, has none: %w", c.Scope, c.Epoch, ErrTable)
	}
	if err := t.o.Site.Put(c.Servers, c.Epoch, until); err != nil {
		return fmt.Errorf("%.80q, epoch %d: %w", c.Scope, c.Epoch, err)
	}
	t.o.Logger.Info().Str("site", c.Scope).Uint64("epoch", c.Epoch).Int("on", len(c.Servers.On)).Int("off", len(c.Servers.Off)).
		Msg("a table of servers is in force")
	return nil
}

// Resume brings into force what was in force before: the last table of the site that is
// to be acted on, unless its ttl is over, else the default. It is answered when it is
// delivered. If the bus has none, what Restore gave stays.
func (t *Target) Resume(ctx context.Context, _ executor.Answer) error {
	if t.o.History == nil {
		return nil
	}
	var last *control.Command
	var until time.Time
	err := t.o.History(ctx, func(c *control.Command, at time.Time) error {
		if c.Kind != control.Servers || c.Mode != control.Act || c.Scope != t.o.Site.o.Site {
			return nil
		}
		over, err := executor.Over(c, at)
		last, until = c, over
		return err
	})
	if err != nil {
		return fmt.Errorf("tables of before: %w", err)
	}
	if last != nil {
		t.takeUp(last, until)
	}
	return nil
}

// takeUp brings into force what the bus has last.
func (t *Target) takeUp(c *control.Command, until time.Time) {
	if !until.After(t.o.Clock.Now()) {
		t.o.Site.giveWay()
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
	t.taken = c.Epoch
}

// Run ends a table whose ttl is over, and keeps the one in force in the file, until ctx
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
			if t.o.Site.Expire(t.o.Clock.Now()) {
				t.o.Metrics.Count(executor.Outcomes, "ttl-over", 1)
				t.o.Logger.Warn().Str("site", t.o.Site.o.Site).Msg("the ttl of a table is over: the default is in force, all servers are on")
			}
			t.keep()
		}
	}
}

// Restore brings into force what the file holds, unless its ttl is over or it is another
// site's, and says whether it did. It is called once, before anything else: what the bus
// has takes its place when Resume reads it. ErrFile and ErrTable hold nothing up.
func (t *Target) Restore() (some bool, err error) {
	if t.o.File == "" {
		return false, nil
	}
	h, there, err := t.file.Read()
	switch {
	case err != nil:
		t.o.Metrics.Count(executor.Rejected, "held-file", 1)
		return false, fmt.Errorf("%w: %w", ErrFile, err)
	case !there || h == nil:
		return false, nil
	case h.Site != t.o.Site.o.Site:
		t.o.Metrics.Count(executor.Rejected, "held-site", 1)
		return false, nil
	case !h.Until.After(t.o.Clock.Now()):
		t.o.Metrics.Count(executor.Rejected, "held-ttl-over", 1)
		return false, nil
	}
	if err := t.o.Site.Put(&h.Table, h.Epoch, h.Until); err != nil {
		t.o.Metrics.Count(executor.Rejected, "held", 1)
		return false, fmt.Errorf("%s: %w", t.o.File, err)
	}
	return true, nil
}

// keep writes the file when something else is in force than it holds.
func (t *Target) keep() {
	if t.o.File == "" {
		return
	}
	var h *held
	if in := t.o.Site.Table(); in.Servers != nil {
		h = &held{Site: t.o.Site.o.Site, Epoch: in.Epoch, Until: in.Until.UTC(), Table: *in.Servers}
	}
	if err := t.file.Keep(h); err != nil {
		t.o.Metrics.Count(executor.Retried, "held-file", 1)
		t.o.Logger.Warn().Err(err).Msg("the table in force can't be kept over a restart; it is tried again")
	}
}
