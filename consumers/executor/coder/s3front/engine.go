package s3front

import (
	"context"
	"io"

	"penstock/consumers/executor/coder"
)

// engine is what storage needs of a coder.
type engine interface {
	CreateBucket(ctx context.Context, name string) error
	DeleteBucket(ctx context.Context, name string) error
	Bucket(ctx context.Context, name string) (coder.Bucket, error)
	Buckets(ctx context.Context) ([]coder.Bucket, error)

	Put(ctx context.Context, in coder.PutInput) (coder.Object, error)
	Head(ctx context.Context, in coder.GetInput) (coder.Object, error)
	Delete(ctx context.Context, bucket, key string, c coder.Conditions) error
	List(ctx context.Context, in coder.ListInput) (coder.Listing, error)
	Copy(ctx context.Context, in coder.CopyInput) (coder.Object, error)
	open(ctx context.Context, in coder.GetInput) (opened, error)

	CreateUpload(ctx context.Context, in coder.UploadInput) (coder.Upload, error)
	Upload(ctx context.Context, bucket, key, upload string) (coder.Upload, error)
	PutPart(ctx context.Context, in coder.PartInput) (coder.Part, error)
	CopyPart(ctx context.Context, from coder.GetInput, to coder.PartInput) (coder.Part, error)
	Parts(ctx context.Context, bucket, key, upload string, after, limit int) ([]coder.Part, bool, error)
	Uploads(ctx context.Context, in coder.UploadsInput) ([]coder.Upload, bool, error)
	CompleteUpload(ctx context.Context, in coder.CompleteInput) (coder.Object, error)
	AbortUpload(ctx context.Context, bucket, key, upload string) error
}

// opened is an object, or a range of it, that is being read.
type opened struct {
	io.ReadCloser

	object         coder.Object
	offset, length int64
}

// whole tells that all of the object is read.
func (o *opened) whole() bool { return o.length == o.object.Size }

// coded is a coder as an engine.
type coded struct{ *coder.Coder }

func (c coded) open(ctx context.Context, in coder.GetInput) (opened, error) {
	r, err := c.Get(ctx, in)
	if err != nil {
		return opened{}, err
	}
	return opened{ReadCloser: r, object: r.Object, offset: r.Offset, length: r.Length}, nil
}
