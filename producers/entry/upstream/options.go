package upstream

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"penstock/infra/clock"
)

// Server is one server of a pool.
type Server struct {
	// Name is how events and metrics call it; host:port of the URL by default.
	Name string
	// URL is http://HOST[:PORT] or https://HOST[:PORT], without a path.
	URL string
	// Weight is its share beside the others' weights, 1 by default.
	Weight int
	// Drain keeps new requests from it; running ones finish.
	Drain bool
	// Prove keeps new requests from it until a probe has succeeded: it may only be
	// starting. It counts for a server that was not on the list or drained before, in
	// a pool with a Dispatcher. Where there is no Health.Path to be asked for, to take a
	// connection is enough. If no other server can be used it is used unproven.
	Prove bool
}

// Options of a pool. The zero value of a field is its default.
type Options struct {
	// Buffer is the largest body of a request that is held in memory before it is
	// sent, in bytes. Defaults to 64 KiB, which is also the most: what sockets take
	// at once, so that an answer never has to wait for a body to be taken.
	Buffer int64
	// Clock paces health and measures attempts. Defaults to the system's. Sockets
	// go by the system's clock whatever this one says.
	Clock clock.Clock
	// Dispatcher, if set, admits each attempt to a server, in the place of Picker.
	Dispatcher Dispatcher
	// H2 speaks HTTP/2 to the servers: over TLS for https, with prior knowledge
	// for http.
	H2 bool
	// HeadLimit is the largest head of an answer, 1xx ones included, in bytes.
	// Defaults to 64 KiB.
	HeadLimit int64
	// Health says when a server is taken out of use and put back.
	Health Health
	// Logger is told of changes of health.
	Logger zerolog.Logger
	// MaxConns is how many connections to one server may be open on the fast path;
	// 0 is no limit. A request beyond it waits for Timeouts.Queue.
	MaxConns int
	// MaxIdle is how many connections to one server are kept idle. Defaults to
	// 1,024.
	MaxIdle int
	// Name of the site or peer, for metrics and the log.
	Name string
	// Picker chooses a server. Defaults to the least outstanding requests by weight.
	Picker Picker
	// Registerer, if set, gets the metrics.
	Registerer prometheus.Registerer
	// Retry says how often a request is sent again.
	Retry Retry
	// Servers at the start; Set changes them. May be empty.
	Servers []Server
	// TLS is used for https servers; ServerName is set from the URL if empty.
	TLS *tls.Config
	// Timeouts of the servers.
	Timeouts Timeouts
}

// Timeouts of a pool. 0 is the default, negative is none.
type Timeouts struct {
	// Connect is for making a connection, TLS included. Defaults to 2 s.
	Connect time.Duration
	// Header is from the request to the head of its answer. If the server does
	// not even take the request in that time, an answer is waited for 1 s more. Defaults to 60 s, and
	// may take an eighth longer.
	Header time.Duration
	// Idle is how long an unused connection is kept. Defaults to 60 s.
	Idle time.Duration
	// Queue is for waiting for a connection under MaxConns. Defaults to 5 s.
	Queue time.Duration
	// Silence is the longest pause in the body of an answer. Defaults to 5 min, and
	// may take an eighth longer.
	Silence time.Duration
}

// Health says when a server is taken out of use. The zero value of a field is
// its default.
type Health struct {
	// Down is how many probes in a row have to fail. Defaults to 3.
	Down int
	// Eject is how long a server is taken out of use for failures of requests. It
	// doubles each time it happens again soon, up to 32 times. Defaults to 10 s.
	Eject time.Duration
	// Failures is how many requests in a row have to fail. Defaults to 5; negative
	// is never.
	Failures int
	// Interval of probes. Defaults to 5 s.
	Interval time.Duration
	// MaxEjected is the greatest share of servers out of use, 0 to 1, without those that
	// take no connections. Defaults to 0.5; negative takes none out.
	MaxEjected float64
	// Path is what probes GET; an answer of 200 to 399 is a success. Empty: no
	// probes.
	Path string
	// Timeout of a probe. Defaults to 1 s.
	Timeout time.Duration
	// Up is how many probes in a row, or requests of a server that the cap keeps
	// in use, have to succeed. Defaults to 2.
	Up int
}

