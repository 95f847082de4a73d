package catalog

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"penstock/consumers/executor/coder/field"
)

// Bucket is a bucket. Created is UTC in whole microseconds.
type Bucket struct {
	Name    string
	Created time.Time
}

// CreateBucket returns ErrBucketExists, ErrInput.
func (c *Catalog) CreateBucket(ctx context.Context, b Bucket) error {
	if err := checkName("bucket", b.Name, maxName); err != nil {
		return err
	}
	if err := checkTime(b.Created); err != nil {
		return err
	}
	return c.change(ctx, func(v *view) error {
		if v.get(buckets, []byte(b.Name)) != nil {
			return fmt.Errorf("%w: %s", ErrBucketExists, b.Name)
		}
		v.put(buckets, []byte(b.Name), field.AppendTime([]byte{valueFormat}, b.Created))
		return nil
	})
}

// DeleteBucket returns ErrNoBucket, ErrBucketNotEmpty.
func (c *Catalog) DeleteBucket(ctx context.Context, name string) error {
	return c.change(ctx, func(v *view) error {
		if err := v.bucket(name); err != nil {
			return err
		}
		within := join(name, "")
		for _, t := range [...]Table{records, uploads} {
			if key, _ := v.cursor(t).Seek(within); bytes.HasPrefix(key, within) {
				return fmt.Errorf("%w: %s", ErrBucketNotEmpty, name)
			}
		}
		v.remove(buckets, []byte(name))
		return nil
	})
}

// bucket returns ErrNoBucket unless there is one. A name that no bucket can have would
// make keys of another bucket's.
func (v *view) bucket(name string) error {
	if checkName("bucket", name, maxName) != nil || v.get(buckets, []byte(name)) == nil {
		return fmt.Errorf("%w: %s", ErrNoBucket, name)
	}
	return nil
}

func decodeBucket(name string, value []byte) (Bucket, error) {
	f := read(value)
	return Bucket{name, f.Time("created")}, f.end("bucket " + name)
}

// Bucket returns ErrNoBucket.
func (c *Catalog) Bucket(name string) (b Bucket, err error) {
	err = c.read(func(v *view) error {
		if err := v.bucket(name); err != nil {
			return err
		}
		b, err = decodeBucket(name, v.get(buckets, []byte(name)))
		return err
	})
	return b, err
}

// Buckets lists up to limit buckets whose names begin with prefix and come after
// another, by name.
func (c *Catalog) Buckets(prefix, after string, limit int) (list []Bucket, err error) {
	err = c.read(func(v *view) error {
		cursor := v.cursor(buckets)
		for name, value := cursor.Seek([]byte(max(prefix, after))); name != nil && len(list) < limit; name, value = cursor.Next() {
			if !strings.HasPrefix(string(name), prefix) {
				break
			}
			if string(name) == after {
				continue
			}
			b, err := decodeBucket(string(name), value)
			if err != nil {
				return err
			}
			list = append(list, b)
		}
		return nil
	})
	return list, err
}
