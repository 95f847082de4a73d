package coding

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"penstock/consumers/executor/coder/admin"
	"penstock/infra/bus"
	"penstock/infra/clock"
	"penstock/pipeline/demo/coding/delayed"
	"penstock/pipeline/demo/processes"
	"penstock/pipeline/demo/stage"
	"penstock/schemas/control"
	"penstock/schemas/window"
)

//go:embed settings.yaml
var settingsText string

var settingsTemplate = template.Must(template.New("settings.yaml").Parse(settingsText))

// settings is what a configuration depends on.
type settings struct {
	Policy, Code, Name              string
	Listen, Admin, Store, Telemetry string
	KeysFile, UserKey               string
	Connections, KMax, RMax, Queue  int
	Price                           float64
}

// patience is how long what should be there at once may take.
const patience = 40 * time.Second

// arm is a policy with its coder, its store and its clients.
type arm struct {
	policy
	config                   string // its file
	listen, admin, telemetry string
	store                    *delayed.Server
	desk                     *admin.Client
	people                   *people
}

// world is all that runs.
type world struct {
	show  *show
	bus   string // address
	tele  string // address of serve's metrics
	serve string // its configuration
	arms  []*arm
	// core is serve, edge the coders: they end first.
	core, edge *processes.Group
	conn       *bus.Bus
	client     *bus.Client
	seer       *observer
	account    *window.Account // once it is over
	stores     context.CancelFunc
	ended      []chan error // of stores
	web        *http.Transport
}

// build opens the stores, which are of this process, and lays out the rest.
func (s *show) build(ctx context.Context) (w *world, err error) {
	w = &world{show: s, web: &http.Transport{MaxIdleConnsPerHost: 4}}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	storing, cancel := context.WithCancel(context.WithoutCancel(ctx))
	w.stores = cancel
	rng := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())) // Where to look for ports must differ between runs on one machine.
	list, err := processes.Addresses(ctx, "127.0.0.1", 2+4*len(policies), rng)
	if err != nil {
		return w, err
	}
	w.bus, w.tele, list = list[0], list[1], list[2:]
	secrets := rand.New(rand.NewPCG(s.Seed, 1))
	o := settings{
		KeysFile: filepath.Join(s.Dir, "keys"), UserKey: stage.Secret(secrets), Connections: connections, KMax: kMax, RMax: rMax, Queue: waiting, Price: price,
	}
	secret := stage.Secret(secrets)
	if err := os.WriteFile(o.KeysFile, []byte(accessKey+" "+secret+"\n"), 0o600); err != nil {
		return w, fmt.Errorf("demo: %w", err)
	}
	for i, p := range policies {
		a := &arm{policy: p, listen: list[0], admin: list[1], telemetry: list[2], config: filepath.Join(s.Dir, p.name+".yaml")}
		where := list[3]
		list = list[4:]
		if err := w.open(storing, a, where, uint64(i)); err != nil {
			return w, err
		}
		own := o
		own.Policy, own.Code, own.Name, own.Listen, own.Admin, own.Store, own.Telemetry = "tofec", p.code, p.name, a.listen, a.admin, where, a.telemetry
		if p.code != "" {
			own.Policy = "static"
		}
		if err := stage.Configure(a.config, settingsTemplate, &own); err != nil {
			return w, err
		}
		if i == 0 {
			w.serve = filepath.Join(s.Dir, "serve.yaml")
			own.Telemetry = w.tele
			if err := stage.Configure(w.serve, settingsTemplate, &own); err != nil {
				return w, err
			}
		}
		a.desk = &admin.Client{Addr: a.admin, HTTP: &http.Client{Transport: w.web, Timeout: time.Second}}
		if a.people, err = newPeople(s, a.listen, secret); err != nil {
			return w, err
		}
		w.arms = append(w.arms, a)
	}
	po := processes.Options{
		Logs: filepath.Join(s.Dir, "logs"), Prefix: s.Attach, Patience: patience,
		Env: []string{"PENSTOCK_DEMO_ACCESS_KEY_ID=demo", "PENSTOCK_DEMO_SECRET_ACCESS_KEY=" + secret},
	}
	if w.core, err = processes.New(po); err == nil {
		w.edge, err = processes.New(po)
	}
	return w, err
}

