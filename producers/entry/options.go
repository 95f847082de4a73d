package entry

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"penstock/infra/clock"
	"penstock/infra/geo"
	"penstock/infra/shares"
	"penstock/producers/entry/identify"
	"penstock/producers/entry/upstream"
	"penstock/schemas/control"
	"penstock/schemas/event"
)

// Locations says where owners' data is.
type Locations interface {
	// Locate returns the site that holds the owner's data and the version of that
	// word. It is called for each request: it never blocks and allocates nothing.
	Locate(owner string) (site string, version uint64, known bool)
	// Learn takes a newer word than the bus's; it counts only if version is greater
	// than the one that is known.
	Learn(owner, site string, version uint64)
}

// Publisher takes rows. It never blocks and never fails its caller, and keeps
// nothing of the row but its strings.
type Publisher interface{ Publish(r *event.Request) }

// Gate is where the mover holds writes.
type Gate interface {
	// Enter lets a write to the owner's data in, and leave must be called when it
	// has been answered; or the writes of this owner are held: then held is not
	// nil, and closed when that is over. leave is nil then.
	Enter(owner string) (leave func(), held <-chan struct{})
}

// Upstream is a pool of servers: *upstream.Pool. If it has a method Usable() bool, that
// says whether a server of it is well; else what becomes of requests does.
type Upstream interface {
	// Do sends the request and returns the answer with the attempt that got it, or
	// an error with the last attempt, nil if there was none. observe is told of
	// the attempts before that.
	Do(r *http.Request, observe func(*upstream.Attempt)) (*http.Response, *upstream.Attempt, error)
}

// Locator says where an address is; *geo.DB is one.
type Locator interface {
	Lookup(a netip.Addr) (geo.Place, bool)
}

// Site is a site as an entry point sees it.
type Site struct {
	// Name of the site.
	Name string
	// URL of its entry point for clients, without a path; empty: a redirect there
	// is impossible, requests are forwarded.
	URL string
	// Peer is the pool of its entry points; nil: no request is forwarded there,
	// all are redirected. The own site's is not used.
	Peer Upstream
}

// ComponentRoute says which requests are for a component, and who serves them here.
type ComponentRoute struct {
	// Name of the component. One that is called as Options.Component adds hosts and
	// a path to it, by which others call it on the internal listener; its Local has to
	// be nil.
	Name string
	// Hosts are names by which requests ask for it, whatever the port: exact, or
	// *.SUFFIX. Empty: any, if there is a Path.
	Hosts []string
	// Path is a pattern of the paths that are for it (identify.CompilePattern).
	// Empty: any, if there are Hosts. With neither it can be called by its name only.
	Path string
	// Public lets requests from outside reach it, by Hosts and Path.
	Public bool
	// Local are its servers at this site; nil: none.
	Local Upstream
	// Sites are those that may serve it; empty: all. What the table in force says
	// counts all the same; these bound what is tried when the chosen site fails.
	Sites []string
	// WritesAt is the site of all requests that write, wherever the table in force
	// has none for them, or there is no table; it needs Options.Shares. Empty: what the
	// table says is all.
	WritesAt string
}

// Session keeps the calls of one client for one component at one site, for as long
// as that is up and has a share. At most one of Cookie and Header is set.
type Session struct {
	// Cookie is the name of a cookie that holds the site. The entry point sets it for
	// clients from outside; for a public component NAME it is called Cookie-NAME.
	Cookie string
	// Header is the name of a header of the client's: the name of a site, as the
	// same header of an answer says it, or an id of the client's own, which is at the
	// same site as long as the shares allow.
	Header string
	// TTL is how long the cookie lasts, from its beginning; 0: as long as the client
	// runs. It counts in seconds.
	TTL time.Duration
}

// ClassRule gives the requests for some paths a class. The first that matches
// counts.
type ClassRule struct{ Path, Class string }

// What Options.Answer may be.
const (
	Forward  = "forward"
	Redirect = "redirect"
)

// What Options.Unknown may be beside "site:NAME".
const (
	UnknownLocal = "local"
	UnknownFirst = "first"
	UnknownHash  = "hash"
)

// JWT says which tokens count.
type JWT struct {
	// Key verifies them (identify.ParseKey); nil: they are read unverified.
	Key any
	// Required refuses a request without a token that counts with 401.
	Required bool
}

// Limits of what clients may do. Zero is the default, negative is none.
type Limits struct {
	// Header is the size of a request line with its header in bytes. Defaults to
	// 32 KiB.
	Header int
	// Body is the size of a request's body in bytes. Defaults to none.
	Body int64
	// Connections is how many may be open at once. Defaults to 10,000.
	Connections int
	// HeaderTimeout is the longest that a header, or a TLS handshake, may take.
	// Defaults to 5 s.
	HeaderTimeout time.Duration
	// IdleTimeout is how long a connection waits for its next request. Defaults to
	// 75 s.
	IdleTimeout time.Duration
	// BodyRate is the least rate, in bytes a second, at which a body has to come,
	// on average over the time that the entry point waited for it, until its answer
	// begins. Defaults to 256.
	BodyRate int64
	// BodyGrace is how much waiting is free. Defaults to 10 s.
	BodyGrace time.Duration
	// WriteTimeout is the longest that a client may take none of its answer.
	// Defaults to 60 s.
	WriteTimeout time.Duration
}

