package topology

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"penstock/consumers/decider"
	"penstock/consumers/decider/placement"
	"penstock/infra/bus"
	"penstock/pipeline/config"
	"penstock/pipeline/report"
	"penstock/producers/recording"
	"penstock/producers/replay"
	"penstock/schemas/control"
)

// stateEntries is all that a replay keeps in its state folder; nothing else in
// there is ever removed.
var stateEntries = []string{"bus", "stores", "mover", "written.json", "written.json.tmp", "cursor.json.tmp", "cursor.json"}

// running is a replay under way.
type running struct {
	*Replay
	bus       *bus.Bus
	parts     *Parts
	stores    Stores
	policy    placement.Config
	known     map[string]control.Location // before the first row
	stored    map[string]int64            // bytes of them, as far as they were said
	config    []byte                      // canonical, of the policy
	tables    []*tables                   // of the kinds beside placement
	digest    string                      // of the recordings
	collector *report.Collector
	mover     *moverPart
	source    *source
}

// Run replays and returns the report, which has been written to Out together
// with commands.jsonl, decisions.jsonl and matrices. The same call again goes
// on with an unfinished replay, and starts a finished one afresh. An unfinished
// different one is a *replay.DifferentError.
func (r *Replay) Run(ctx context.Context) (*report.Report, error) {
	if err := r.complete(); err != nil {
		return nil, err
	}
	if err := r.prepareState(); err != nil {
		return nil, err
	}
	rep, err := r.attempt(ctx)
	if !errors.Is(err, errGotNowhere) {
		return rep, err
	}
	if err := r.dropState(); err != nil {
		return nil, err
	}
	return r.attempt(ctx)
}

// errGotNowhere says that the state is of another replay that was cut off before
// its first window was answered: a wrong first try must not take the folder.
var errGotNowhere = errors.New("the state is of a replay that got nowhere")

// attempt runs the replay over the state that is there.
func (r *Replay) attempt(ctx context.Context) (*report.Report, error) {
	run := &running{Replay: r}
	if err := run.readInputs(ctx); err != nil {
		return nil, err
	}
	if err := run.openBus(ctx); err != nil {
		return nil, err
	}
	rep, err := run.replay(ctx)
	return rep, errors.Join(err, run.bus.Close())
}

// prepareState makes the folders and removes a finished replay's state.
func (r *Replay) prepareState() error {
	if r.State == "" {
		r.State = filepath.Join(r.Out, "state")
	}
	for _, dir := range []string{r.Out, r.State} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("replay: %w", err)
		}
	}
	cursor, err := replay.ReadCursor(r.State)
	if err != nil && !r.Fresh {
		return err
	}
	if !r.Fresh && (cursor == nil || !cursor.Finished) {
		return nil
	}
	return r.dropState()
}

// dropState removes what a replay keeps in its state folder.
func (r *Replay) dropState() error {
	// The cursor goes last: a crash in between finds the replay finished still.
	for _, name := range stateEntries {
		if err := os.RemoveAll(filepath.Join(r.State, name)); err != nil {
			return fmt.Errorf("replay: %w", err)
		}
	}
	return nil
}

// readInputs reads what decisions follow from besides the rows.
func (r *running) readInputs(ctx context.Context) error {
	var friends []placement.Friend
	var err error
	if r.Friends != "" {
		bad := int64(0)
		friends, err = ReadFriends(ctx, r.Friends, func(b recording.BadLine) {
			if bad++; bad == 1 {
				r.Note(fmt.Sprintf("friends: malformed: %v", &b))
			}
		})
		if err != nil {
			return err
		}
		if bad > 0 {
			r.Note(fmt.Sprintf("friends: %d malformed lines", bad))
		}
	}
	if err := r.readLocations(ctx); err != nil {
		return err
	}
	r.policy = placementConfig(r.Config, placement.TMatch, friends, r.known)
	r.policy.Stored = r.stored
	policy, err := placement.New(r.policy)
	if err != nil {
		return err
	}
	r.config = policy.Config()
	if err := r.newTables(); err != nil {
		return err
	}
	if r.digest, err = recording.Digest(ctx, r.Files); err != nil {
		return err
	}
	return r.openSource(ctx)
}

