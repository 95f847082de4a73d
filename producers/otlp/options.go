package otlp

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"penstock/infra/clock"
	"penstock/producers/otlp/join"
	"penstock/producers/otlp/span"
	"penstock/schemas/event"
)

// Publisher takes the calls; a live *publisher.Publisher is one. Publish never
// waits and keeps nothing of the row.
type Publisher interface {
	Publish(r *event.Request)
}

// Options of a Receiver. Publisher and at least one listener are needed.
type Options struct {
	// Clock says when traces have been quiet. Defaults to the system's.
	Clock clock.Clock
	// CloseTimeout is how long requests under way may take at the end. Defaults to
	// 5 s.
	CloseTimeout time.Duration
	// Concurrency is how many requests are decoded at a time. Defaults to 32.
	Concurrency int
	// Connections bounds those of each listener. Defaults to 1,024.
	Connections int
	// Entries says which roots are calls from outside.
	Entries join.Entries
	// GRPC and HTTP are where to listen (usually ports 4317 and 4318); either may be
	// nil. They are closed by Run.
	GRPC, HTTP net.Listener
	// Logger gets what an operator should see.
	Logger zerolog.Logger
	// MaxAge is how long a trace is open at most: a longer one is cut, and calls at the
	// cut may lose a half. Defaults to 10 times Window.
	MaxAge time.Duration
	// MaxBody bounds a request, unpacked, in bytes. Defaults to 16 MB.
	MaxBody int64
	// MaxSpans bounds the spans of open traces. Defaults to 262,144: about 80 MB.
	MaxSpans int
	// Peers are the gRPC addresses of all receivers that share traces, this one
	// (Self) included: the halves of a call meet wherever they arrive. Every receiver
	// must have the same list, in any order. None shares nothing.
	Peers []string
	// PeerDial are options of the connections to them. Defaults to no encryption.
	PeerDial []grpc.DialOption
	// Publisher takes the calls.
	Publisher Publisher
	// QueueMax bounds the spans that wait to be joined. Defaults to 65,536.
	QueueMax int
	// Registerer, if set, gets the counters.
	Registerer prometheus.Registerer
	// Rules for attributes.
	Rules span.Rules
	// Self is this receiver's name among Peers.
	Self string
	// Service says what goes to service_us.
	Service join.Service
	// TLS, if set, secures both listeners.
	TLS *tls.Config
	// Token must be sent by clients and peers as "Authorization: Bearer TOKEN"; off
	// loopback it has 16 bytes or more. Empty takes spans from all, on loopback only.
	Token string
	// Window is how long after its end a call waits for its other half. Defaults to
	// 6 s: exporters send what ended in the last 5 s.
	Window time.Duration
}

// Delay is by how much calls are published after they ended, at most, if they are
// exported within Window by clocks that agree: what the publisher's Disorder must be.
// Those of others are late.
func (o Options) Delay() time.Duration {
	o.times()
	return o.Window + slack
}

// slack is what a call may be made after its time: three ticks, and what the machine
// keeps the receiver waiting.
const slack = time.Second

func (o *Options) times() {
	o.Window = cmp.Or(o.Window, 6*time.Second)
	o.MaxAge = cmp.Or(o.MaxAge, 10*o.Window)
}

// tick is how often traces are looked at.
func (o *Options) tick() time.Duration {
	return min(max(o.Window/40, 10*time.Millisecond), 100*time.Millisecond)
}

func (o *Options) complete() error {
	if o.Publisher == nil || o.GRPC == nil && o.HTTP == nil {
		return fmt.Errorf("a publisher and a listener are needed: %w", ErrOptions)
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	if o.PeerDial == nil {
		o.PeerDial = []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}
	}
	if len(o.Peers) > 0 && o.GRPC == nil {
		return fmt.Errorf("who shares traces needs a listener for gRPC: %w", ErrOptions)
	}
	o.times()
	o.CloseTimeout = cmp.Or(o.CloseTimeout, 5*time.Second)
	o.Concurrency = cmp.Or(o.Concurrency, 32)
	o.Connections = cmp.Or(o.Connections, 1024)
	o.MaxBody = cmp.Or(o.MaxBody, 16<<20)
	o.MaxSpans = cmp.Or(o.MaxSpans, 1<<18)
	o.QueueMax = cmp.Or(o.QueueMax, 1<<16)
	for _, f := range [...]struct {
		name string
		v    int64
	}{
		{"CloseTimeout", int64(o.CloseTimeout)},
		{"Concurrency", int64(o.Concurrency)},
		{"Connections", int64(o.Connections)},
		{"MaxAge", int64(o.MaxAge)},
		{"MaxBody", o.MaxBody},
		{"MaxSpans", int64(o.MaxSpans)},
		{"QueueMax", int64(o.QueueMax)},
		{"Window", int64(o.Window)},
	} {
		if f.v < 1 {
			return fmt.Errorf("%s is %d, expected more than 0: %w", f.name, f.v, ErrOptions)
		}
	}
	if o.MaxBody > 1<<30 {
		return fmt.Errorf("MaxBody is %d, expected at most 1 GB: %w", o.MaxBody, ErrOptions)
	}
	return nil
}