// Retry says how often a request is sent again.
type Retry struct {
	// Attempts is the most attempts for one request, the first included. Defaults
	// to 2; 1 is no retry.
	Attempts int
	// Budget is the share of the requests of the last 10 s that may be sent again.
	// Defaults to 0.2; negative is none but Least.
	Budget float64
	// Least is how many may be sent again a second however few requests there are.
	// Defaults to 3; negative is none.
	Least float64
	// Statuses are answers that are a failure of the server. Default: 502, 503, 504.
	Statuses []int
}

// MaxBuffer is the most that Options.Buffer may be, in bytes.
const MaxBuffer = 64 << 10

func orTime(v, def time.Duration) time.Duration {
	if v < 0 {
		return 0
	}
	return cmp.Or(v, def)
}

// withDefaults fills in what is zero and checks the rest.
func (o Options) withDefaults() (Options, error) {
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	if o.Picker == nil {
		o.Picker = &LeastOutstanding{}
	}
	o.Buffer = cmp.Or(o.Buffer, MaxBuffer)
	o.HeadLimit = cmp.Or(o.HeadLimit, 64<<10)
	o.MaxIdle = cmp.Or(o.MaxIdle, 1024)
	t := &o.Timeouts
	t.Connect, t.Header, t.Idle = orTime(t.Connect, 2*time.Second), orTime(t.Header, time.Minute), orTime(t.Idle, time.Minute)
	t.Queue, t.Silence = orTime(t.Queue, 5*time.Second), orTime(t.Silence, 5*time.Minute)
	o.Health = o.Health.withDefaults()
	r := &o.Retry
	r.Attempts = cmp.Or(r.Attempts, 2)
	r.Budget = max(cmp.Or(r.Budget, 0.2), 0)
	r.Least = max(cmp.Or(r.Least, 3), 0)
	if r.Statuses == nil {
		r.Statuses = []int{502, 503, 504}
	}
	switch {
	case o.Buffer < 0 || o.HeadLimit < 0 || o.MaxIdle < 0 || o.MaxConns < 0 || r.Attempts < 0:
		return o, fmt.Errorf("%w: a negative limit", ErrConfig)
	case o.Buffer > MaxBuffer:
		return o, fmt.Errorf("%w: a buffer of more than %d bytes", ErrConfig, MaxBuffer)
	case o.Health.MaxEjected > 1 || r.Budget > 1:
		return o, fmt.Errorf("%w: a share above 1", ErrConfig)
	case o.Health.Path != "" && o.Health.Path[0] != '/':
		return o, fmt.Errorf("%w: path of probes %q does not begin with /", ErrConfig, o.Health.Path)
	}
	return o, nil
}

func (h Health) withDefaults() Health {
	h.Down, h.Up = max(cmp.Or(h.Down, 3), 1), max(cmp.Or(h.Up, 2), 1)
	h.Failures = max(cmp.Or(h.Failures, 5), 0)
	h.Eject = orTime(h.Eject, 10*time.Second)
	h.Interval, h.Timeout = orTime(h.Interval, 5*time.Second), orTime(h.Timeout, time.Second)
	h.MaxEjected = max(cmp.Or(h.MaxEjected, 0.5), 0)
	return h
}

// parseServer checks a server and returns its name, scheme and address to dial.
func parseServer(s Server) (Server, *url.URL, string, error) {
	u, err := url.Parse(s.URL)
	if err != nil {
		return s, nil, "", fmt.Errorf("%w: server %q: %w", ErrConfig, s.Name, err)
	}
	port := u.Port()
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return s, nil, "", fmt.Errorf("%w: server %q: want http:// or https://", ErrConfig, s.URL)
	case u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Path != "" && u.Path != "/":
		return s, nil, "", fmt.Errorf("%w: server %q: want a scheme, a host and a port only", ErrConfig, s.URL)
	case s.Weight < 0:
		return s, nil, "", fmt.Errorf("%w: server %q: negative weight", ErrConfig, s.URL)
	case port == "" && u.Scheme == "https":
		port = "443"
	case port == "":
		port = "80"
	}
	s.Weight = min(cmp.Or(s.Weight, 1), maxWeight)
	s.Name = cmp.Or(s.Name, u.Host)
	return s, u, net.JoinHostPort(u.Hostname(), port), nil
}

// failedStatus reports whether an answer is a failure of the server.
func (r *Retry) failedStatus(code int) bool {
	return code >= 400 && slices.Contains(r.Statuses, code)
}
