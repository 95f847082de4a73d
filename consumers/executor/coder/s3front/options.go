package s3front

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"net"
	"time"

	"github.com/rs/zerolog"

	"penstock/consumers/executor/coder"
	"penstock/infra/address"
	"penstock/infra/clock"
)

// Defaults and limits.
const (
	defaultConnections = 512
	defaultIdle        = 30 * time.Second
	defaultRate        = 64 << 10
	defaultStop        = 10 * time.Second
	headerTimeout      = 10 * time.Second
	pauseTimeout       = 75 * time.Second // between requests of a connection
	// maxHeader is the most bytes of headers that S3 takes; beyond maxRead the request
	// isn't even read (431).
	maxHeader = 8 << 10
	maxRead   = 32 << 10
	// maxBody is the most bytes of a body that is a document of XML.
	maxBody = 8 << 20
)

// Options say what a front is.
type Options struct {
	// Coder has the objects. Needed.
	Coder *coder.Coder
	// Keys are who may come in. Needed.
	Keys Keys
	// Listen is host:port; port 0 takes a free one.
	Listen string
	// Region is the one that requests are signed for. Needed.
	Region string
	// TLS, if any, is how connections are secured; it has a certificate. Off loopback it
	// is needed, unless Public is set.
	TLS *tls.Config
	// Public lets the front listen off loopback without TLS: bodies can be read on the
	// way then, if not changed.
	Public bool

	// Connections is the most that are open at a time, others wait. Defaults to 512.
	Connections int
	// Idle is how long a client may send, or take, nothing in the middle of a body.
	// Defaults to 30 s.
	Idle time.Duration
	// Rate is the least bytes a second that a client sends, or takes, of a body. It may be
	// behind that by Idle: by as much time as it was waited for in excess of what the bytes
	// would have taken. Time that we need ourselves doesn't count. Defaults to 64 KiB.
	Rate int64
	// Stop is how long running requests may take after the end. Defaults to 10 s.
	Stop time.Duration

	// Observe, if any, is told each request when it has ended. It is called by many
	// goroutines and is quick.
	Observe func(Request)
	// Clock and Logger may be left out.
	Clock  clock.Clock
	Logger *zerolog.Logger
}

// Request is what is known of a request that has ended.
type Request struct {
	// Operation is S3's name, or the method of what is none.
	Operation   string
	Bucket, Key string
	// Access is the key that signed it; empty if none of ours did.
	Access string
	// Status is that of the answer, 0 if its client went away before it began or it was
	// cut off in the middle; Code is S3's name of an error.
	Status int
	Code   string
	// Received and Sent are bytes of bodies.
	Received, Sent int64
	Began          time.Time
	Took           time.Duration
}

// check returns ErrOptions, ErrDoor or nil, and fills in the defaults.
func (o *Options) check() error {
	host, _, err := net.SplitHostPort(o.Listen)
	switch {
	case err != nil:
		return fmt.Errorf("listen address %.80q, expected host:port: %w: %w", o.Listen, ErrOptions, err)
	case o.Coder == nil:
		return fmt.Errorf("%w: no coder", ErrOptions)
	case o.Region == "":
		return fmt.Errorf("%w: no region", ErrOptions)
	case o.Connections < 0 || o.Idle < 0 || o.Rate < 0 || o.Stop < 0:
		return fmt.Errorf("%w: negative limit", ErrOptions)
	}
	if o.TLS == nil && !o.Public && !address.IsLoopback(host) {
		return fmt.Errorf("listen address %q: %w", o.Listen, ErrDoor)
	}
	o.Connections = cmp.Or(o.Connections, defaultConnections)
	o.Idle = cmp.Or(o.Idle, defaultIdle)
	o.Rate = cmp.Or(o.Rate, defaultRate)
	o.Stop = cmp.Or(o.Stop, defaultStop)
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	if o.Logger == nil {
		nop := zerolog.Nop()
		o.Logger = &nop
	}
	return o.Keys.check()
}
