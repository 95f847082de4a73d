package coder

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"penstock/consumers/executor/coder/catalog"
	"penstock/consumers/executor/coder/object"
)

// maxKey is the most bytes of a key, as S3 has it.
const maxKey = 1024

func checkKey(key string) error {
	if key == "" || len(key) > maxKey || !utf8.ValidString(key) {
		return fmt.Errorf("%w: key of %d bytes", ErrKey, len(key))
	}
	return nil
}

// Put stores an object and returns once durability has it. It returns ErrNoBucket,
// ErrKey, ErrHeaders, ErrPrecondition, ErrBody, ErrTooLarge, ErrBusy, ErrTooFew, and
// the errors of the body and of Verify; after any of them nothing is visible.
func (c *Coder) Put(ctx context.Context, in PutInput) (Object, error) {
	leave, err := c.enter()
	if err != nil {
		return Object{}, err
	}
	defer leave()
	return c.put(ctx, in, nil)
}

// put is Put, in memory that the caller may have taken already.
func (c *Coder) put(ctx context.Context, in PutInput, l *lease) (Object, error) {
	defer l.give()
	if err := checkKey(in.Key); err != nil {
		return Object{}, err
	}
	// What fails now would fail later; but later is what counts.
	if err := c.expected(in.Bucket, in.Key, in.Conditions); err != nil {
		return Object{}, err
	}
	o := Object{Bucket: in.Bucket, Key: in.Key, Headers: in.Headers, Metadata: in.Metadata}
	err := c.write(ctx, source{
		key: in.Key, body: in.Body, size: in.Size, lease: l,
		verify: o.verified(in.Verify),
		commit: func(ctx context.Context, v *object.Version, e ending) error {
			o.Version, o.Modified = v.ID, v.Time
			return c.catalog.Put(ctx, catalog.PutInput{
				Bucket: in.Bucket, Version: v, Intents: []string{e.intent}, Unwritten: e.unwritten, Rest: e.rest,
				If: condition(in.Conditions),
				Record: catalog.Record{
					Key: o.Key, Size: o.Size, ETag: o.ETag, Modified: o.Modified,
					Checksums: o.Checksums, Headers: o.Headers, Metadata: o.Metadata,
				},
			})
		},
	})
	if err != nil {
		return Object{}, catalogError(err)
	}
	c.kick()
	return o, c.synced(ctx)
}

// verified notes what was read of a body, and has it verified by f if there is one.
func (o *Object) verified(f func(*Object, Sums) error) func(size int64, s Sums) error {
	return func(size int64, s Sums) error {
		o.Size, o.ETag = size, hex.EncodeToString(s.MD5[:])
		if f == nil {
			return nil
		}
		return f(o, s)
	}
}

// expected asks the conditions of a write before its body is read, which saves reading
// it; they are asked again in the transaction.
func (c *Coder) expected(bucket, key string, q Conditions) error {
	if _, err := c.catalog.Bucket(bucket); err != nil {
		return catalogError(err)
	}
	f := condition(q)
	if f == nil {
		return nil
	}
	now, err := c.catalog.Get(bucket, key)
	switch {
	case errors.Is(err, catalog.ErrNoKey):
		return f(nil)
	case err != nil:
		return catalogError(err)
	}
	return f(&now)
}

// Delete removes an object; of conditions IfMatch counts. One that isn't there is no
// error. It returns ErrNoBucket and ErrPrecondition.
func (c *Coder) Delete(ctx context.Context, bucket, key string, q Conditions) error {
	leave, err := c.enter()
	if err != nil {
		return err
	}
	defer leave()
	if err := checkKey(key); err != nil {
		return err
	}
	was, err := c.catalog.Delete(ctx, bucket, key, condition(Conditions{IfMatch: q.IfMatch}))
	if err != nil || !was {
		return catalogError(err)
	}
	c.kick()
	return c.synced(ctx)
}

// Head tells of an object, of a part of it where Range.Part is set. It returns what
// Get does but ErrBusy and ErrTooFew.
func (c *Coder) Head(_ context.Context, in GetInput) (Object, error) {
	leave, err := c.enter()
	if err != nil {
		return Object{}, err
	}
	defer leave()
	r, err := c.catalog.Get(in.Bucket, in.Key)
	if err != nil {
		return Object{}, catalogError(err)
	}
	o := objectOf(in.Bucket, r)
	if err := in.Conditions.read(o.ETag, o.Modified); err != nil {
		return o, err
	}
	_, _, err = in.Range.In(&o)
	return o, err
}

func objectOf(bucket string, r catalog.Record) Object {
	o := Object{
		Bucket: bucket, Key: r.Key, Size: r.Size, ETag: r.ETag, Modified: r.Modified.UTC().Truncate(time.Microsecond),
		Headers: r.Headers, Metadata: r.Metadata, Checksums: r.Checksums,
	}
	for _, p := range r.Parts {
		o.Version = p.Version
		if p.Number > 0 {
			o.Parts = append(o.Parts, Piece{p.Number, p.Size})
		}
	}
	return o
}
