package serverswitch

import "context"

// Server is one that is turned on and off.
type Server struct {
	// Name as in tables: unique in its site.
	Name string
	// Site is the scope of the tables that name it.
	Site string
	// Zone of the site; for hooks.
	Zone string
	// URL at which it serves: http or https.
	URL string
	// Backend turns it on and off. Needed; None for one that always is as it is wanted.
	Backend Backend
}

// Order is to turn a server on or off.
type Order struct {
	Server Server
	On     bool
	// Epoch is that of the table that wants it; 0: the default after a ttl.
	Epoch uint64
	// Key is the same for all tries of one switch, also after a crash, and another for
	// each later switch.
	Key string
	// Up returns the names of the site's servers that are to run once the order is carried
	// out, sorted, as things stand when it is called: those wanted on, and those that
	// aren't stopped yet.
	Up func() []string
	// Wanted returns those of them that are wanted on.
	Wanted func() []string
}

// Power is whether a server runs.
type Power uint8

// The powers. Unseen is what a backend says that can't tell.
const (
	Unseen Power = iota
	PowerOff
	PowerOn
)

// String is the power's name.
func (p Power) String() string {
	return [...]string{"unseen", "off", "on"}[min(p, PowerOn)]
}

// Backend turns servers on and off. It is called from several goroutines, for one server
// by one at a time. What ctx bounds, it gives up when ctx ends, and leaves nothing running.
type Backend interface {
	// Name in states and counts.
	Name() string
	// Switch carries an order out and returns when it is known to be; it must be
	// idempotent: a server that is as ordered stays so, without an error. ErrLater, wrapped,
	// is no failure: the order is repeated soon.
	Switch(ctx context.Context, o Order) error
	// Observe says what the server is; Unseen if that can't be told. An error says
	// nothing about the server.
	Observe(ctx context.Context, s Server) (Power, error)
}

// Drainer is a Backend that itself gives servers requests.
type Drainer interface {
	// Drain has a server get no new requests. It goes on with those that it has.
	Drain(ctx context.Context, s Server) error
	// Undrain takes Drain back.
	Undrain(ctx context.Context, s Server) error
	// Running is how many requests it has.
	Running(ctx context.Context, s Server) (int, error)
}

// None is the backend of servers that nobody turns on and off.
type None struct{}

// Name is none.
func (None) Name() string { return "none" }

// Switch does nothing.
func (None) Switch(context.Context, Order) error { return nil }

// Observe can't tell.
func (None) Observe(context.Context, Server) (Power, error) { return Unseen, nil }
