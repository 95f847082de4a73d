package coder

import (
	"context"
	"errors"
	"fmt"
	"time"

	"penstock/consumers/executor/coder/catalog"
	"penstock/consumers/executor/coder/object"
)

// CreateUpload begins a multipart upload. It returns ErrNoBucket, ErrKey and ErrHeaders.
func (c *Coder) CreateUpload(ctx context.Context, in UploadInput) (Upload, error) {
	leave, err := c.enter()
	if err != nil {
		return Upload{}, err
	}
	defer leave()
	if err := checkKey(in.Key); err != nil {
		return Upload{}, err
	}
	now := c.o.Clock.Now().UTC().Truncate(time.Microsecond)
	u := Upload{
		Bucket: in.Bucket, Key: in.Key, Created: now, Headers: in.Headers, Metadata: in.Metadata,
		Checksum: in.Checksum, Composite: in.Composite,
		// Ids ascend with time, so that uploads of a key are listed as S3 does.
		ID: fmt.Sprintf("%014x-%s", now.UnixMicro(), newID()),
	}
	if err := c.catalog.CreateUpload(ctx, u); err != nil {
		return Upload{}, catalogError(err)
	}
	return u, c.synced(ctx)
}

// PutPart stores a part. It returns ErrNoUpload, ErrPart and what Put does.
func (c *Coder) PutPart(ctx context.Context, in PartInput) (Part, error) {
	leave, err := c.enter()
	if err != nil {
		return Part{}, err
	}
	defer leave()
	return c.putPart(ctx, in, nil)
}

func (c *Coder) putPart(ctx context.Context, in PartInput, l *lease) (Part, error) {
	defer l.give()
	if in.Number < 1 || in.Number > MaxParts {
		return Part{}, fmt.Errorf("%w: number %d", ErrPart, in.Number)
	}
	if _, err := c.catalog.Upload(in.Bucket, in.Key, in.Upload); err != nil {
		return Part{}, catalogError(err)
	}
	o := Object{Bucket: in.Bucket, Key: in.Key}
	p := Part{Number: in.Number}
	err := c.write(ctx, source{
		key: in.Key, body: in.Body, size: in.Size, lease: l,
		verify: o.verified(in.Verify),
		commit: func(ctx context.Context, v *object.Version, e ending) error {
			p.Size, p.ETag, p.Modified, p.Checksums, p.Version = o.Size, o.ETag, v.Time, o.Checksums, v.ID
			return c.catalog.PutPart(ctx, catalog.PartInput{
				Bucket: in.Bucket, Key: in.Key, Upload: in.Upload, Part: p, Version: v,
				Intents: []string{e.intent}, Unwritten: e.unwritten, Rest: e.rest,
			})
		},
	})
	if err != nil {
		return Part{}, catalogError(err)
	}
	c.kick()
	return p, c.synced(ctx)
}

// Upload tells of an upload under way, or returns ErrNoUpload.
func (c *Coder) Upload(_ context.Context, bucket, key, id string) (Upload, error) {
	leave, err := c.enter()
	if err != nil {
		return Upload{}, err
	}
	defer leave()
	u, err := c.catalog.Upload(bucket, key, id)
	return u, catalogError(err)
}

// Parts lists at most limit parts of an upload with numbers above after; the bool tells
// that there are more. A limit of 0, or above 1000, stands for 1000.
func (c *Coder) Parts(_ context.Context, bucket, key, id string, after, limit int) ([]Part, bool, error) {
	leave, err := c.enter()
	if err != nil {
		return nil, false, err
	}
	defer leave()
	if limit <= 0 || limit > maxList {
		limit = maxList
	}
	list, more, err := c.catalog.Parts(bucket, key, id, after, limit)
	return list, more, catalogError(err)
}

// Uploads lists uploads under way by key and id; the bool tells that there are more.
func (c *Coder) Uploads(_ context.Context, in UploadsInput) ([]Upload, bool, error) {
	leave, err := c.enter()
	if err != nil {
		return nil, false, err
	}
	defer leave()
	most := in.Max
	if most <= 0 || most > maxList {
		most = maxList
	}
	page, err := c.catalog.ListUploads(catalog.ListUploadsInput{
		Bucket: in.Bucket, Prefix: in.Prefix, AfterKey: in.AfterKey, AfterID: in.AfterID, Max: most,
	})
	return page.Uploads, page.Truncated, catalogError(err)
}

