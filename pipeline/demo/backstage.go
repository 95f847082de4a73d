package demo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"

	"penstock/consumers/executor/locations"
	"penstock/infra/bus"
	"penstock/infra/clock"
	"penstock/infra/objectstore/dir"
	"penstock/pipeline/config"
	"penstock/pipeline/demo/links"
	"penstock/pipeline/demo/notes"
	"penstock/pipeline/demo/processes"
	"penstock/pipeline/demo/stage"
	"penstock/pipeline/topology"
	"penstock/schemas/control"
)

// backstage is everything that runs besides the clients.
type backstage struct {
	*Live
	at    addresses
	mesh  *links.Mesh
	files *files
	// core are the services and the loop, edge what clients call: it ends first.
	core, edge *processes.Group
	bus        *bus.Bus
	client     *bus.Client
}

// build lays out addresses, links, configurations and notebooks. Nothing runs yet
// but the links.
func (l *Live) build(ctx context.Context, w *World, rng *rand.Rand) (*backstage, error) {
	b := &backstage{Live: l}
	n := len(w.Regions)
	// Where to look for ports must differ between runs on one machine.
	list, err := processes.Addresses(ctx, "127.0.0.1", b.at.count(n), rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())))
	if err != nil {
		return nil, err
	}
	b.at.fill(list, n)
	if b.mesh, err = links.Connect(l.Logger, links.Between, w.places(b.at.entries)...); err != nil {
		return nil, err
	}
	if b.files, err = l.write(w, &b.at, b.mesh, rng); err != nil {
		return nil, errors.Join(err, b.close())
	}
	for i := range w.People {
		p := &w.People[i]
		s, err := dir.Open(l.store(w.Regions[p.Home].Name), dir.Options{NoSync: true})
		if err == nil {
			err = notes.Create(ctx, s, p.Name)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("demo: notebook of %s: %w", p.Name, err), b.close())
		}
	}
	o := processes.Options{Logs: filepath.Join(l.Dir, "logs"), Prefix: l.Attach}
	if b.core, err = processes.New(o); err == nil {
		b.edge, err = processes.New(o)
	}
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

// start starts the processes, each when those that it needs are ready.
func (b *backstage) start(ctx context.Context, w *World) error {
	for i, r := range w.Regions {
		if err := b.core.Start(ctx, processes.Spec{
			Name: "notes-" + r.Name, Ready: processes.Answers("http://" + b.at.services[i] + "/health"),
			Args: []string{"demo", "notes", "--site", r.Name, "--store", b.store(r.Name), "--listen", b.at.services[i]},
		}); err != nil {
			return err
		}
	}
	if err := b.core.Start(ctx, processes.Spec{
		Name: "serve", Ready: processes.Answers("http://" + b.at.serve + "/readyz"),
		Args: []string{"serve", "--config", b.files.serve, "--state", filepath.Join(b.Dir, "state"), "--listen", b.at.bus, "--name", "demo"},
	}); err != nil {
		return err
	}
	if err := b.prepareBus(ctx); err != nil {
		return err
	}
	nats := b.bus.URL()
	if err := b.edge.Start(ctx, processes.Spec{
		Name: "redirector", Ready: processes.Answers("http://" + b.at.redirectorState + "/readyz"),
		Args: []string{"redirector", "--config", b.files.serve, "--nats", nats, "--name", "redirector", "--telemetry", b.at.redirectorState, "--state", filepath.Join(b.Dir, "redirector")},
	}); err != nil {
		return err
	}
	for i, r := range w.Regions {
		if err := b.edge.Start(ctx, processes.Spec{
			Name: "entry-" + r.Name, Ready: processes.Answers("http://" + b.at.telemetry[i] + "/readyz"),
			Args: []string{"entry", "--config", b.files.entries[i], "--nats", nats, "--site", r.Name, "--name", "entry-" + r.Name, "--state", filepath.Join(b.Dir, "entry-"+r.Name)},
		}); err != nil {
			return err
		}
	}
	return nil
}

// prepareBus connects to the bus, says where all data is, and lets placement act.
func (b *backstage) prepareBus(ctx context.Context) (err error) {
	if b.bus, err = bus.Open(ctx, bus.Options{URL: "nats://" + b.at.bus, Name: "penstock-demo", Logger: b.Logger}); err != nil {
		return err
	}
	if b.client, err = b.bus.Client(ctx, "operator"); err != nil {
		return err
	}
	cfg, err := config.Load(b.files.serve)
	if err != nil {
		return err
	}
	table, err := locations.Open(ctx, b.client)
	if err != nil {
		return err
	}
	now := clock.System().Now().UTC()
	o := locations.ImportOptions{Now: now, Strict: true}
	for _, s := range cfg.Sites {
		o.Sites = append(o.Sites, s.Name)
	}
	if _, err := (topology.LocationImport{Client: b.client, Table: table, By: "demo", Options: o}).FromStores(ctx, cfg, b.Logger); err != nil {
		return err
	}
	return stage.Operate(ctx, b.client, control.ModeKey(control.Placement), control.Switch{Mode: control.Act})
}

// settle waits until no move is under way.
func (b *backstage) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		moves, err := locations.UnderWay(ctx, b.client)
		if err != nil {
			return fmt.Errorf("demo: %w", err)
		}
		if len(moves) == 0 {
			return nil
		}
		if err := clock.System().Sleep(ctx, 100*time.Millisecond); err != nil {
			return fmt.Errorf("demo: %s are still under way: %w", count(len(moves), "move"), err)
		}
	}
}

// locations is where each owner is, read from the bus after its process has ended:
// nobody changes it any more.
func (b *backstage) locations(ctx context.Context) (out map[string]string, err error) {
	kept, err := bus.Open(ctx, bus.Options{Dir: filepath.Join(b.Dir, "state", "bus"), Purpose: bus.Replay, Name: "penstock-demo", Logger: b.Logger})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, kept.Close()) }()
	c, err := kept.Client(ctx, "locations")
	if err != nil {
		return nil, err
	}
	table, err := locations.Open(ctx, c)
	if err != nil {
		return nil, err
	}
	out = map[string]string{}
	err = table.List(ctx, func(owner string, l control.Location) error {
		out[owner] = l.Site
		return nil
	})
	return out, err
}

// close ends all that still runs. It may be called twice.
func (b *backstage) close() error {
	var errs []error
	if b.edge != nil {
		errs = append(errs, b.edge.Stop())
	}
	if b.bus != nil {
		errs = append(errs, b.bus.Close())
		b.bus = nil
	}
	if b.core != nil {
		errs = append(errs, b.core.Stop())
	}
	if b.mesh != nil {
		b.mesh.Close()
	}
	return errors.Join(errs...)
}

// quiet is the log of what runs in this process: only what goes wrong.
func quiet(log zerolog.Logger) zerolog.Logger { return log.Level(zerolog.WarnLevel) }
