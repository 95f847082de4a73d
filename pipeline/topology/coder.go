package topology

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"penstock/consumers/decider/coding"
	"penstock/consumers/executor"
	"penstock/consumers/executor/coder"
	"penstock/consumers/executor/coder/codes"
	"penstock/consumers/executor/coder/object"
	"penstock/consumers/executor/coder/queue"
	"penstock/consumers/executor/coder/tasklog"
	"penstock/consumers/executor/inforce"
	"penstock/infra/errorkind"
	"penstock/infra/publisher"
	"penstock/pipeline/config"
	"penstock/schemas/control"
)

// Coder is the process of one front of coded object storage (DESIGN §4.4): its S3 API,
// the catalog and the stores behind it, the codes in force, and the events of its
// chunk tasks.
type Coder struct {
	Alone
	// Coder names it in the configuration; empty: the only one there.
	Coder string
	// Listen and Admin override the configuration; "off" is no Admin.
	Listen, Admin string
	// Adopt takes over stores that belong to another state folder.
	Adopt bool
}

// Run serves until the context ends.
func (c *Coder) Run(ctx context.Context) error {
	if c.Config == nil {
		return fmt.Errorf("a configuration is needed: %w", ErrOptions)
	}
	x, err := CoderOf(c.Config, c.Coder)
	if err != nil {
		return err
	}
	if c.Listen != "" {
		x.Listen = c.Listen
	}
	x.Admin = chosen(c.Admin, x.Admin)
	return c.run(ctx, "coder", func(ctx context.Context, v *alone) (string, error) { return c.start(ctx, v, x) })
}

// CoderOf is the coder of that name, or the only one if the name is empty.
func CoderOf(cfg *config.Config, name string) (*config.Coder, error) {
	if name == "" && len(cfg.Coders) == 1 {
		return &cfg.Coders[0], nil
	}
	if x := cfg.Coder(name); x != nil {
		return x, nil
	}
	has := "the configuration has no coders"
	if len(cfg.Coders) > 0 {
		names := make([]string, len(cfg.Coders))
		for i := range cfg.Coders {
			names[i] = cfg.Coders[i].Name
		}
		has = "the configuration has " + strings.Join(names, ", ")
	}
	if name == "" {
		return nil, fmt.Errorf("--coder says which one this is: %s: %w", has, ErrOptions)
	}
	return nil, fmt.Errorf("there is no coder %q: %s: %w", name, has, ErrOptions)
}

// start makes the parts, in the order in which they stop: who lets clients in comes
// first, what the last of them need after it.
func (c *Coder) start(ctx context.Context, v *alone, x *config.Coder) (_ string, err error) {
	var undo []func() error
	defer func() {
		if err == nil {
			return
		}
		for _, f := range slices.Backward(undo) {
			err = errors.Join(err, f())
		}
	}()
	chooser, err := newChooser(c.Config, x.Name)
	if err != nil {
		return "", err
	}
	p, err := publisher.New(ctx, publisher.Options{
		Client: v.client, Entry: c.Name, MaxAge: liveAge, SpoolDir: c.dir("spool"), SpoolMax: int64(c.Config.Entry.Spool),
		Logger: c.part("publisher"), Registerer: v.registry,
	})
	if err != nil {
		return "", err
	}
	undo = append(undo, func() error {
		ended, cancel := context.WithCancel(ctx)
		cancel()
		_ = p.Close(ended) // Nothing was logged yet; what a run before has left stays in the spool.
		return nil
	})
	var one *coder.Coder
	log, err := tasklog.New(tasklog.Options{Coder: x.Name, Site: x.Site, Publisher: p, State: func() queue.State { return one.Queue() }})
	if err != nil {
		return "", err
	}
	requests, err := newRequestMeter(v.registry, x.Name, log)
	if err != nil {
		return "", err
	}
	doors, err := c.entrances(x, requests.observe)
	if err != nil {
		return "", fmt.Errorf("coder %s: %w", x.Name, err)
	}
	stores, err := openBlobs(ctx, v, x)
	if err != nil {
		return "", err
	}
	undo = append(undo, stores.Close)
	meter, err := newCoderMeter(v.registry, x.Name, chooser)
	if err != nil {
		return "", err
	}
	o := coderOptions(c.Config, x)
	o.State, o.Stores, o.Adopt = c.dir("catalog"), stores, c.Adopt
	part := c.part("coder")
	o.Chooser, o.Metrics, o.Logger, o.Observe = chooser, meter, &part, log.Task
	if one, err = coder.Open(ctx, o); err != nil {
		if errors.Is(err, coder.ErrOwner) {
			err = fmt.Errorf("%w: start with the --state of that instance, or with --adopt, which reads its catalog back from the stores and ends it if it runs", err)
		}
		return "", fmt.Errorf("coder %s: %w", x.Name, err)
	}
	undo = append(undo, one.Close)
	if err := meter.watch(v.registry, one); err != nil {
		return "", err
	}
	where, all, err := doors.open(v, one, chooser)
	if err != nil {
		return "", fmt.Errorf("coder %s: %w", x.Name, err)
	}
	c.chores(v, x, stores, all)
	v.parts.Start("coder", one.Run)
	v.parts.Start("log of tasks", log.Run)
	if err := c.follow(v, x.Name, chooser); err != nil {
		return "", errors.Join(err, v.parts.Stop())
	}
	v.parts.Start("stores", func(ctx context.Context) error {
		<-ctx.Done()
		return errors.Join(one.Close(), stores.Close())
	})
	v.parts.Start("publisher", closing(p, v.client))
	return where, nil
}

// follow keeps the chooser at the tables in force.
func (c *Coder) follow(v *alone, name string, chooser *codes.Chooser) error {
	log := c.part("codes")
	target, err := codes.NewTarget(map[string]*codes.Chooser{name: chooser}, inforce.Options{
		File: c.dir("codes.json"), History: executor.History(v.client, control.Coding),
		Logger: log, Metrics: executorMeter{v.metrics, control.Coding},
	})
	if err != nil {
		return err
	}
	f := &following{}
	some, err := target.Restore()
	if err != nil {
		log.Warn().Err(err).Msg("the table of before the start is not in force again; the bus has it")
	}
	f.known.Store(some)
	v.watchTables("codes of "+name, f)
	v.executing("codes of "+name, "coder-"+c.Name, target, f)
	v.parts.Start("table of "+name, target.Run)
	return nil
}

// newChooser makes what picks codes, with the table of before anything was measured.
func newChooser(cfg *config.Config, name string) (*codes.Chooser, error) {
	table, ok, err := coding.Default(codingConfig(cfg), name)
	if err != nil || !ok {
		return nil, errorkind.Errorf(ErrOptions, "codes of %s: %w", name, err)
	}
	return codes.New(codes.Options{Default: table, Over: codes.Over})
}

// coderOptions is what the file says.
func coderOptions(cfg *config.Config, x *config.Coder) coder.Options {
	o := coder.Options{
		Name: x.Name, Layout: object.Shared, Connections: cfg.ConnectionsOf(x), Background: x.Background, MaxWaiting: x.Queue,
		Segment: int64(x.Segment), CatalogSync: x.CatalogSync, TaskTimeout: x.TaskTimeout.Std(),
	}
	if x.Durability != "" {
		o.Durability, _ = coder.ParseDurability(x.Durability) // The configuration was checked.
	}
	if x.LayoutName() == config.LayoutSpread {
		o.Layout, o.N, o.K = object.Spread, x.N, x.K
	}
	return o
}