// open lets a store answer. It has no delays yet.
func (w *world) open(ctx context.Context, a *arm, where string, number uint64) (err error) {
	if a.store, err = delayed.New(delayed.Options{Bucket: "chunks", Seed: w.show.Seed + number, Counted: isChunk}); err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", where)
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	done := make(chan error, 1)
	w.ended = append(w.ended, done)
	go func() { done <- a.store.Run(ctx, l) }()
	return nil
}

// isChunk says whether a key is one of the coder's blobs, and not of its catalog.
func isChunk(key string) bool { return strings.Contains(key, "/b/") }

// start starts the processes, each when those that it needs are ready.
func (w *world) start(ctx context.Context) error {
	if err := w.core.Start(ctx, processes.Spec{
		Name: "serve", Ready: processes.Answers("http://" + w.tele + "/readyz"),
		Args: []string{"serve", "--config", w.serve, "--state", filepath.Join(w.show.Dir, "state"), "--listen", w.bus, "--name", "demo", "--roles", "aggregator,decider"},
	}); err != nil {
		return err
	}
	var err error
	if w.conn, err = bus.Open(ctx, bus.Options{URL: "nats://" + w.bus, Name: "penstock-demo", Logger: w.show.Logger}); err != nil {
		return err
	}
	if w.client, err = w.conn.Client(ctx, "operator"); err != nil {
		return err
	}
	if err := stage.Operate(ctx, w.client, control.ModeKey(control.Coding), control.Switch{Mode: control.Act}); err != nil {
		return err
	}
	for _, a := range w.arms {
		if err := w.edge.Start(ctx, processes.Spec{
			Name: a.name, Ready: processes.Answers("http://" + a.telemetry + "/readyz"),
			Args: []string{"coder", "--config", a.config, "--nats", w.conn.URL(), "--coder", a.name, "--name", a.name, "--state", filepath.Join(w.show.Dir, "coder-"+a.name)},
		}); err != nil {
			return err
		}
	}
	w.seer = newObserver(w.client)
	return nil
}

// used is what the processes have used of the processors so far.
func (w *world) used() (time.Duration, error) {
	core, err := w.core.Used()
	edge, err2 := w.edge.Used()
	return core + edge, errors.Join(err, err2)
}

// slow changes the delays of all stores.
func (w *world) slow(m control.CodingModel) {
	for _, a := range w.arms {
		a.store.SetDelays(m)
	}
}

// rest waits until a coder has nothing left to do, and says how it stands then, and how
// many requests its store has under way; what is left after patience is for the judge.
func (w *world) rest(ctx context.Context, a *arm) (s admin.Status, under int64, err error) {
	late := clock.System().Now().Add(patience)
	for {
		s, err = a.desk.Status(ctx)
		under = a.store.Counts().Waiting
		over := clock.System().Now().After(late)
		idle := s.Unintended == 0 && s.Deletes == s.Repeats && s.Backlog == 0 && s.Connections == 0 && under == 0
		if err == nil && (over || idle) {
			return s, under, nil
		}
		if over {
			return s, under, fmt.Errorf("%s: %w", a.name, err)
		}
		if err := clock.System().Sleep(ctx, 50*time.Millisecond); err != nil {
			return s, under, err
		}
	}
}

// settle lets coders send what they still have, and reads the account once everything is
// in windows.
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
	for _, a := range w.arms {
		if a.people != nil {
			a.people.close()
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
	w.stores()
	for _, done := range w.ended {
		errs = append(errs, <-done)
	}
	w.ended = nil
	w.web.CloseIdleConnections()
	return errors.Join(errs...)
}
