package coder

import (
	"context"
	"io"
)

// Coder stores objects. Its methods may be called by many goroutines.
type Coder struct{}

var _ io.ReadCloser = (*Reader)(nil)

type reading struct{}

// Read implements io.Reader.
func (r *Reader) Read([]byte) (int, error) { return 0, ErrClosed }

// Close ends the read and frees what it holds. It may be called twice.
func (r *Reader) Close() error { return nil }

// Open opens the catalog and looks who owns the stores. It returns ErrOptions, ErrOwner,
// and what catalog and stores say.
func Open(context.Context, Options) (*Coder, error) { return nil, ErrClosed }

// Run does the background work until ctx ends, and then returns nil; calls of other
// methods are served meanwhile. It returns ErrOwner when another state has taken over
// the stores.
func (c *Coder) Run(context.Context) error { return ErrClosed }

// Close ends all requests and gives the catalog back. It may be called twice.
func (c *Coder) Close() error { return nil }

// CreateBucket makes a bucket. It returns ErrBucketExists and ErrKey.
func (c *Coder) CreateBucket(context.Context, string) error { return ErrClosed }

// DeleteBucket removes an empty bucket. It returns ErrNoBucket and ErrBucketNotEmpty.
func (c *Coder) DeleteBucket(context.Context, string) error { return ErrClosed }

// Bucket tells of a bucket, or returns ErrNoBucket.
func (c *Coder) Bucket(context.Context, string) (Bucket, error) { return Bucket{}, ErrClosed }

// Buckets lists them by name.
func (c *Coder) Buckets(context.Context) ([]Bucket, error) { return nil, ErrClosed }

// Put stores an object and returns once durability has it. It returns ErrNoBucket,
// ErrKey, ErrHeaders, ErrPrecondition, ErrBody, ErrTooLarge, ErrBusy, ErrTooFew, and
// the errors of the body and of Verify; after any of them nothing is visible.
func (c *Coder) Put(context.Context, PutInput) (Object, error) { return Object{}, ErrClosed }

// Get opens an object. It returns ErrNoBucket, ErrNoKey, ErrPrecondition,
// ErrNotModified, ErrBadRange, ErrBusy and ErrTooFew; the latter two also come from
// Read. The reader keeps the version that it began with, whatever happens to the key.
func (c *Coder) Get(context.Context, GetInput) (*Reader, error) { return nil, ErrClosed }

// Head tells of an object, of a part of it where Range.Part is set. It returns what
// Get does but ErrBusy and ErrTooFew.
func (c *Coder) Head(context.Context, GetInput) (Object, error) { return Object{}, ErrClosed }

// Delete removes an object; of conditions IfMatch counts. One that isn't there is no
// error. It returns ErrNoBucket and ErrPrecondition.
func (c *Coder) Delete(context.Context, string, string, Conditions) error { return ErrClosed }

// List lists objects. It returns ErrNoBucket.
func (c *Coder) List(context.Context, ListInput) (Listing, error) { return Listing{}, ErrClosed }

// Copy reads an object and stores it under another key, coded anew. It returns what Get
// and Put do.
func (c *Coder) Copy(context.Context, CopyInput) (Object, error) { return Object{}, ErrClosed }

// CreateUpload begins a multipart upload. It returns ErrNoBucket, ErrKey and ErrHeaders.
func (c *Coder) CreateUpload(context.Context, UploadInput) (Upload, error) {
	return Upload{}, ErrClosed
}

// PutPart stores a part. It returns ErrNoUpload, ErrPart and what Put does.
func (c *Coder) PutPart(context.Context, PartInput) (Part, error) { return Part{}, ErrClosed }

// CopyPart stores a range of an object as a part. Body and Size of the part are not
// looked at.
func (c *Coder) CopyPart(context.Context, GetInput, PartInput) (Part, error) {
	return Part{}, ErrClosed
}

// Upload tells of an upload under way, or returns ErrNoUpload.
func (c *Coder) Upload(_ context.Context, _, _, _ string) (Upload, error) {
	return Upload{}, ErrClosed
}

// Parts lists at most limit parts of an upload with numbers above after.
func (c *Coder) Parts(_ context.Context, _, _, _ string, _, _ int) ([]Part, bool, error) {
	return nil, false, ErrClosed
}

// Uploads lists uploads under way by key and id; the bool tells that there are more.
func (c *Coder) Uploads(context.Context, UploadsInput) ([]Upload, bool, error) {
	return nil, false, ErrClosed
}

// CompleteUpload makes the object. It returns ErrNoUpload, ErrPart, ErrPartOrder,
// ErrPartTooSmall and ErrPrecondition; the upload stays then.
func (c *Coder) CompleteUpload(context.Context, CompleteInput) (Object, error) {
	return Object{}, ErrClosed
}

// AbortUpload ends an upload; its parts are deleted. It returns ErrNoUpload.
func (c *Coder) AbortUpload(_ context.Context, _, _, _ string) error { return ErrClosed }

// Scrub reads every strip of every version and says what is wrong; with Repair it makes
// it right. progress, if any, is told now and then from one goroutine.
func (c *Coder) Scrub(context.Context, ScrubOptions, func(Progress)) (Report, error) {
	return Report{}, ErrClosed
}

// Stats gives the figures of now.
func (c *Coder) Stats(context.Context) (Stats, error) { return Stats{}, ErrClosed }
