package haproxy

import (
	"context"
	"fmt"

	"penstock/consumers/executor/haproxyapi"
	"penstock/consumers/executor/router"
	"penstock/infra/shares"
)

// Drain takes the servers of a replica out, in all backends, and waits until no
// request is running there or waiting for them.
func (t *Target) Drain(ctx context.Context, r shares.Replica) (remaining int, err error) {
	if err := t.takeOut(context.WithoutCancel(ctx), r); err != nil {
		return 0, err
	}
	return router.Emptied(ctx, t.o.Clock, r, t.running)
}

func (t *Target) takeOut(ctx context.Context, r shares.Replica) error {
	return t.states(ctx, r, func(s *server, sticky bool) string {
		switch {
		case s.admin&adminMaintenance != 0, s.admin&adminDrain != 0 && !sticky:
			return ""
		case sticky:
			return "maint"
		}
		return "drain"
	})
}

// Undrain has the servers of a replica take requests again.
func (t *Target) Undrain(ctx context.Context, r shares.Replica) error {
	return t.states(ctx, r, func(s *server, _ bool) string {
		if s.admin&(adminMaintenance|adminDrains) == 0 {
			return ""
		}
		return "ready"
	})
}

// states sets the states of a replica's servers; "" leaves one as it is.
func (t *Target) states(ctx context.Context, r shares.Replica, state func(s *server, sticky bool) string) error {
	backends := t.at(r)
	if len(backends) == 0 {
		return fmt.Errorf("no backend has %.80q at %.80q: %w", r.Component, r.Site, shares.ErrAbsent)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now, err := t.servers(ctx, backends)
	if err != nil {
		return err
	}
	traffic, err := t.traffic(ctx)
	if err != nil {
		return err
	}
	var commands []string
	for _, b := range backends {
		for _, name := range b.Servers[r.Site] {
			s := now[b.Name][name]
			if s == nil {
				continue
			}
			if to := state(s, traffic[b.Name+"/"+name].sticky); to != "" {
				commands = append(commands, fmt.Sprintf("set server %s/%s state %s", b.Name, name, to))
			}
		}
	}
	if len(commands) == 0 {
		return nil
	}
	if err := t.client.set(ctx, commands); err != nil {
		return err
	}
	t.keepState(ctx, true)
	return nil
}

func (t *Target) traffic(ctx context.Context) (map[string]traffic, error) {
	answer, err := t.client.ask(ctx, haproxyapi.ServerStats)
	if err != nil {
		return nil, err
	}
	return parseTraffic(answer)
}

// running is how many requests a replica's servers have.
func (t *Target) running(ctx context.Context, r shares.Replica) (n int, err error) {
	traffic, err := t.traffic(ctx)
	if err != nil {
		return 0, err
	}
	for _, b := range t.at(r) {
		for _, name := range b.Servers[r.Site] {
			n += traffic[b.Name+"/"+name].running
		}
	}
	return n, nil
}
