package router

import (
	"context"

	"penstock/infra/shares"
)

// Carrier is a Target that carries the calls of some links only, as a proxy does. A
// Target that is none carries those of all.
type Carrier interface {
	// Carries says whether the target carries calls of a link. It is the same as long
	// as the target lives.
	Carries(l shares.Link) bool
}

// Target is something that splits requests by tables: a router in a process, a
// proxy. Its methods are called from several goroutines at once, those that
// change something for one calling component one after another.
//
// Weights follow places: a Keeper asks Ready for every replica whose share is to
// rise before it calls Put (DESIGN §3.3: data placed → target ready → weight
// shifted).
type Target interface {
	// Name is the target in outcomes.
	Name() string
	// Ready is nil if a replica is placed and can take requests now. ErrNotReady if
	// it can't now, shares.ErrAbsent if nothing of it is known, ErrUnreachable if
	// the target can't be asked.
	Ready(ctx context.Context, r shares.Replica) error
	// Put brings a table into force, and nothing else: what is not of the table's
	// calling component stays as it is; rows of links that a Carrier doesn't carry are
	// left to others. changes is how much had to be changed; 0 if
	// the table is in force already, so that Put again and again keeps it there. An
	// error rejects the table and what was in force stays, unless it wraps
	// executor.ErrAgain: then nothing is known of it and it is to be put again.
	//
	// Probes of a table are orders to who sends requests of its own. A target that
	// can't (a proxy splits those that come, and sends none) takes the table and
	// ignores its probes: other probes alone are no change to it.
	Put(ctx context.Context, t shares.Table) (changes int, err error)
	// Clear takes the table of a calling component out of force: what the target
	// does without one is its own configuration's.
	Clear(ctx context.Context, from string) error
	// Observe returns the shares that the target shows for a calling component,
	// whatever it was told, to its resolution. No rows if it has none.
	Observe(ctx context.Context, from string) ([]shares.Row, error)
	// Drain gives a replica no new requests, whatever its share, and waits until
	// none is running there. When ctx ends before, the replica stays out, running
	// requests go on, and their number is returned with shares.ErrRemaining. After a
	// failure it is called again to wait on.
	Drain(ctx context.Context, r shares.Replica) (remaining int, err error)
	// Undrain gives a drained replica requests again, by its share.
	Undrain(ctx context.Context, r shares.Replica) error
}
