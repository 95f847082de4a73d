package split

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"penstock/infra/bus"
	"penstock/pipeline/demo/links"
	"penstock/pipeline/demo/processes"
	"penstock/pipeline/demo/services"
	"penstock/pipeline/demo/stage"
	"penstock/schemas/control"
	"penstock/schemas/window"
)

// patience is how long what should be there at once may take.
const patience = 30 * time.Second

// world is all that runs of one policy.
type world struct {
	show   *show
	policy string
	dir    string
	at     addresses
	mesh   *links.Mesh
	// core are the services and the loop, edge the entry points: they end first.
	core, edge *processes.Group
	bus        *bus.Bus
	client     *bus.Client
	seer       *observer
	people     *people
	account    *window.Account // once it is over
}

// build lays out a world: links and configurations.
func (s *show) build(policy string, at addresses) (w *world, err error) {
	w = &world{show: s, policy: policy, dir: filepath.Join(s.Dir, policy), at: at}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	if err := os.MkdirAll(w.dir, 0o755); err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	var places []links.Place
	for i, p := range s.sites {
		p.Address = at.sites[i].public
		places = append(places, p)
	}
	if w.mesh, err = links.Connect(s.Logger, s.roundTrip, places...); err != nil {
		return nil, err
	}
	o := processes.Options{Logs: filepath.Join(w.dir, "logs"), Prefix: s.Attach, Patience: patience}
	if w.core, err = processes.New(o); err == nil {
		w.edge, err = processes.New(o)
	}
	return w, err
}

// start starts the processes, each when those that it needs are ready.
func (w *world) start(ctx context.Context, rng *rand.Rand) error {
	f, err := w.write(rng)
	if err != nil {
		return err
	}
	for i, s := range w.show.sites {
		at := &w.at.sites[i]
		for j, c := range services.Components {
			if err := w.core.Start(ctx, processes.Spec{
				Name: c.Name + "-" + s.Name, Ready: processes.Answers("http://" + at.services[c.Name] + "/health"),
				Args: []string{
					"demo", "service", "--component", c.Name, "--site", s.Name, "--entry", "http://" + at.internal,
					"--listen", at.services[c.Name], "--control", at.control[c.Name],
					"--seed", strconv.FormatUint(w.show.Seed<<8+uint64(i<<4+j), 10),
				},
			}); err != nil {
				return fmt.Errorf("%s: %w", w.policy, err)
			}
		}
	}
	if err := w.core.Start(ctx, processes.Spec{
		Name: "serve", Ready: processes.Answers("http://" + w.at.serve + "/readyz"),
		Args: []string{"serve", "--config", f.serve, "--state", filepath.Join(w.dir, "state"), "--listen", w.at.bus, "--name", "demo", "--roles", "aggregator,decider"},
	}); err != nil {
		return fmt.Errorf("%s: %w", w.policy, err)
	}
	if w.bus, err = bus.Open(ctx, bus.Options{URL: "nats://" + w.at.bus, Name: "penstock-demo", Logger: w.show.Logger}); err != nil {
		return err
	}
	if w.client, err = w.bus.Client(ctx, "operator"); err != nil {
		return err
	}
	if err := stage.Operate(ctx, w.client, control.ModeKey(control.Split), control.Switch{Mode: control.Act}); err != nil {
		return err
	}
	for i, s := range w.show.sites {
		if err := w.edge.Start(ctx, processes.Spec{
			Name: "entry-" + s.Name, Ready: processes.Answers("http://" + w.at.sites[i].telemetry + "/readyz"),
			Args: []string{
				"entry", "--config", f.entries[i], "--nats", w.bus.URL(), "--site", s.Name,
				"--name", "entry-" + s.Name, "--state", filepath.Join(w.dir, "entry-"+s.Name),
			},
		}); err != nil {
			return fmt.Errorf("%s: %w", w.policy, err)
		}
	}
	return nil
}

// used is what the processes have used of the processors so far.
func (w *world) used() (time.Duration, error) {
	core, err := w.core.Used()
	if err != nil {
		return 0, err
	}
	edge, err := w.edge.Used()
	return core + edge, err
}

// slow makes the replica slower, or ends that with 0.
func (w *world) slow(ctx context.Context, d time.Duration) error {
	return services.Slow(ctx, w.at.sites[w.show.slowAt].control[w.show.Component], d)
}

// probes is how many requests each component has got, and how many of them were
// probes.
func (w *world) probes(ctx context.Context) (calls, probes map[string]int64, err error) {
	calls, probes = map[string]int64{}, map[string]int64{}
	for i := range w.at.sites {
		for name, address := range w.at.sites[i].control {
			s, err := services.StateOf(ctx, address)
			if err != nil {
				return nil, nil, err
			}
			calls[name] += s.Calls
			probes[name] += s.Probes
		}
	}
	return calls, probes, nil
}

// settle lets entry points send what they still have, and reads the account once
// everything is in windows.
func (w *world) settle(ctx context.Context) error {
	if err := w.edge.Stop(); err != nil {
		return fmt.Errorf("%s: %w", w.policy, err)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var err error
	if w.account, err = stage.Account(ctx, w.client); err != nil {
		return fmt.Errorf("%s: %w", w.policy, err)
	}
	return nil
}

// close ends all that still runs. It may be called twice.
func (w *world) close() error {
	var errs []error
	if w.people != nil {
		w.people.close()
	}
	if w.edge != nil {
		errs = append(errs, w.edge.Stop())
	}
	if w.bus != nil {
		errs = append(errs, w.bus.Close())
		w.bus = nil
	}
	if w.core != nil {
		errs = append(errs, w.core.Stop())
	}
	if w.mesh != nil {
		w.mesh.Close()
	}
	return errors.Join(errs...)
}
