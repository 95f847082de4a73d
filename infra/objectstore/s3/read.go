package s3

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/minio/minio-go/v7"

	"penstock/infra/objectstore"
	"penstock/infra/objectstore/s3/wire"
)

// OpenBlob opens an object for reading. A reading that is cut off goes on where it
// was.
func (b *bucket) OpenBlob(ctx context.Context, owner, id string) (io.ReadCloser, error) {
	key, etag := b.layout.blob(owner, id)
	r := &reader{bucket: b, ctx: ctx, key: key, etag: etag, plain: etag != ""}
	if err := r.open(); err != nil {
		return nil, err
	}
	return r, nil
}

// reader is an object being read.
type reader struct {
	*bucket
	ctx   context.Context
	key   string
	etag  string // that of all that is read, once it is open
	plain bool   // and given by the document
	body  io.ReadCloser
	at    int64 // bytes read
	size  int64
	tries int // reopenings since the last byte
}

// open asks for the rest of the object.
func (r *reader) open() error {
	if r.body != nil {
		_ = r.body.Close()
		r.body = nil
	}
	var o minio.GetObjectOptions
	if r.etag != "" {
		if err := o.SetMatchETag(r.etag); err != nil {
			return fmt.Errorf("read object: %w", err)
		}
	}
	if r.at > 0 {
		if err := o.SetRange(r.at, 0); err != nil {
			return fmt.Errorf("read object: %w", err)
		}
	}
	err := r.wire.Send(r.ctx, "read object", func(ctx context.Context) error {
		body, info, _, err := r.wire.GetObject(ctx, r.o.Bucket, r.key, o)
		if err != nil {
			return err
		}
		if r.at == 0 {
			r.etag, r.size = info.ETag, info.Size
		} else if info.Size != r.size-r.at {
			// It sends all of it, from the beginning.
			return errors.Join(errRange, body.Close())
		}
		r.body = body
		return nil
	})
	switch wire.Classify(err) {
	case wire.Missing:
		return fmt.Errorf("object: %w", objectstore.ErrNoObject)
	case wire.Conflict:
		if r.plain {
			return fmt.Errorf("object: %w", ErrOverwritten)
		}
		return fmt.Errorf("object: %w: it is another one now", objectstore.ErrCorrupt)
	}
	return err
}

// Read reads on. It returns io.EOF only after all of the object.
func (r *reader) Read(p []byte) (int, error) {
	for {
		if r.body == nil {
			return 0, fmt.Errorf("read object: %w", errClosed)
		}
		if len(p) == 0 {
			return 0, nil
		}
		n, err := r.body.Read(p)
		r.at += int64(n)
		if n > 0 {
			r.tries = 0
			return n, nil // an error comes again
		}
		switch {
		case err == nil:
			continue
		case r.at == r.size, r.size < 0 && errors.Is(err, io.EOF):
			return 0, io.EOF
		case r.ctx.Err() != nil:
			return 0, fmt.Errorf("read object: %w", r.ctx.Err())
		case r.tries+1 >= r.o.Attempts:
			return 0, fmt.Errorf("read object at byte %d of %d: %w", r.at, r.size, r.wire.Safe(err))
		}
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err := r.wire.Rest(r.ctx, r.tries, err); err != nil {
			return 0, fmt.Errorf("read object: %w", err)
		}
		r.tries++
		r.o.Count("resumed", 1)
		if err := r.open(); err != nil {
			return 0, err
		}
	}
}

// Close ends the reading.
func (r *reader) Close() error {
	if r.body == nil {
		return nil
	}
	err := r.body.Close()
	r.body = nil
	return err
}
