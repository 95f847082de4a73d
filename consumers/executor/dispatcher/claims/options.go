package claims

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"penstock/infra/bus"
	"penstock/infra/clock"
	"penstock/schemas/subject"
)

// Server is one of a site.
type Server struct {
	// Name of it, alone in the site.
	Name string
	// Zone it belongs to.
	Zone string
	// M is how many requests it may have in service, of all dispatchers together.
	M int
}

// Options of Claims.
type Options struct {
	// Client is the connection. Needed.
	Client *bus.Client
	// Clock paces the writes. Defaults to the machine's.
	Clock clock.Clock
	// Every is how often the row is written anew; four times as often while a share is not
	// fair. Defaults to a second, which is the most: others take a longer silence for an
	// outage.
	Every time.Duration
	// Grace is how long nobody raises a limit in a key that was just made. Defaults to 2 s, in
	// which everybody who held something must have been able to write it down again;
	// negative is none, for a dispatcher that is known to be alone.
	Grace time.Duration
	// Logger is told when the bus is away and back.
	Logger zerolog.Logger
	// Name of this dispatcher: that of its entry point. Needed. Processes of one name count
	// as several dispatchers.
	Name string
	// Patience is how long a dispatcher that never reached the bus waits before it takes all
	// places. Defaults to 2 s.
	Patience time.Duration
	// Registerer gets the metrics. Defaults to none.
	Registerer prometheus.Registerer
	// Servers of the site, see SetServers.
	Servers []Server
	// Site whose servers are shared. Needed.
	Site string
}

func (o *Options) complete() error {
	if o.Client == nil || o.Name == "" || o.Site == "" {
		return fmt.Errorf("expected Client, Name and Site: %w", ErrOptions)
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	if o.Every == 0 {
		o.Every = time.Second
	}
	if o.Grace == 0 {
		o.Grace = 2 * time.Second
	}
	if o.Patience == 0 {
		o.Patience = 2 * time.Second
	}
	if o.Every < time.Millisecond || o.Every > time.Second {
		return fmt.Errorf("every: got %v, expected 1ms to 1s: %w", o.Every, ErrOptions)
	}
	if o.Patience < 0 {
		return fmt.Errorf("patience: got %v, expected 0 or more: %w", o.Patience, ErrOptions)
	}
	return nil
}

// arrange checks servers and returns them in the order of their names, which is the same for
// all dispatchers.
func arrange(servers []Server) ([]Server, error) {
	out := slices.Clone(servers)
	slices.SortFunc(out, func(a, b Server) int { return strings.Compare(a.Name, b.Name) })
	for i, s := range out {
		if s.Name == "" || i > 0 && out[i-1].Name == s.Name {
			return nil, fmt.Errorf("servers: got the name %.60q, expected a name of its own: %w", s.Name, ErrOptions)
		}
		if s.M < 0 {
			return nil, fmt.Errorf("servers: %.60q: got an M of %d, expected 0 or more: %w", s.Name, s.M, ErrOptions)
		}
	}
	return out, nil
}

// key is that of a site in KV members.
func key(site string) string { return "pool." + subject.Encode(site) }

func newInstance() string { return nuid.Next() }
