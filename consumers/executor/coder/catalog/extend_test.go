package catalog

import (
	"testing"

	"go.etcd.io/bbolt"

	"penstock/consumers/executor/coder/object"
)

// TestFilesOfBefore, that have no table of repeats and do not count them, can be opened, and
// get both.
func TestFilesOfBefore(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/catalog"
	o := Options{Coder: "c", NoSync: true}
	c, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	p := object.Place{Store: "s", Key: "k"}
	if n, err := c.Discard(t.Context(), "v", p); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if err := c.db.Update(func(tx *bbolt.Tx) error {
		if err := tx.DeleteBucket(repeats.bucket()); err != nil {
			return err
		}
		meta := tx.Bucket(metaBucket)
		state := meta.Get(stateKey)
		return meta.Put(stateKey, state[:len(state)-1]) // a number below 128 is a byte
	}); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if c, err = Open(path, o); err != nil {
			t.Fatal(err)
		}
		if s := c.Stats(); s.Deletes+s.Repeats != 1 {
			t.Errorf("%+v", s)
		}
		if err := c.Again(t.Context(), epoch, p); err != nil {
			t.Error(err)
		}
		if s := c.Stats(); s.Repeats != 1 || s.Deletes != 0 {
			t.Errorf("%+v", s)
		}
		if r, err := c.Check(t.Context()); err != nil || r.Found > 0 {
			t.Errorf("%+v, %v", r, err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
