package manifest

import (
	"cmp"
	"time"

	"penstock/infra/clock"
)

// Options of a Store.
type Options struct {
	// Clock paces polling and leases, and stamps what is to be deleted. Defaults
	// to the machine's.
	Clock clock.Clock
	// Count is called with a reason whenever something is given up or done
	// behind the caller's back: "blob-left" (a leftover could not be deleted now),
	// "blob-collected", "sweep-failed", "lease-broken", "lease-lost", "lease-left"
	// (it lapses by itself), "conflict". Defaults to nothing.
	Count func(reason string, n int64)
	// Grace is how long a blob outlives the object that it was, so that readers
	// who opened it can read on. Defaults to 1 min.
	Grace time.Duration
	// Lease is how long writers wait for a holder that gives no sign of life.
	// Holders give one four times as often. Defaults to 2 s.
	Lease time.Duration
	// MaxDocument is the greatest size of an owner's document in bytes; an object
	// takes about 60 and its name. Defaults to 16 MiB.
	MaxDocument int
	// Orphan is how old a blob that no document names must be before it is taken
	// for a leftover of a crash. It bounds the time that a write may take.
	// Defaults to 24 h.
	Orphan time.Duration
	// Poll is the first pause of those who wait for a holder in another process;
	// it doubles up to 16 times that. Defaults to 2 ms.
	Poll time.Duration
	// Tries is how often a change is tried again when others come first. Defaults
	// to 100.
	Tries int
}

func (o *Options) complete() {
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	if o.Count == nil {
		o.Count = func(string, int64) {}
	}
	o.Grace = cmp.Or(o.Grace, time.Minute)
	o.Lease = cmp.Or(o.Lease, 2*time.Second)
	o.MaxDocument = cmp.Or(o.MaxDocument, 16<<20)
	o.Orphan = cmp.Or(o.Orphan, 24*time.Hour)
	o.Poll = cmp.Or(o.Poll, 2*time.Millisecond)
	o.Tries = cmp.Or(o.Tries, 100)
}
