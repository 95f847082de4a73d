package coder

import (
	"context"
	"errors"
	"fmt"
	"time"

	"penstock/consumers/executor/coder/catalog"
)

// catalogError says what the catalog's errors are to callers of the coder.
func catalogError(err error) error {
	if err == nil {
		return nil
	}
	for _, e := range [...]struct{ theirs, ours error }{
		{catalog.ErrNoBucket, ErrNoBucket},
		{catalog.ErrBucketExists, ErrBucketExists},
		{catalog.ErrBucketNotEmpty, ErrBucketNotEmpty},
		{catalog.ErrNoKey, ErrNoKey},
		{catalog.ErrNoUpload, ErrNoUpload},
		{catalog.ErrPart, ErrPart},
		{catalog.ErrPartOrder, ErrPartOrder},
		{catalog.ErrPartSize, ErrPartTooSmall},
		{catalog.ErrInput, ErrHeaders},
		{catalog.ErrClosed, ErrClosed},
	} {
		if errors.Is(err, e.theirs) {
			return fmt.Errorf("%w: %w", e.ours, err)
		}
	}
	return err
}

// CreateBucket makes a bucket. It returns ErrBucketExists and ErrKey.
func (c *Coder) CreateBucket(ctx context.Context, name string) error {
	leave, err := c.enter()
	if err != nil {
		return err
	}
	defer leave()
	if err := checkBucket(name); err != nil {
		return err
	}
	now := c.o.Clock.Now().UTC().Truncate(time.Microsecond)
	if err := c.catalog.CreateBucket(ctx, catalog.Bucket{Name: name, Created: now}); err != nil {
		return catalogError(err)
	}
	return c.synced(ctx)
}

// checkBucket holds names to the rules of S3 that keep them usable as hosts and paths.
func checkBucket(name string) error {
	ok := len(name) >= 3 && len(name) <= 63 && name[0] != '-' && name[0] != '.' &&
		name[len(name)-1] != '-' && name[len(name)-1] != '.'
	for i := range len(name) {
		b := name[i]
		ok = ok && (b >= 'a' && b <= 'z' || b >= '0' && b <= '9' || b == '-' || b == '.' && name[i-1] != '.')
		if !ok {
			break
		}
	}
	if !ok {
		return fmt.Errorf("%w: bucket %q", ErrKey, name)
	}
	return nil
}

// DeleteBucket removes an empty bucket. It returns ErrNoBucket and ErrBucketNotEmpty.
func (c *Coder) DeleteBucket(ctx context.Context, name string) error {
	leave, err := c.enter()
	if err != nil {
		return err
	}
	defer leave()
	if err := c.catalog.DeleteBucket(ctx, name); err != nil {
		return catalogError(err)
	}
	return c.synced(ctx)
}

// Bucket tells of a bucket, or returns ErrNoBucket.
func (c *Coder) Bucket(_ context.Context, name string) (Bucket, error) {
	leave, err := c.enter()
	if err != nil {
		return Bucket{}, err
	}
	defer leave()
	b, err := c.catalog.Bucket(name)
	return Bucket(b), catalogError(err)
}

// Buckets lists them by name.
func (c *Coder) Buckets(context.Context) ([]Bucket, error) {
	leave, err := c.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	var all []Bucket
	for after := ""; ; {
		list, err := c.catalog.Buckets("", after, maxList)
		if err != nil {
			return nil, catalogError(err)
		}
		for _, b := range list {
			all, after = append(all, Bucket(b)), b.Name
		}
		if len(list) < maxList {
			return all, nil
		}
	}
}

// maxList is the most entries of a page, as S3 has it.
const maxList = 1000

// List lists objects. It returns ErrNoBucket.
func (c *Coder) List(_ context.Context, in ListInput) (Listing, error) {
	leave, err := c.enter()
	if err != nil {
		return Listing{}, err
	}
	defer leave()
	most := in.Max
	if most <= 0 || most > maxList {
		most = maxList
	}
	page, err := c.catalog.List(catalog.ListInput{
		Bucket: in.Bucket, Prefix: in.Prefix, Delimiter: in.Delimiter, After: in.After, Max: most,
	})
	if err != nil {
		return Listing{}, catalogError(err)
	}
	out := Listing{Prefixes: page.Prefixes, More: page.Truncated, Next: page.Next}
	for _, r := range page.Records {
		out.Objects = append(out.Objects, Object{
			Bucket: in.Bucket, Key: r.Key, Size: r.Size, ETag: r.ETag, Modified: r.Modified, Checksums: r.Checksums,
		})
	}
	return out, nil
}
