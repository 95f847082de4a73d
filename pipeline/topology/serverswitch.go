package topology

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"penstock/consumers/executor"
	"penstock/consumers/executor/serverswitch"
	"penstock/infra/lease"
	"penstock/pipeline/config"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// ServerSwitch is the process that turns servers on and off (DESIGN §4.3). Of several for
// one site one acts, the others wait.
type ServerSwitch struct {
	Alone
	// Sites whose servers it turns on and off; none: all that have some.
	Sites []string
}

// Run serves until the context ends.
func (s *ServerSwitch) Run(ctx context.Context) (err error) {
	if s.Config == nil || s.State == "" {
		return fmt.Errorf("a configuration and a folder are needed: %w", ErrOptions)
	}
	if err := s.check(); err != nil {
		return err
	}
	// Also while it stands by: one that gets the lease must not find that its journal is
	// another's, and nobody could tell two of one name apart.
	folder, err := serverswitch.Claim(ctx, nil, s.State)
	if errors.Is(err, serverswitch.ErrInUse) {
		return fmt.Errorf("%w (each server switch needs a --name and a --state of its own)", err)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	return s.run(ctx, "serverswitch", s.start)
}

// check says whether there is anything to do, and fills in Sites.
func (s *ServerSwitch) check() error {
	switch w := &s.Config.Servers.Switching; {
	case !s.Config.Dispatches():
		return fmt.Errorf("servers.classes is empty: nothing decides which servers are on: %w", ErrOptions)
	case w.Policy == config.SwitchNone:
		return fmt.Errorf("servers.switching.policy is %s: all servers are on: %w", config.SwitchNone, ErrOptions)
	case len(w.Hooks) == 0:
		return fmt.Errorf("servers.switching.hooks is empty: it says how servers are turned on and off: %w", ErrOptions)
	}
	var has []string
	for i := range s.Config.Sites {
		if x := &s.Config.Sites[i]; len(x.Servers) > 0 {
			has = append(has, x.Name)
		}
	}
	for _, name := range s.Sites {
		if !slices.Contains(has, name) {
			return fmt.Errorf("site %q has no servers, those with some are %s: %w", name, strings.Join(has, ", "), ErrOptions)
		}
	}
	if len(s.Sites) == 0 {
		s.Sites = has
	}
	return nil
}

// start has each site tended by whoever holds its lease.
func (s *ServerSwitch) start(ctx context.Context, v *alone) (string, error) {
	pools, err := v.watchPools(s.Sites)
	if err != nil {
		return "", err
	}
	for _, site := range s.Sites {
		// What can't work fails the start, not the moment when the lease is had.
		if _, err := switchedServers(s.Config, site); err != nil {
			return "", err
		}
		one := &switching{alone: v, site: site, pool: pools[site]}
		held, err := lease.New(lease.Options{
			Client: v.client, Key: SwitchLease(site), Holder: s.Name, Says: one.says, Logger: v.part("switch of " + site),
		})
		if err != nil {
			return "", err
		}
		v.parts.Start("switch of "+site, func(ctx context.Context) error { return held.Run(ctx, one.work) })
	}
	for _, p := range pools {
		v.parts.Start("pool", p.Run)
	}
	return "no address of its own, for " + strings.Join(s.Sites, ", "), nil
}

// SwitchLease is the key of KV members that the switch of a site holds; what it says is
// its serverswitch.SiteState.
func SwitchLease(site string) string { return serverswitch.LeaseKey(site) }

// serverReadyWithin is what a server has at least to take requests after its hook.
const serverReadyWithin = 2 * time.Minute

// hookTimeout bounds every call of a hook: the greatest of their own, at least 30 s.
func hookTimeout(c *config.Switching) time.Duration {
	most := 30 * time.Second
	for i := range c.Hooks {
		most = max(most, c.Hooks[i].Timeout.Std())
	}
	return most
}

// switching is the switch of one site in this process, which may or may not hold its lease.
type switching struct {
	*alone
	site string
	pool *poolView
	now  atomic.Pointer[serverswitch.Switch]
}

// says is how the site stands, for those who look at the lease.
func (w *switching) says() any {
	if one := w.now.Load(); one != nil {
		for _, s := range one.State() {
			return s
		}
	}
	return serverswitch.SiteState{Site: w.site, Servers: []serverswitch.ServerState{}}
}

// work turns servers on and off as long as the lease is this process's.
func (w *switching) work(ctx context.Context) (err error) {
	c := &w.Config.Servers.Switching
	servers, err := switchedServers(w.Config, w.site)
	if err != nil {
		return err
	}
	log := w.part("switch of " + w.site)
	one, err := serverswitch.New(serverswitch.Options{
		Drain: c.Drain.Std(), Drained: w.pool.drained, Folder: w.dir("switch-" + subject.Encode(w.site)), History: executor.History(w.client, control.Servers),
		Least: c.Least, Logger: log, Metrics: executorMeter{w.metrics, control.Servers}, Ready: serverswitch.Probe(nil, c.Ready),
		ReadyWithin: max(serverReadyWithin, 4*c.StartDelay.Std()), Timeout: hookTimeout(c), Servers: servers,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, one.Close()) }()
	w.now.Store(one)
	defer w.now.Store(nil)
	work, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 2)
	go func() { ended <- one.Run(work) }()
	go func() {
		// Whoever acts for the site goes on where another left: the consumer is theirs in common.
		ended <- w.execute(work, &following{}, executor.Options{
			Target: one, Role: control.SwitchTarget + "-" + subject.Encode(w.site), Workers: switchWorkers, Logger: log,
		})
	}()
	err = <-ended
	stop()
	return errors.Join(err, <-ended)
}

// switchWorkers is how many tables a switch has in work: the one that it waits for, and
// those that come meanwhile, of its site and of others.
const switchWorkers = 4
