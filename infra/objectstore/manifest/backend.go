package manifest

import (
	"context"
	"io"
	"time"

	"penstock/infra/objectstore"
)

// Backend is what a Store needs of the place that it keeps data in: one small
// document an owner with compare-and-set, and blobs that never change. All
// methods may be called by several goroutines at once. Owners are what callers
// of the Store name: any 1 to objectstore.MaxOwner bytes; the backend encodes
// them. Ids of blobs are 1 to 64 bytes of [A-Za-z0-9_-], except those that Plain
// gave, which come back as they were given.
//
// When ctx ends a method returns soon, with an error that wraps ctx.Err().
type Backend interface {
	// Get returns an owner's document and its revision, which is never empty.
	// objectstore.ErrNoOwner if there is none. It should answer with no less than
	// was there when it was called. One that lags behind costs no write, since the
	// Set that relies on it is refused, but it may refuse what would be possible
	// by now.
	Get(ctx context.Context, owner string) (body []byte, revision string, err error)
	// Set writes an owner's document if its revision is the given one, or, when
	// that is empty, if there is none, and returns the next revision. Revisions
	// of an owner never repeat. ErrConflict: the revision is another, and this
	// call wrote nothing, unless it sends its request again by itself and an
	// earlier one was heard. Any other error: nobody knows; the document may be
	// written, or may be written later if nobody else does first. The Store finds
	// out.
	Set(ctx context.Context, owner string, body []byte, revision string) (next string, err error)
	// Owners calls fn for every owner with a document or with plain objects, in
	// no particular order, each once; one that is written to meanwhile may come
	// twice. It stops at fn's first error and returns it. fn may call other
	// methods.
	Owners(ctx context.Context, fn func(owner string) error) error
	// PutBlob stores all that r yields under a fresh id, without holding it all
	// in memory, and returns the number of bytes. When it has returned nil the
	// blob can be opened by everybody and is durable as far as Capabilities
	// says. After an error, r's among them, which it wraps, part of it may be
	// left; Blobs lists that.
	PutBlob(ctx context.Context, owner, id string, r io.Reader) (size int64, err error)
	// OpenBlob opens a blob for reading. objectstore.ErrNoObject if it isn't
	// there. The reader ends in an error, not in io.EOF, if the blob is deleted
	// meanwhile and not all of it can be had. It may use ctx until it is closed.
	OpenBlob(ctx context.Context, owner, id string) (io.ReadCloser, error)
	// DeleteBlob deletes a blob, whole or partial. One that isn't there is no
	// error.
	DeleteBlob(ctx context.Context, owner, id string) error
	// Blobs calls fn for every blob that PutBlob made of an owner, partial ones
	// too, but for none of Plain's, with the time of its last change as the place
	// knows it. It stops at fn's first error and returns it.
	Blobs(ctx context.Context, owner string, fn func(id string, modified time.Time) error) error
	// Plain calls fn for every object of an owner that was there before Penstock:
	// its name, the id by which OpenBlob and DeleteBlob know it, its size, and a
	// version that changes with its content. A Store calls it for owners that
	// have no document. What it lists becomes the owner's data as it lies, and is
	// deleted with it; a backend does not list what it can't tell an owner and a
	// name of. Nil without calling fn if there is no such thing.
	Plain(ctx context.Context, owner string, fn func(name, id string, size int64, version string) error) error
	// Capabilities says whether Set compares (Barrier), and whether what was
	// acknowledged survives a power cut (Durable). Without Barrier the Store
	// offers no Hold.
	Capabilities() objectstore.Capabilities
}
