package redirector

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"penstock/infra/bus"
	"penstock/infra/clock"
	"penstock/infra/door"
	"penstock/schemas/control"
)

// DefaultListen is the address of a redirector whose options name none.
const DefaultListen = "127.0.0.1:8090"

// Directory is what a redirector asks; *directory.Directory is one. Its methods
// are called for every request, from many goroutines.
type Directory interface {
	// Get returns an owner's location, false for an owner without one.
	Get(owner string) (control.Location, bool)
	// Freshness says how long ago the directory was in step with the bus, 0 while
	// it is, and whether it hears the bus.
	Freshness() (since time.Duration, connected bool)
	// Ready is closed once the directory holds a first full state.
	Ready() <-chan struct{}
}

// Options say what a redirector tells, where, and to whom.
type Options struct {
	// Batch is the most owners of one request. Defaults to 1,000, and is never
	// more than the burst of a client, for a batch counts as that many lookups.
	Batch int
	// Burst is how many lookups a client may make at once. Defaults to twice Rate,
	// 20 at least.
	Burst int
	// Client, if set, is the connection on which the micro service answers.
	Client *bus.Client
	// Clients bounds for how many clients a rate is kept. Defaults to 65,536.
	Clients int
	// Clock defaults to the machine's.
	Clock clock.Clock
	// Connections is the most that are open at a time; others wait. Defaults to
	// 10,000.
	Connections int
	// Directory is asked. Required.
	Directory Directory
	// ForwardedOnly makes Forwarded the only field that counts.
	ForwardedOnly bool
	// Listen is host:port; port 0 takes a free one. Defaults to DefaultListen.
	Listen string
	// Logger gets a line at start and one for each failure.
	Logger zerolog.Logger
	// MaxAge is how long after the directory was last in step with the bus it is
	// still believed; then the answer is 503. 0 believes it for ever.
	MaxAge time.Duration
	// Public answers everybody, off loopback too, without a token.
	Public bool
	// Rate is lookups a second for one client; 0 is no limit. A client is an
	// address (of IPv6 the first 64 bits), or a token if there are several.
	Rate float64
	// Registerer, if set, gets the metrics penstock_redirector_….
	Registerer prometheus.Registerer
	// Sites are the URLs of the sites, by name: absolute, http or https, without
	// query. A site without one is told of, but not redirected to.
	Sites map[string]string
	// Tokens: one of them must be sent as "Authorization: Bearer TOKEN", unless
	// Public. Off loopback each must have at least 16 bytes.
	Tokens []string
	// TotalRate is lookups a second for all clients together, those on the bus
	// included; 0 is no limit.
	TotalRate float64
	// Trusted are the proxies whose X-Forwarded-For counts, or Forwarded where there
	// is none.
	Trusted []netip.Prefix
	// Unknown, if set, says which site serves an owner without a location; false
	// if that depends on where the request enters.
	Unknown func(owner string) (site string, ok bool)
	// Version is the micro service's, as semantic versions are written. Defaults to
	// 0.0.0.
	Version string
	// WindowEnd, if set, returns the end of the placement window that an instant is
	// in: until then an answer may be kept. Without it answers are not to be kept.
	WindowEnd func(time.Time) time.Time
}

// leastBurst lets a client with a low rate load a page.
const leastBurst = 20

func (o *Options) complete() error {
	if o.Directory == nil {
		return fmt.Errorf("no directory: %w", ErrOptions)
	}
	if o.Rate < 0 || o.TotalRate < 0 || o.Burst < 0 || o.Batch < 0 || o.Clients < 0 || o.Connections < 0 || o.MaxAge < 0 {
		return fmt.Errorf("a limit below 0: %w", ErrOptions)
	}
	o.Listen = cmp.Or(o.Listen, DefaultListen)
	who := o.door()
	err := who.Check(o.Listen)
	if errors.Is(err, door.ErrOptions) {
		return fmt.Errorf("%w: %w", ErrOptions, err)
	}
	if err != nil {
		return err
	}
	if o.Sites, err = sites(o.Sites); err != nil {
		return err
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	o.Burst = cmp.Or(o.Burst, max(leastBurst, int(2*o.Rate)))
	o.Batch = cmp.Or(o.Batch, 1000)
	if o.Rate > 0 {
		o.Batch = min(o.Batch, o.Burst)
	}
	o.Clients = cmp.Or(o.Clients, 1<<16)
	o.Connections = cmp.Or(o.Connections, 10_000)
	o.Version = cmp.Or(o.Version, "0.0.0")
	return nil
}

// door are the options of who may come in.
func (o *Options) door() door.Options {
	return door.Options{ForwardedOnly: o.ForwardedOnly, Public: o.Public, Tokens: o.Tokens, Trusted: o.Trusted}
}

// rates are the options of how many lookups are too many.
func (o *Options) rates() door.RateOptions {
	return door.RateOptions{Burst: o.Burst, Clients: o.Clients, Rate: o.Rate, TotalBurst: o.Batch, TotalRate: o.TotalRate}
}

// sites returns the URLs without a slash at the end.
func sites(urls map[string]string) (map[string]string, error) {
	out := make(map[string]string, len(urls))
	for _, name := range slices.Sorted(maps.Keys(urls)) {
		s := urls[name]
		if s == "" {
			continue
		}
		u, err := url.Parse(s)
		if err != nil {
			return nil, fmt.Errorf("url of site %s: %w: %w", name, ErrOptions, err)
		}
		if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || u.Opaque != "" {
			return nil, fmt.Errorf("url of site %s: %.80q, expected http or https, host and perhaps a path: %w", name, s, ErrOptions)
		}
		out[name] = strings.TrimRight(u.Scheme+"://"+u.Host+u.EscapedPath(), "/")
	}
	return out, nil
}
