package haproxy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"penstock/consumers/executor"
	"penstock/consumers/executor/haproxyapi"
	"penstock/consumers/executor/router"
	"penstock/infra/clock"
	"penstock/infra/shares"
)

// Options of a Target.
type Options struct {
	// Address is where HAProxy's runtime API listens: the path of a UNIX socket, or
	// host:port. A "unix:" or "tcp:" before it says which. Needed.
	Address string
	// Backends are what may be set. Needed.
	Backends []Backend
	// Clock paces the waiting of Drain. Defaults to the machine's.
	Clock clock.Clock
	// Metrics gets the counts. Defaults to none.
	Metrics executor.Metrics
	// Name is the target in outcomes. Defaults to "haproxy".
	Name string
	// StateFile is where HAProxy reads its servers' states when it starts
	// (server-state-file). Empty: none is written.
	StateFile string
	// Timeout bounds one question and its answer. Defaults to 2 s.
	Timeout time.Duration
}

// Backend is a backend of HAProxy that carries the calls of a link.
type Backend struct {
	// Name is HAProxy's.
	Name string
	Link shares.Link
	// Servers are the names of its servers at each site.
	Servers map[string][]string
	// Writes is set for a backend that carries the calls that write, and they alone:
	// it follows a row's site for writes where it has one.
	Writes bool
}

// What a Target counts besides.
const (
	// Ignored counts rows of tables that no backend carries.
	Ignored executor.Counter = "ignored"
	// StateFile counts failures to write the state file, by what failed. What was set
	// is in force all the same; the file is written with the next Put.
	StateFile executor.Counter = "state_file"
)

// complete fills defaults in and checks; it returns the network of the address.
func (o *Options) complete() (network string, err error) {
	o.Name = cmp.Or(o.Name, "haproxy")
	o.Timeout = cmp.Or(o.Timeout, 2*time.Second)
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	if o.Metrics == nil {
		o.Metrics = executor.NoMetrics{}
	}
	network, address, err := haproxyapi.Address(o.Address)
	if err != nil || o.Timeout < 0 || len(o.Backends) == 0 {
		return "", fmt.Errorf("haproxy: an address and backends are needed, and no negative time: %w", router.ErrOptions)
	}
	o.Address = address
	taken := map[string]bool{}
	for _, b := range o.Backends {
		if err := b.check(taken); err != nil {
			return "", err
		}
	}
	return network, nil
}

func (b *Backend) check(taken map[string]bool) error {
	if !haproxyapi.Named(b.Name) || taken[b.Name] || b.Link.From == "" || b.Link.To == "" || len(b.Servers) == 0 {
		return fmt.Errorf("haproxy: backend %.80q: expected a name, once, a link and servers: %w", b.Name, router.ErrOptions)
	}
	taken[b.Name] = true
	for site, servers := range b.Servers {
		for _, server := range servers {
			id := b.Name + "/" + server
			if !haproxyapi.Named(server) || taken[id] {
				return fmt.Errorf("haproxy: backend %.80q: server %.80q: expected a name, once: %w", b.Name, server, router.ErrOptions)
			}
			taken[id] = true
		}
		if site == "" || len(servers) == 0 {
			return fmt.Errorf("haproxy: backend %.80q: site %.80q: expected a name and servers: %w", b.Name, site, router.ErrOptions)
		}
	}
	return nil
}

// sites are the backend's, sorted.
func (b *Backend) sites() []string { return slices.Sorted(maps.Keys(b.Servers)) }
