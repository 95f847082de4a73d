package haproxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"time"

	"penstock/consumers/executor/haproxyapi"
	"penstock/consumers/executor/serverswitch"
)

var (
	// ErrOptions is returned by New for options that can't work.
	ErrOptions = errors.New("HAProxy server state options")
	// ErrAbsent is returned for a server that HAProxy's backend does not have. Nothing was
	// set.
	ErrAbsent = errors.New("no such server in HAProxy's backend")
)

// Options of a Backend.
type Options struct {
	// Address is where HAProxy's runtime API listens: the path of a UNIX socket, or
	// host:port. A "unix:" or "tcp:" before it says which. Needed.
	Address string
	// Backend of HAProxy whose servers are meant. Needed.
	Backend string
	// Names are those of its servers there, by those in tables. One that is not listed is
	// found by the host and port of its URL.
	Names map[string]string
	// Timeout bounds one question and its answer. Defaults to 2 s.
	Timeout time.Duration
}

// Backend is one of a running HAProxy. It is safe for concurrent use.
type Backend struct {
	o      Options
	client haproxyapi.Client
}

var (
	_ serverswitch.Backend = (*Backend)(nil)
	_ serverswitch.Drainer = (*Backend)(nil)
)

// New returns a backend of a HAProxy, which need not run yet. ErrOptions.
func New(o Options) (*Backend, error) {
	network, address, err := haproxyapi.Address(o.Address)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	o.Timeout = cmp.Or(o.Timeout, 2*time.Second)
	if !haproxyapi.Named(o.Backend) || o.Timeout < 0 {
		return nil, fmt.Errorf("backend %.80q: expected a name of HAProxy's, and no negative timeout: %w", o.Backend, ErrOptions)
	}
	for _, server := range slices.Sorted(maps.Keys(o.Names)) {
		if !haproxyapi.Named(o.Names[server]) {
			return nil, fmt.Errorf("server %.80q: got %.80q, expected a name of HAProxy's: %w", server, o.Names[server], ErrOptions)
		}
	}
	o.Names = maps.Clone(o.Names)
	return &Backend{o: o, client: haproxyapi.Client{Network: network, Address: address, Timeout: o.Timeout}}, nil
}

// Name is haproxy.
func (b *Backend) Name() string { return "haproxy" }

// find reads a server as HAProxy has it. haproxyapi's errors, ErrAbsent.
func (b *Backend) find(ctx context.Context, s serverswitch.Server) (*haproxyapi.Server, error) {
	answer, err := b.client.Ask(ctx, "show servers state "+b.o.Backend)
	if err != nil {
		return nil, err
	}
	all, err := haproxyapi.ParseServers(answer)
	if err != nil {
		return nil, err
	}
	name, at := b.o.Names[s.Name], s.Name
	if u, err := url.Parse(s.URL); err == nil && u.Host != "" {
		at = u.Host
	}
	for i := range all {
		if v := &all[i]; v.Backend == b.o.Backend && (name != "" && v.Name == name || name == "" && v.Address == at) {
			return v, nil
		}
	}
	return nil, fmt.Errorf("%.80q, as %.80q, in %s: %w", s.Name, cmp.Or(name, at), b.o.Backend, ErrAbsent)
}

// set brings a server into a state, unless it is in it.
func (b *Backend) set(ctx context.Context, s serverswitch.Server, state string, is func(v *haproxyapi.Server) bool) error {
	v, err := b.find(ctx, s)
	if err != nil || is(v) {
		return err
	}
	return b.client.Set(ctx, fmt.Sprintf("set server %s/%s state %s", v.Backend, v.Name, state))
}

func takes(v *haproxyapi.Server) bool {
	return v.Admin&(haproxyapi.AdminMaintenance|haproxyapi.AdminDrains) == 0
}

func rests(v *haproxyapi.Server) bool { return v.Admin&haproxyapi.AdminMaintenance != 0 }

// Switch sets the state ready or maint.
func (b *Backend) Switch(ctx context.Context, o serverswitch.Order) error {
	if o.On {
		return b.set(ctx, o.Server, "ready", takes)
	}
	return b.set(ctx, o.Server, "maint", rests)
}

// Observe says off of a server in maintenance.
func (b *Backend) Observe(ctx context.Context, s serverswitch.Server) (serverswitch.Power, error) {
	v, err := b.find(ctx, s)
	switch {
	case err != nil:
		return serverswitch.Unseen, err
	case rests(v):
		return serverswitch.PowerOff, nil
	}
	return serverswitch.PowerOn, nil
}

// Drain sets the state drain; maint for a server with a cookie.
func (b *Backend) Drain(ctx context.Context, s serverswitch.Server) error {
	v, t, err := b.traffic(ctx, s)
	switch {
	case err != nil:
		return err
	case rests(v), v.Admin&haproxyapi.AdminDrain != 0 && !t.Sticky:
		return nil
	case t.Sticky:
		return b.client.Set(ctx, fmt.Sprintf("set server %s/%s state maint", v.Backend, v.Name))
	}
	return b.client.Set(ctx, fmt.Sprintf("set server %s/%s state drain", v.Backend, v.Name))
}

// Undrain sets the state ready.
func (b *Backend) Undrain(ctx context.Context, s serverswitch.Server) error {
	return b.set(ctx, s, "ready", takes)
}

// Running counts the requests at a server and those queued for it.
func (b *Backend) Running(ctx context.Context, s serverswitch.Server) (int, error) {
	_, t, err := b.traffic(ctx, s)
	return t.Running, err
}

func (b *Backend) traffic(ctx context.Context, s serverswitch.Server) (*haproxyapi.Server, haproxyapi.Traffic, error) {
	v, err := b.find(ctx, s)
	if err != nil {
		return nil, haproxyapi.Traffic{}, err
	}
	answer, err := b.client.Ask(ctx, haproxyapi.ServerStats)
	if err != nil {
		return nil, haproxyapi.Traffic{}, err
	}
	all, err := haproxyapi.ParseTraffic(answer)
	if err != nil {
		return nil, haproxyapi.Traffic{}, err
	}
	t, has := all[v.Backend+"/"+v.Name]
	if !has {
		return nil, t, fmt.Errorf("statistics of %s/%s: %w", v.Backend, v.Name, ErrAbsent)
	}
	return v, t, nil
}
