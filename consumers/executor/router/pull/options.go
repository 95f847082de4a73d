package pull

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"penstock/infra/clock"
	"penstock/infra/door"
	"penstock/infra/shares"
	"penstock/schemas/control"
)

// DefaultListen is the address of a server whose options name none.
const DefaultListen = "127.0.0.1:8091"

// MaxWait is how long an answer is kept back at most.
const MaxWait = time.Minute

// Options say what is told, where, and to whom.
type Options struct {
	// Burst is how many questions a client may ask at once. Defaults to twice Rate, 20
	// at least.
	Burst int
	// Clients bounds for how many clients a rate is kept. Defaults to 65,536.
	Clients int
	// Clock defaults to the machine's.
	Clock clock.Clock
	// Components are those that can be asked for, with their servers by site: absolute
	// URLs, http or https, without query. Needed.
	Components map[string]map[string][]string
	// Connected says whether the bus is there, from which tables come. Nil: always.
	Connected func() bool
	// Connections is the most that are open at a time; others wait. Defaults to
	// 10,000.
	Connections int
	// ForwardedOnly makes Forwarded the only field of Trusted proxies that counts.
	ForwardedOnly bool
	// Listen is host:port; port 0 takes a free one. Defaults to DefaultListen.
	Listen string
	// Logger gets a line at start and one for each failure.
	Logger zerolog.Logger
	// Public answers everybody, off loopback too, without a token.
	Public bool
	// Rate is questions a second for one client; 0 is no limit. A client is an
	// address (of IPv6 the first 64 bits), or a token if there are several.
	Rate float64
	// Ready says whether what is in force was read from the bus: before, nothing is
	// told, lest who keeps a table takes the default for a newer one. Nil: it is.
	Ready func() bool
	// Registerer, if set, gets the metrics penstock_pull_….
	Registerer prometheus.Registerer
	// Shares is what is in force. Needed.
	Shares *shares.Router
	// Sites are those that can be asked from, beside those of Components.
	Sites []string
	// Tokens: one of them must be sent as "Authorization: Bearer TOKEN", unless
	// Public. Off loopback each must have at least 16 bytes.
	Tokens []string
	// TotalRate is questions a second of all clients together; 0 is no limit.
	TotalRate float64
	// Trusted are the proxies whose X-Forwarded-For counts, or Forwarded where there
	// is none.
	Trusted []netip.Prefix
	// Waiting is the most clients that wait at a time; further ones are told to come
	// later. Defaults to 1,000.
	Waiting int
	// WritesAt is the site of all calls of a component that write, by component,
	// wherever the table in force has none for them, or there is no table. A component
	// that isn't in it has none.
	WritesAt map[string]string
}

// leastBurst lets a client with a low rate ask for all that it calls, at its start.
const leastBurst = 20

func (o *Options) complete() error {
	if o.Shares == nil || len(o.Components) == 0 {
		return fmt.Errorf("shares and components are needed: %w", ErrOptions)
	}
	if o.Rate < 0 || o.TotalRate < 0 || o.Burst < 0 || o.Clients < 0 || o.Connections < 0 || o.Waiting < 0 {
		return fmt.Errorf("a limit below 0: %w", ErrOptions)
	}
	o.Listen = cmp.Or(o.Listen, DefaultListen)
	who := o.door()
	if err := who.Check(o.Listen); errors.Is(err, door.ErrOptions) {
		return fmt.Errorf("%w: %w", ErrOptions, err)
	} else if err != nil {
		return err
	}
	if err := o.checkComponents(); err != nil {
		return err
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	if o.Connected == nil {
		o.Connected = func() bool { return true }
	}
	if o.Ready == nil {
		o.Ready = func() bool { return true }
	}
	o.Burst = cmp.Or(o.Burst, max(leastBurst, int(2*o.Rate)))
	o.Clients = cmp.Or(o.Clients, 1<<16)
	o.Connections = cmp.Or(o.Connections, 10_000)
	o.Waiting = cmp.Or(o.Waiting, 1000)
	return nil
}

func (o *Options) checkComponents() error {
	for _, name := range slices.Sorted(maps.Keys(o.Components)) {
		if !usable(name) {
			return fmt.Errorf("component %.80q: expected a name of 1 to %d bytes: %w", name, control.MaxID, ErrOptions)
		}
		for _, site := range slices.Sorted(maps.Keys(o.Components[name])) {
			servers := o.Components[name][site]
			if !usable(site) || len(servers) > control.MaxSplitServers {
				return fmt.Errorf("component %.80q at %.80q: expected a site by name and at most %d servers: %w", name, site, control.MaxSplitServers, ErrOptions)
			}
			for _, s := range servers {
				if !control.ServerURL(s) {
					return fmt.Errorf("component %.80q at %.80q: server %.80q: expected http or https, host and perhaps a path: %w", name, site, s, ErrOptions)
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.WritesAt)) {
		if _, known := o.Components[name]; !known || !usable(o.WritesAt[name]) {
			return fmt.Errorf("writes of %.80q at %.80q: expected one of the components, and a site by name: %w", name, o.WritesAt[name], ErrOptions)
		}
	}
	return nil
}

// door are the options of who may come in.
func (o *Options) door() door.Options {
	return door.Options{ForwardedOnly: o.ForwardedOnly, Public: o.Public, Tokens: o.Tokens, Trusted: o.Trusted}
}