// Options of an entry point. main maps the configuration's section entry to it.
type Options struct {
	// Answer is what is done for an owner whose data is elsewhere: Forward or
	// Redirect. Defaults to Forward.
	Answer string
	// Class names the classes of paths.
	Class []ClassRule
	// Clock measures requests and paces retries. Defaults to the system's. Sockets
	// go by the system's clock whatever this one says.
	Clock clock.Clock
	// Component is the column to_component of what is for no other component; it may
	// be empty. Local are its servers, and owners' data is its own.
	Component string
	// Components are the parts of the service that requests can be for, beside
	// Component. The first whose hosts and path match counts.
	Components []ComponentRoute
	// Drain is how long running requests may go on when Run's context has ended.
	// Defaults to 30 s.
	Drain time.Duration
	// ForwardedOnly makes the header Forwarded (RFC 7239) the only one that trusted
	// proxies tell the client by. Else it is X-Forwarded-For, and Forwarded where
	// there is none. A proxy must set the one that is read, or a client could.
	ForwardedOnly bool
	// Gate holds writes; nil: none are held.
	Gate Gate
	// Geo places clients; nil: they have no place.
	Geo Locator
	// H2C serves HTTP/2 without TLS to clients that begin with it.
	H2C bool
	// HashKey is the key of the hashes of users (rules with hash or address).
	HashKey []byte
	// Hold is how long a request waits for an owner that is being moved. Defaults
	// to 1 s.
	Hold time.Duration
	// Internal is a second address, on which components of the site call others. It
	// speaks HTTP/1.1 and HTTP/2 without TLS, and who reaches it may call every
	// component. Empty: there is none.
	Internal string
	// JWT says which tokens count.
	JWT JWT
	// Limits of what clients may do.
	Limits Limits
	// Listen is the address to listen on.
	Listen string
	// Local is the pool of the site's own servers.
	Local Upstream
	// Locations says where data is; nil: nowhere known.
	Locations Locations
	// Logger is told of starts, ends and what an operator has to know; never of
	// single requests.
	Logger zerolog.Logger
	// Owner finds the owner; User finds who asks.
	Owner, User []identify.Rule
	// PeerKey is the secret among the entry points of one service; without it
	// a hop counts only from a trusted proxy, and finds out itself who asks for what.
	PeerKey []byte
	// ProbeLimit bounds the copies that are sent as probes, as a part of a link's
	// requests. Defaults to 0.1, which is also the most; negative is none.
	ProbeLimit float64
	// Publisher takes the rows; nil: there are none.
	Publisher Publisher
	// Registerer gets the metrics; it may be nil.
	Registerer prometheus.Registerer
	// Replay is the most bytes of a body that are kept, so that the request can be
	// sent to another site when the first no longer has the data. Defaults to
	// 64 KiB; negative is none.
	Replay int64
	// Residency returns a flag for each site, in the order of Sites: whether it may
	// hold the owner's data. nil: all may. It is called for owners of unknown
	// location and allocates nothing.
	Residency func(owner string) []bool
	// ServerTiming is the metric in Server-Timing that is the service's own time.
	// Empty: "app", else "total", else the only one with a duration. Where a service
	// says "total" too, what that is above its own time is what it waited for those
	// that it called, and counts neither as service nor as network.
	ServerTiming string
	// Session keeps a client's calls at one site; the zero value doesn't.
	Session Session
	// Shares splits calls over sites; nil: each is served where it is made. Where
	// peers are to take a share there has to be a PeerKey.
	Shares *shares.Router
	// Site is the site of this entry point, one of Sites.
	Site string
	// Sites in the order of the configuration.
	Sites []Site
	// TLS makes the entry point speak TLS; it needs a certificate.
	TLS *tls.Config
	// TraceSample is the share of new traces that are marked as sampled: services
	// may record all of those. Defaults to 1; negative is none.
	TraceSample float64
	// TrustedProxies are believed what they say of the client's address.
	TrustedProxies []netip.Prefix
	// Unknown says where an owner is served whose location is not known:
	// UnknownLocal, where it enters; UnknownFirst, at the first site that may hold
	// it; UnknownHash, at one of those by a hash; or "site:NAME". Defaults to
	// UnknownLocal.
	Unknown string
}

func orNone[T int | int64 | time.Duration](v, def T) T {
	if v < 0 {
		return 0
	}
	return cmp.Or(v, def)
}

