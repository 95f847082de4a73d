package catalog

import (
	"bytes"
	"context"
	"time"

	"penstock/consumers/executor/coder/field"
	"penstock/consumers/executor/coder/object"
)

// Repeat is a blob that was deleted and is to be deleted once more, since its store may
// have carried out a request to write it after the one to delete it.
type Repeat struct {
	Place object.Place
	// Version is the id of the version or intent that the blob was of.
	Version string
	// Due is from when on the second deletion is the last word.
	Due time.Time
}

func (r *Repeat) encode() []byte {
	return field.AppendText(field.AppendTime([]byte{valueFormat}, r.Due), r.Version)
}

func decodeRepeat(key, value []byte) (Repeat, error) {
	var r Repeat
	f := read(value)
	r.Due, r.Version = f.Time("due"), f.Text("version", maxID)
	var ok bool
	if r.Place.Store, r.Place.Key, ok = cut(key); !ok {
		f.Fail("key without a store")
	}
	return r, f.end("repeat")
}

// Again takes blobs out of the queue for deletion that were deleted and may yet come: they
// are to be deleted once more when due. Those that aren't queued are passed over.
func (c *Catalog) Again(ctx context.Context, due time.Time, places ...object.Place) error {
	if err := checkTime(due); err != nil {
		return err
	}
	return c.change(ctx, func(v *view) error {
		for _, p := range places {
			key := deletionKey(p)
			value := v.get(deletes, key)
			if value == nil {
				continue
			}
			d, err := decodeDeletion(key, value)
			if err != nil {
				return err
			}
			r := Repeat{p, d.Version, micros(due)}
			v.remove(deletes, key)
			v.put(repeats, key, r.encode())
		}
		return nil
	})
}

// Repeats lists up to limit blobs of a store, with keys after another, that are due for their
// second deletion. next is the key to go on after, empty at the end; first is when the first
// of those that were passed over is due, zero if none was. It returns ErrInput for a store
// without a name.
func (c *Catalog) Repeats(store, after string, now time.Time, limit int) (list []Repeat, next string, first time.Time, err error) {
	if err := checkName("store", store, maxStore); err != nil || limit <= 0 {
		return nil, "", first, err
	}
	within, start := join(store, ""), join(store, after)
	seen := 0
	err = c.read(func(v *view) error {
		cursor := v.cursor(repeats)
		for key, value := cursor.Seek(start); bytes.HasPrefix(key, within); key, value = cursor.Next() {
			if bytes.Equal(key, start) {
				continue
			}
			if seen++; len(list) == limit || seen > passMost {
				next = after
				return nil
			}
			r, err := decodeRepeat(key, value)
			if err != nil {
				return err
			}
			after = r.Place.Key
			switch {
			case !r.Due.After(now):
				list = append(list, r)
			case first.IsZero() || r.Due.Before(first):
				first = r.Due
			}
		}
		return nil
	})
	return list, next, first, err
}

// Repeated says that blobs were deleted once more. Those that weren't to be are passed over.
func (c *Catalog) Repeated(ctx context.Context, places ...object.Place) error {
	return c.change(ctx, func(v *view) error {
		for _, p := range places {
			if key := deletionKey(p); v.get(repeats, key) != nil {
				v.remove(repeats, key)
			}
		}
		return nil
	})
}
