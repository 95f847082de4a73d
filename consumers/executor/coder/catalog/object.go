package catalog

import (
	"context"
	"fmt"

	"penstock/consumers/executor/coder/object"
)

// PutInput makes a version the object of a key.
type PutInput struct {
	Bucket string
	// Record has all but Parts, which follow from Version.
	Record  Record
	Version *object.Version
	// Intents that end with it; the version's places are theirs. Places that the
	// version hasn't are queued for deletion, but for Unwritten: those to which no store
	// was asked to write.
	Intents   []string
	Unwritten []object.Place
	Rest      Rest
	If        Condition
}

// Put returns ErrNoBucket, ErrNoIntent, ErrPlace, ErrTaken, ErrInput, and what If says.
// It changed nothing then: the intents are open, see Abandon.
func (c *Catalog) Put(ctx context.Context, in PutInput) error {
	r := in.Record
	if err := r.validate(); err != nil {
		return err
	}
	doc, err := document(in.Version)
	if err != nil {
		return err
	}
	if in.Version.Shape.Size != r.Size {
		return fmt.Errorf("%w: version of %d bytes for an object of %d", ErrInput, in.Version.Shape.Size, r.Size)
	}
	r.Parts = []Piece{{Version: in.Version.ID, Size: r.Size}}
	return c.change(ctx, func(v *view) error {
		if err := v.replace(in.Bucket, r.Key, in.If); err != nil {
			return err
		}
		if err := v.addVersion(in.Version, doc, in.Intents, in.Unwritten, in.Rest); err != nil {
			return err
		}
		v.putRecord(in.Bucket, &r, true)
		return nil
	})
}

// replace asks the condition and makes room for a key's new record.
func (v *view) replace(bucket, key string, condition Condition) error {
	if err := v.bucket(bucket); err != nil {
		return err
	}
	now, err := v.record(bucket, key)
	if err != nil {
		return err
	}
	if condition != nil {
		if err := condition(now); err != nil {
			return err
		}
	}
	if now == nil {
		return nil
	}
	return v.dropParts(now)
}

// dropParts removes what a record refers to.
func (v *view) dropParts(r *Record) error {
	if len(r.Parts) > inlineParts {
		v.remove(manifests, []byte(r.Parts[0].Version))
	}
	for _, p := range r.Parts {
		if err := v.dropVersion(p.Version); err != nil {
			return fmt.Errorf("%s: %w", r.Key, err)
		}
	}
	return nil
}

// Delete removes a key and queues its blobs for deletion. It tells whether there was
// one, and returns ErrNoBucket and what condition says.
func (c *Catalog) Delete(ctx context.Context, bucket, key string, condition Condition) (was bool, err error) {
	err = c.change(ctx, func(v *view) error {
		row := join(bucket, key)
		was = v.get(records, row) != nil
		if err := v.replace(bucket, key, condition); err != nil {
			return err
		}
		if was {
			v.remove(records, row)
		}
		return nil
	})
	return was && err == nil, err
}

// Amend changes a record's headers, metadata, checksums, etag and time, and nothing of
// its bytes. It returns ErrNoBucket, ErrNoKey, ErrInput and change's error.
func (c *Catalog) Amend(ctx context.Context, bucket, key string, change func(*Record) error) (Record, error) {
	var amended Record
	err := c.change(ctx, func(v *view) error {
		now, err := v.existing(bucket, key)
		if err != nil {
			return err
		}
		r := *now
		if err := change(&r); err != nil {
			return err
		}
		r.Key, r.Size, r.Parts = now.Key, now.Size, now.Parts
		if err := r.validate(); err != nil {
			return err
		}
		v.putRecord(bucket, &r, false)
		amended = r
		return nil
	})
	return amended, err
}

// existing is the record of a key that must have one.
func (v *view) existing(bucket, key string) (*Record, error) {
	if err := v.bucket(bucket); err != nil {
		return nil, err
	}
	r, err := v.record(bucket, key)
	if err == nil && r == nil {
		err = fmt.Errorf("%w: %s/%s", ErrNoKey, bucket, key)
	}
	return r, err
}

// Get returns ErrNoBucket, ErrNoKey.
func (c *Catalog) Get(bucket, key string) (r Record, err error) {
	err = c.read(func(v *view) error {
		now, err := v.existing(bucket, key)
		if err == nil {
			r = *now
		}
		return err
	})
	return r, err
}
