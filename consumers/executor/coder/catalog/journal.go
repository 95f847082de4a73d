package catalog

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"penstock/consumers/executor/coder/object"
)

// Begin opens an intent. It returns ErrTaken, ErrPlace, ErrInput.
func (c *Catalog) Begin(ctx context.Context, i Intent) error {
	if err := i.validate(); err != nil {
		return err
	}
	value := i.encode()
	return c.change(ctx, func(v *view) error {
		if v.get(intents, []byte(i.ID)) != nil {
			return fmt.Errorf("%w: intent %s", ErrTaken, i.ID)
		}
		for _, p := range i.Places {
			if by, taken := v.c.claimed[p]; taken {
				return fmt.Errorf("%w: %s/%s is of intent %s", ErrPlace, p.Store, p.Key, by)
			}
			if v.get(deletes, deletionKey(p)) != nil {
				return fmt.Errorf("%w: %s/%s is queued for deletion", ErrPlace, p.Store, p.Key)
			}
			if v.get(repeats, deletionKey(p)) != nil {
				return fmt.Errorf("%w: %s/%s is to be deleted once more", ErrPlace, p.Store, p.Key)
			}
		}
		// Places of versions aren't indexed. The likeliest mistake is found: to name
		// those that the version has already, which Abandon would delete.
		if v.get(versions, []byte(i.ID)) != nil {
			version, _, err := v.version(i.ID)
			if err != nil {
				return err
			}
			for _, p := range i.Places {
				if slices.Contains(version.Places, p) {
					return fmt.Errorf("%w: %s/%s is of version %s", ErrPlace, p.Store, p.Key, i.ID)
				}
			}
		}
		v.put(intents, []byte(i.ID), value)
		return nil
	})
}

// Abandon ends intents and queues their places for deletion. Those that aren't open
// are passed over. Call it when nothing writes these blobs any more.
func (c *Catalog) Abandon(ctx context.Context, ids ...string) error {
	return c.change(ctx, func(v *view) error {
		var open []string
		for _, id := range ids {
			if id != "" && v.get(intents, []byte(id)) != nil && !slices.Contains(open, id) {
				open = append(open, id)
			}
		}
		return v.endIntents(open, nil, nil)
	})
}

// Forget ends intents to whose places no store was asked to write: nothing is queued for
// deletion. Those that aren't open are passed over.
func (c *Catalog) Forget(ctx context.Context, ids ...string) error {
	return c.change(ctx, func(v *view) error {
		for _, id := range ids {
			if key := []byte(id); id != "" && v.get(intents, key) != nil {
				v.remove(intents, key)
			}
		}
		return nil
	})
}

// abandonAll abandons every intent: at Open, whose process can have none yet.
func (c *Catalog) abandonAll() error {
	for {
		list, err := c.Intents("", batchMost)
		if err != nil || len(list) == 0 {
			return err
		}
		ids := make([]string, len(list))
		for n, i := range list {
			ids[n] = i.ID
		}
		if err := c.Abandon(context.Background(), ids...); err != nil {
			return err
		}
	}
}

// Intents lists up to limit open intents with ids after another, by id.
func (c *Catalog) Intents(after string, limit int) (list []Intent, err error) {
	err = c.each(intents, after, func(id string, value []byte) (bool, error) {
		if len(list) >= limit {
			return false, nil
		}
		i, err := decodeIntent(id, value)
		list = append(list, i)
		return true, err
	})
	return list, err
}

// Rests lists up to limit versions with something left to do and ids after another, by id.
func (c *Catalog) Rests(after string, limit int) (list []Resting, err error) {
	err = c.each(rests, after, func(id string, value []byte) (bool, error) {
		if len(list) >= limit {
			return false, nil
		}
		r, err := decodeRest(value)
		list = append(list, Resting{id, r})
		return true, err
	})
	return list, err
}

// passMost is how many held blobs one call of Deletes passes over at most, so that its
// transaction is short.
const passMost = 4096

// Deletes lists up to limit blobs of a store to delete, with keys after another, by key.
// Blobs that a reader holds are left out, so that fewer than limit don't mean the end;
// next does: the key to go on after, empty at the end. It returns ErrInput for a store
// without a name.
func (c *Catalog) Deletes(store, after string, limit int) (list []Deletion, next string, err error) {
	if err := checkName("store", store, maxStore); err != nil || limit <= 0 {
		return nil, "", err
	}
	within := join(store, "")
	start := join(store, after)
	var seen []Deletion
	err = c.read(func(v *view) error {
		cursor := v.cursor(deletes)
		for key, value := cursor.Seek(start); bytes.HasPrefix(key, within); key, value = cursor.Next() {
			if bytes.Equal(key, start) {
				continue
			}
			if len(seen) == limit+passMost {
				return nil
			}
			d, err := decodeDeletion(key, value)
			if err != nil {
				return err
			}
			seen = append(seen, d)
		}
		return nil
	})
	if err != nil {
		return nil, "", err
	}
	list, passed := c.holds.free(seen, limit)
	if passed < len(seen) || len(seen) == limit+passMost {
		next = seen[passed-1].Place.Key
	}
	return list, next, nil
}

// Deleted takes blobs that are gone from their stores out of the queue. Those that
// aren't queued are passed over.
func (c *Catalog) Deleted(ctx context.Context, places ...object.Place) error {
	return c.change(ctx, func(v *view) error {
		for _, p := range places {
			if key := deletionKey(p); v.get(deletes, key) != nil {
				v.remove(deletes, key)
			}
		}
		return nil
	})
}

// Discard queues blobs for deletion that a scrub found in a store and took for nobody's,
// unless the version's document, an open intent or the queue has them. It tells how many.
func (c *Catalog) Discard(ctx context.Context, version string, places ...object.Place) (n int, err error) {
	err = c.strays(ctx, version, places, func(v *view, strays []object.Place) {
		n = len(strays)
		for _, p := range strays {
			v.queue(p, version)
		}
	})
	return n, err
}

// Strays gives those that Discard would queue.
func (c *Catalog) Strays(ctx context.Context, version string, places ...object.Place) (found []object.Place, err error) {
	err = c.strays(ctx, version, places, func(_ *view, strays []object.Place) { found = strays })
	return found, err
}

// strays calls f in a transaction with the places that nobody has.
func (c *Catalog) strays(ctx context.Context, version string, places []object.Place, f func(*view, []object.Place)) error {
	if err := checkName("version", version, maxID); err != nil {
		return err
	}
	for _, p := range places {
		if err := checkPlace(p); err != nil {
			return err
		}
	}
	return c.change(ctx, func(v *view) error {
		var own, strays []object.Place
		if v.get(versions, []byte(version)) != nil {
			doc, _, err := v.version(version)
			if err != nil {
				return err
			}
			own = doc.Places
		}
		for i, p := range places {
			if _, claimed := v.c.claimed[p]; claimed || slices.Contains(own, p) ||
				slices.Contains(places[:i], p) || v.get(deletes, deletionKey(p)) != nil || v.get(repeats, deletionKey(p)) != nil {
				continue
			}
			strays = append(strays, p)
		}
		f(v, strays)
		return nil
	})
}