// openBus starts the embedded bus. An unfinished replay keeps the partitions and
// windows that it has: whether they are the ones asked for shows in the fingerprint.
func (r *running) openBus(ctx context.Context) error {
	o := bus.Options{
		Dir: filepath.Join(r.State, "bus"), Name: "penstock-replay", Purpose: bus.Replay, Sync: r.Sync,
		Logger: r.Logger, Partitions: r.Config.Bus.Partitions, Window: r.Config.Placement.Window.Std(),
	}
	if cursor, err := replay.ReadCursor(r.State); err == nil && cursor != nil {
		o.Partitions, o.Window = 0, 0
	}
	b, err := bus.Open(ctx, o)
	if err != nil {
		return err
	}
	if err := b.Init(ctx); err != nil {
		return errors.Join(err, b.Close())
	}
	r.bus = b
	return nil
}

// replay starts the parts, sends the rows, stops the parts and reports.
func (r *running) replay(ctx context.Context) (rep *report.Report, err error) {
	if r.stores, err = r.openStores(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.stores.Close()) }()
	rtts, err := roundTrips(r.Config)
	if err != nil {
		return nil, err
	}
	r.collector = report.NewCollector(reportSites(r.Config), r.Config.Placement.Window.Std(), report.WithRTTs(rtts), report.WithRequestPrice(r.Config.Prices.Requests))
	opts, err := r.options(ctx)
	if err != nil {
		return nil, err
	}
	fp, err := opts.FullFingerprint()
	if err != nil {
		return nil, err
	}
	if err := r.inspect(fp); err != nil {
		return nil, err
	}
	if err := r.knowLocations(ctx); err != nil {
		return nil, err
	}
	r.parts = NewParts(r.Logger)
	if err := r.startParts(ctx); err != nil {
		return nil, errors.Join(err, r.parts.Stop())
	}
	var sum replay.Summary
	err = r.parts.During(ctx, func(ctx context.Context) error {
		if sum, err = replay.Run(ctx, *opts); err != nil {
			return err
		}
		return covered(ctx, opts.Client)
	})
	if err = errors.Join(err, r.parts.Stop()); err != nil {
		return nil, err
	}
	return r.report(ctx, &sum)
}

// inspect refuses the state of another replay that isn't finished, unless that
// got nowhere. Real stores are another matter: the mover's journal knows what was
// begun in them.
func (r *running) inspect(fp replay.Fingerprint) error {
	_, err := replay.Inspect(r.State, fp)
	if !errors.Is(err, replay.ErrDifferent) || r.Apply {
		return err
	}
	if cursor, cerr := replay.ReadCursor(r.State); cerr == nil && cursor != nil && cursor.Window == nil {
		return errGotNowhere
	}
	return err
}

func (r *running) openStores(ctx context.Context) (Stores, error) {
	if r.Apply {
		client, err := r.bus.Client(ctx, "stores")
		if err != nil {
			return nil, err
		}
		return ConfiguredStores(ctx, r.Config, client, r.Logger)
	}
	return ReplayStores(r.Config, r.State)
}

// startParts starts the consumers, in stop order.
func (r *running) startParts(ctx context.Context) error {
	if err := startAggregators(ctx, r.parts, r.bus, aggregatorOptions{
		Flush: r.Config.Bus.Flush.Std(), Purpose: bus.Replay, Logger: r.Logger, Alone: true, Hook: r.Hook,
	}); err != nil {
		return err
	}
	client, err := r.bus.Client(ctx, "decider")
	if err != nil {
		return err
	}
	d, err := decider.New(decider.Options{
		Client: client, Config: r.config, Factory: placementFactory, Mode: control.Act, Purpose: bus.Replay,
		TTL: r.Config.Placement.ValidFor(), Logger: r.Logger.With().Str("part", "decider").Logger(),
	})
	if err != nil {
		return err
	}
	r.parts.Start("decider", d.Run)
	if err := r.startTables(ctx); err != nil {
		return err
	}
	if r.MoverOff {
		return nil
	}
	r.mover, err = startMover(ctx, r.parts, r.bus, moverOptions{
		Dir: filepath.Join(r.State, "mover"), Stores: r.stores, Config: r.Config, NoSync: !r.Apply,
		Logger: r.Logger, Hook: r.Hook, Hold: r.Hold,
	})
	return err
}

func reportSites(cfg *config.Config) []report.Site {
	out := make([]report.Site, len(cfg.Sites))
	for i, s := range cfg.Sites {
		out[i] = report.Site{
			Name: s.Name, Lat: s.Lat, Lon: s.Lon,
			Capacity: s.Capacity.In(cfg.Placement.Window.Std()), Egress: cfg.Prices.Egress[s.Name],
		}
	}
	return out
}