// complete fills in what is zero and checks the rest.
func (o Options) complete() (Options, error) {
	o.Answer, o.Unknown = cmp.Or(o.Answer, Forward), cmp.Or(o.Unknown, UnknownLocal)
	o.Drain, o.Hold, o.Replay = orNone(o.Drain, 30*time.Second), orNone(o.Hold, time.Second), orNone(o.Replay, 64<<10)
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	if o.Locations == nil {
		o.Locations = nowhere{}
	}
	if o.Publisher == nil {
		o.Publisher = unpublished{}
	}
	o.TraceSample = cmp.Or(o.TraceSample, 1)
	o.ProbeLimit = max(cmp.Or(o.ProbeLimit, mostProbes), 0)
	l := &o.Limits
	l.Header, l.Connections = cmp.Or(max(l.Header, 0), 32<<10), orNone(l.Connections, 10_000)
	l.Body = max(l.Body, 0)
	l.HeaderTimeout, l.IdleTimeout = orNone(l.HeaderTimeout, 5*time.Second), orNone(l.IdleTimeout, 75*time.Second)
	l.BodyRate, l.BodyGrace = orNone(l.BodyRate, 256), orNone(l.BodyGrace, 10*time.Second)
	l.WriteTimeout = orNone(l.WriteTimeout, time.Minute)
	switch {
	case o.Local == nil:
		return o, fmt.Errorf("no pool of local servers: %w", ErrOption)
	case o.Answer != Forward && o.Answer != Redirect:
		return o, fmt.Errorf("answer %q, expected %s or %s: %w", o.Answer, Forward, Redirect, ErrOption)
	case l.Header < 256:
		return o, fmt.Errorf("a header limit of %d bytes, expected 256 or more: %w", l.Header, ErrOption)
	case o.TLS != nil && len(o.TLS.Certificates) == 0 && o.TLS.GetCertificate == nil && o.TLS.GetConfigForClient == nil:
		return o, fmt.Errorf("tls without a certificate: %w", ErrOption)
	case o.JWT.Required && o.JWT.Key == nil:
		return o, fmt.Errorf("tokens are required, but there is no key to verify them: %w", ErrOption)
	case len(o.PeerKey) > 0 && len(o.PeerKey) < 16:
		return o, fmt.Errorf("a peer key of %d bytes, expected 16 or more: %w", len(o.PeerKey), ErrOption)
	case len(o.PeerKey) > 0 && !isHeaderValue(string(o.PeerKey)):
		return o, fmt.Errorf("the peer key is not printable ASCII: %w", ErrOption)
	}
	if err := o.checkSplit(); err != nil {
		return o, err
	}
	return o, o.checkSites()
}

// checkSplit checks what concerns components, sessions and shares.
func (o *Options) checkSplit() error {
	switch {
	case o.Internal != "" && o.Listen == "":
		return fmt.Errorf("an internal address without one for clients: %w", ErrOption)
	case !(o.ProbeLimit <= mostProbes):
		return fmt.Errorf("probes of %v of the requests, expected at most %v: %w", o.ProbeLimit, mostProbes, ErrOption)
	case o.Component == control.Outside || o.Component == control.Unnamed || !isHeaderValue(o.Component):
		return fmt.Errorf("component %.80q, expected printable ASCII, not %s or %s: %w", o.Component, control.Outside, control.Unnamed, ErrOption)
	}
	if o.Shares != nil && len(o.PeerKey) == 0 {
		for _, s := range o.Sites {
			if s.Name != o.Site && s.Peer != nil {
				return fmt.Errorf("shares of site %.80q, which would not believe what it is told: there is no peer key: %w", s.Name, ErrOption)
			}
		}
	}
	return o.checkSession()
}

func (o *Options) checkSites() error {
	seen := map[string]bool{}
	for _, s := range o.Sites {
		if s.Name == "" || !isHeaderValue(s.Name) || seen[s.Name] {
			return fmt.Errorf("site %q has no name, a bad one, or one that is taken: %w", s.Name, ErrOption)
		}
		seen[s.Name] = true
		if s.URL != "" && !isHeaderValue(s.URL) {
			return fmt.Errorf("url %q of site %s: %w", s.URL, s.Name, ErrOption)
		}
	}
	if !seen[o.Site] {
		return fmt.Errorf("site %q is not one of the sites: %w", o.Site, ErrOption)
	}
	switch name, named := strings.CutPrefix(o.Unknown, "site:"); {
	case named && !seen[name]:
		return fmt.Errorf("unknown owners go to site %q, which is not one of the sites: %w", name, ErrOption)
	case !named && o.Unknown != UnknownLocal && o.Unknown != UnknownFirst && o.Unknown != UnknownHash:
		return fmt.Errorf("unknown %q, expected %s, %s, %s or site:NAME: %w",
			o.Unknown, UnknownLocal, UnknownFirst, UnknownHash, ErrOption)
	}
	return nil
}

// isHeaderValue reports whether s is printable ASCII without spaces at its ends.
func isHeaderValue(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return strings.TrimSpace(s) == s
}

// nowhere knows no location.
type nowhere struct{}

func (nowhere) Locate(string) (site string, version uint64, known bool) { return "", 0, false }
func (nowhere) Learn(string, string, uint64)                            {}

// unpublished forgets rows, where none are wanted.
type unpublished struct{}

func (unpublished) Publish(*event.Request) {}
