package servers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"time"

	"penstock/infra/bus"
	"penstock/pipeline/demo/processes"
	"penstock/pipeline/demo/stage"
	"penstock/pipeline/topology"
	"penstock/schemas/control"
	"penstock/schemas/window"
)

// patience is how long what should be there at once may take.
const patience = 45 * time.Second

// world is all that runs.
type world struct {
	show  *show
	at    addresses
	rooms [2]*room // by site
	hooks <-chan error
	// core is serve, edge the entry points and the switch: they end first.
	core, edge *processes.Group
	conn       *bus.Bus
	client     *bus.Client
	web        *http.Client // for metrics
	people     [2]*people   // by site
	seer       *observer
	account    *window.Account // once it is over
	ends       context.CancelFunc
}

// build lays everything out.
func (s *show) build(ctx context.Context) (*world, error) {
	w := &world{show: s, web: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2}}}
	// Where to look for ports must differ between runs on one machine.
	list, err := processes.Addresses(ctx, "127.0.0.1", addressesOf(), rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())))
	if err != nil {
		return nil, err
	}
	w.at.fill(list)
	for i := range w.at.sites {
		at := &w.at.sites[i]
		r := &room{clock: s.clock, logs: filepath.Join(s.Dir, "logs"), attach: s.Attach}
		for k, slow := range slowness {
			r.rack = append(r.rack, &rig{
				room: r, name: at.servers[k], label: fmt.Sprintf("server-%s-%d", []string{dispatched, plain}[i], k+1), control: at.control[k], slowness: slow,
				seed: s.Seed<<8 + uint64(i<<4+k),
			})
		}
		w.rooms[i] = r
		var entries []string
		for _, e := range at.entries {
			entries = append(entries, e.public)
		}
		w.people[i] = newPeople(s.clock, entries)
	}
	o := processes.Options{Clock: s.clock, Logs: filepath.Join(s.Dir, "logs"), Prefix: s.Attach, Patience: patience}
	if w.core, err = processes.New(o); err == nil {
		w.edge, err = processes.New(o)
	}
	return w, err
}

// start starts the processes, each when those that it needs are ready.
func (w *world) start(ctx context.Context) error {
	f, err := w.write(rand.New(rand.NewPCG(w.show.Seed, 1)))
	if err != nil {
		return err
	}
	serving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	w.ends = cancel
	if w.hooks, err = w.rooms[0].serve(serving, w.at.room); err != nil {
		return err
	}
	if err := w.core.Start(ctx, processes.Spec{
		Name: "serve", Ready: processes.Answers("http://" + w.at.serve + "/readyz"),
		Args: []string{"serve", "--config", f.serve, "--state", filepath.Join(w.show.Dir, "state"), "--listen", w.at.bus, "--name", "demo", "--roles", "aggregator,decider"},
	}); err != nil {
		return err
	}
	if w.conn, err = bus.Open(ctx, bus.Options{URL: "nats://" + w.at.bus, Name: "penstock-demo", Logger: w.show.Logger}); err != nil {
		return err
	}
	if w.client, err = w.conn.Client(ctx, "operator"); err != nil {
		return err
	}
	if err := stage.Operate(ctx, w.client, control.ModeKey(control.Servers), control.Switch{Mode: control.Act}); err != nil {
		return err
	}
	// The plain site has all servers on, from the beginning to the end.
	for _, m := range w.rooms[1].rack {
		if err := m.on(ctx, true); err != nil {
			return err
		}
	}
	for i := range w.at.sites {
		for k, at := range w.at.sites[i].entries {
			name := entryName(i, k)
			if err := w.edge.Start(ctx, processes.Spec{
				Name: name, Ready: processes.Answers("http://" + at.telemetry + "/readyz"),
				Args: []string{"entry", "--config", f.entries[i][k], "--nats", w.conn.URL(), "--site", []string{dispatched, plain}[i], "--name", name, "--state", filepath.Join(w.show.Dir, name)},
			}); err != nil {
				return err
			}
		}
	}
	w.seer = newObserver(w.client)
	return w.edge.Start(ctx, processes.Spec{
		Name: "serverswitch",
		Args: []string{"serverswitch", "--config", f.serve, "--nats", w.conn.URL(), "--name", "switch", "--state", filepath.Join(w.show.Dir, "serverswitch"), "--telemetry", "off"},
	})
}

// settled waits until the first table is in force: its servers are on, and the entry
// points have shared out all their places.
func (w *world) settled(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	for {
		l, err := w.look(ctx)
		if err == nil && l.settled {
			return nil
		}
		if w.show.clock.Sleep(ctx, 200*time.Millisecond) != nil {
			return fmt.Errorf("the first servers are not on after %v: %+v: %w", 2*patience, l, errors.Join(err, ctx.Err()))
		}
	}
}

// look asks entry points for their metrics, and the bus for what the server switch says.
func (w *world) look(ctx context.Context) (*look, error) {
	l := &look{}
	var all [2][points]samples
	for i := range w.at.sites {
		for k := range w.at.sites[i].entries {
			m, err := scrape(ctx, w.web, w.at.sites[i].entries[k].telemetry)
			if err != nil {
				return nil, err
			}
			all[i][k] = m
		}
	}
	says, err := topology.SwitchOf(ctx, w.client, dispatched)
	if err != nil {
		return nil, err
	}
	l.take(all, says, &w.at)
	return l, nil
}

// used is what the processes have used of the processors so far.
func (w *world) used() (time.Duration, error) {
	core, err := w.core.Used()
	edge, err2 := w.edge.Used()
	ours, err3 := w.rooms[0].used()
	theirs, err4 := w.rooms[1].used()
	return core + edge + ours + theirs, errors.Join(err, err2, err3, err4)
}

// settle lets entry points send what they still have, and reads the account once
// everything is in windows.
func (w *world) settle(ctx context.Context) error {
	if err := w.edge.Stop(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var err error
	w.account, err = stage.Account(ctx, w.client)
	return err
}

// close ends all that still runs. It may be called twice.
func (w *world) close() error {
	var errs []error
	for i := range w.people {
		if w.people[i] != nil {
			w.people[i].close()
		}
	}
	if w.edge != nil {
		errs = append(errs, w.edge.Stop())
	}
	if w.conn != nil {
		errs = append(errs, w.conn.Close())
		w.conn = nil
	}
	if w.core != nil {
		errs = append(errs, w.core.Stop())
	}
	for _, r := range w.rooms {
		if r != nil {
			errs = append(errs, r.stop())
		}
	}
	if w.ends != nil {
		w.ends()
	}
	if w.hooks != nil {
		errs = append(errs, <-w.hooks)
		w.hooks = nil
	}
	w.web.CloseIdleConnections()
	return errors.Join(errs...)
}