// CompleteUpload makes the object. It returns ErrNoUpload, ErrPart, ErrPartOrder,
// ErrPartTooSmall and ErrPrecondition; the upload stays then.
func (c *Coder) CompleteUpload(ctx context.Context, in CompleteInput) (Object, error) {
	leave, err := c.enter()
	if err != nil {
		return Object{}, err
	}
	defer leave()
	r, err := c.catalog.CompleteUpload(ctx, catalog.CompleteInput{
		Bucket: in.Bucket, Key: in.Key, Upload: in.Upload, Parts: in.Parts, MinPart: MinPart,
		Modified: c.o.Clock.Now().UTC().Truncate(time.Microsecond), If: condition(in.Conditions),
		Finish: func(r *catalog.Record, parts []Part) error {
			if in.Verify == nil {
				return nil
			}
			o := objectOf(in.Bucket, *r)
			err := in.Verify(&o, parts)
			r.Checksums = o.Checksums
			return err
		},
	})
	if err != nil {
		return Object{}, catalogError(err)
	}
	c.kick()
	return objectOf(in.Bucket, r), c.synced(ctx)
}

// AbortUpload ends an upload; its parts are deleted. It returns ErrNoUpload.
func (c *Coder) AbortUpload(ctx context.Context, bucket, key, id string) error {
	leave, err := c.enter()
	if err != nil {
		return err
	}
	defer leave()
	if err := c.catalog.AbortUpload(ctx, bucket, key, id); err != nil {
		return catalogError(err)
	}
	c.kick()
	return c.synced(ctx)
}

// Copy reads an object and stores it under another key, coded anew. A copy onto itself
// with Replace changes headers and metadata only. It returns what Get and Put do.
func (c *Coder) Copy(ctx context.Context, in CopyInput) (Object, error) {
	leave, err := c.enter()
	if err != nil {
		return Object{}, err
	}
	defer leave()
	if in.Replace && in.FromBucket == in.To.Bucket && in.FromKey == in.To.Key {
		return c.amend(ctx, in)
	}
	from, l, err := c.source(ctx, GetInput{Bucket: in.FromBucket, Key: in.FromKey, Conditions: in.From})
	if err != nil {
		return Object{}, err
	}
	defer from.Close()
	to := in.To
	to.Body, to.Size = from, from.Length
	if !in.Replace {
		to.Headers, to.Metadata = from.Headers, from.Metadata
	}
	return c.put(ctx, to, l)
}

// source opens what is to be copied, and takes memory to write it, too. A condition that
// fails is ErrPrecondition, as S3 has it for copies.
func (c *Coder) source(ctx context.Context, in GetInput) (*Reader, *lease, error) {
	now, err := c.catalog.Get(in.Bucket, in.Key)
	if err != nil {
		return nil, nil, catalogError(err)
	}
	read, err := c.memory.take(ctx, c.code, now.Size, copying)
	if err != nil {
		return nil, nil, err
	}
	write := read.half()
	r, err := c.open(ctx, in, read)
	if err != nil {
		write.give()
		if errors.Is(err, ErrNotModified) {
			err = fmt.Errorf("%w: %w", ErrPrecondition, err)
		}
		return nil, nil, err
	}
	return r, write, nil
}

// amend is a copy of an object onto itself.
func (c *Coder) amend(ctx context.Context, in CopyInput) (Object, error) {
	r, err := c.catalog.Amend(ctx, in.To.Bucket, in.To.Key, func(r *catalog.Record) error {
		if err := in.From.read(r.ETag, r.Modified); err != nil {
			return fmt.Errorf("%w: %w", ErrPrecondition, err)
		}
		if f := condition(in.To.Conditions); f != nil {
			if err := f(r); err != nil {
				return err
			}
		}
		r.Headers, r.Metadata = in.To.Headers, in.To.Metadata
		r.Modified = c.o.Clock.Now().UTC().Truncate(time.Microsecond)
		return nil
	})
	if err != nil {
		return Object{}, catalogError(err)
	}
	return objectOf(in.To.Bucket, r), c.synced(ctx)
}

// CopyPart stores a range of an object as a part. Body and Size of the part are not
// looked at.
func (c *Coder) CopyPart(ctx context.Context, from GetInput, to PartInput) (Part, error) {
	leave, err := c.enter()
	if err != nil {
		return Part{}, err
	}
	defer leave()
	r, l, err := c.source(ctx, from)
	if err != nil {
		return Part{}, err
	}
	defer r.Close()
	to.Body, to.Size = r, r.Length
	return c.putPart(ctx, to, l)
}
