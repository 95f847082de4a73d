package objectstore

import (
	"context"
	"io"
)

// MaxOwner is the greatest length of an owner id in bytes (DESIGN §3).
const MaxOwner = 1024

// Store is one site's place for people's data.
//
// An owner is any string of 1 to MaxOwner bytes. Its data here is what List
// returns: objects named by slash-separated paths. Every method may be called by
// several goroutines at once, for the same owner too, and by several processes
// at once where Capabilities.Barrier says so.
//
// Methods that change data take the mark the copy must bear, as: the zero Mark
// means a copy that may be written to (unmarked or live, created if absent), any
// other must be borne exactly. Otherwise they return a *MarkedError and have done
// nothing. That is how a mover writes to a copy that is closed to writers.
type Store interface {
	// Capabilities says what the backend can promise. It does not change.
	Capabilities() Capabilities
	// Owners calls fn for every owner with a copy here, in no particular order.
	// It stops at fn's first error and returns it.
	Owners(ctx context.Context, fn func(owner string, m Mark) error) error
	// Stat returns the mark of the owner's copy: Absent if there is none,
	// Unmarked if it was never moved.
	Stat(ctx context.Context, owner string) (Mark, error)
	// List returns the objects of an owner, ascending by name, and the version of
	// the whole. An empty copy has no objects and a version. ErrNoOwner if there
	// is no copy.
	List(ctx context.Context, owner string) (Listing, error)
	// Open opens an object for reading, whatever the mark of the copy. A later
	// Put does not change what is being read; an append may lengthen it. The
	// caller closes the reader. ErrNoOwner, ErrNoObject.
	Open(ctx context.Context, owner, name string) (io.ReadCloser, error)
	// Digest returns the SHA-256 of an object's content in hex, computed from
	// what is stored. ErrNoOwner, ErrNoObject.
	Digest(ctx context.Context, owner, name string) (string, error)
	// Create makes an empty copy if there is none.
	Create(ctx context.Context, owner string, as Mark) error
	// Put creates or replaces one object with all that r yields. It is atomic:
	// readers see the old object or the new one. When it returns nil the object
	// is as durable as the store's options promise.
	Put(ctx context.Context, owner, name string, r io.Reader, as Mark) (Object, error)
	// Remove removes one object. Removing one that isn't there is no error.
	Remove(ctx context.Context, owner, name string, as Mark) error
	// Mark changes the mark of a copy from exactly one to another, or returns a
	// *MarkedError. From Absent it creates an empty copy. To Unmarked it takes the
	// mark off.
	Mark(ctx context.Context, owner string, from, to Mark) error
	// Delete removes the owner's copy, all objects and the mark, if it bears the
	// mark as. A copy that isn't there is no error. What was interrupted can be
	// repeated.
	Delete(ctx context.Context, owner string, as Mark) error
	// Hold keeps all writers off the owner's copy until the returned Held is
	// released, if its version is the given one, else it returns ErrChanged. An
	// empty version holds whatever is there. It waits for writes under way until
	// ctx ends. Reads go on. ErrNoOwner, ErrNoBarrier.
	Hold(ctx context.Context, owner, version string) (Held, error)
}

// Held is an owner's copy while writers are kept off it. It belongs to one
// goroutine. The Store's own writing methods would wait for its release: what is
// to be done inside stands here.
type Held interface {
	// Mark is Store.Mark.
	Mark(ctx context.Context, from, to Mark) error
	// Delete is Store.Delete. Only Release may follow.
	Delete(ctx context.Context, as Mark) error
	// Release lets writers in again. It may be called twice.
	Release()
}

// Capabilities is what a backend promises.
type Capabilities struct {
	// Barrier: Hold works, and every process that writes through this interface
	// respects it.
	Barrier bool
	// Durable: what a method has acknowledged survives a power cut.
	Durable bool
}

// Object is one object of an owner.
type Object struct {
	Name string
	Size int64 // bytes
	// Version changes with every change of the object's content. It means
	// nothing in another store.
	Version string
	// Digest is the SHA-256 of the content in hex where the store knows it
	// without reading the object, which Put always does; else empty.
	Digest string
}

// Listing is an owner's copy at one moment.
type Listing struct {
	Objects []Object
	Mark    Mark
	// Version changes whenever any object changes, comes or goes. It means
	// nothing in another store. Marks are no part of it.
	Version string
	Bytes   int64 // sum of sizes
}
