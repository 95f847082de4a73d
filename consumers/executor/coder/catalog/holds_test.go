package catalog_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"penstock/consumers/executor/coder/catalog"
	"penstock/consumers/executor/coder/object"
)

// TestReadersKeepBlobs holds a record while it is overwritten.
func TestReadersKeepBlobs(t *testing.T) {
	t.Parallel()
	c := open(t)
	put := bucket(t, c)
	must(t, put("key", "one", func(in *catalog.PutInput) { in.Rest.Lacking = []int{1} }))
	held, err := c.Hold("b", "key")
	must(t, err)
	_, _, release, err := c.HoldVersion("one")
	must(t, err)
	must(t, put("key", "two"))
	must(t, put("other", "three"))
	_, err = c.Delete(t.Context(), "b", "other", nil)
	must(t, err)
	deletes := func() (keys []string) {
		list, next, err := c.Deletes("s0", "", 10)
		must(t, err)
		if next != "" {
			t.Errorf("goes on after %s", next)
		}
		for _, d := range list {
			keys = append(keys, d.Place.Key)
		}
		return keys
	}
	if got := deletes(); !slices.Equal(got, []string{"c/b/three.0"}) {
		t.Errorf("to delete while held: %v", got)
	}
	v, rest, err := c.Version(held.Record.Parts[0].Version)
	must(t, err)
	if v.ID != "one" || !slices.Equal(rest.Lacking, []int{1}) {
		t.Errorf("held version is %+v, %+v", v, rest)
	}
	held.Release()
	held.Release()
	if got := deletes(); len(got) != 1 {
		t.Errorf("to delete while one of two holds: %v", got)
	}
	release()
	if got := deletes(); !slices.Equal(got, []string{"c/b/one.0", "c/b/three.0"}) {
		t.Errorf("to delete after release: %v", got)
	}
	_, _, err = c.Version("one")
	wants(t, err, catalog.ErrNoVersion)
	_, err = c.Hold("b", "other")
	wants(t, err, catalog.ErrNoKey)
	_, _, _, err = c.HoldVersion("one")
	wants(t, err, catalog.ErrNoVersion)
}

// TestNoBlobOfAReaderIsDeleted races readers, writers and a deleter: what a reader holds is
// never handed out for deletion.
func TestNoBlobOfAReaderIsDeleted(t *testing.T) {
	t.Parallel()
	c := open(t)
	put := bucket(t, c)
	must(t, put("key", "v0"))
	ctx, cancel := context.WithCancel(t.Context())
	var gone sync.Map
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			for ctx.Err() == nil {
				held, err := c.Hold("b", "key")
				if err != nil {
					t.Error(err)
					return
				}
				for range 3 {
					id := held.Record.Parts[0].Version
					if _, deleted := gone.Load("c/b/" + id + ".0"); deleted {
						t.Errorf("blob of %s was deleted while held", id)
					}
					if _, _, err := c.Version(id); err != nil {
						t.Error(err)
					}
				}
				held.Release()
			}
		})
	}
	group.Go(func() {
		for ctx.Err() == nil {
			list, _, err := c.Deletes("s0", "", 100)
			if err != nil {
				t.Error(err)
			}
			var places []object.Place
			for _, d := range list {
				gone.Store(d.Place.Key, true)
				places = append(places, d.Place)
			}
			if err := c.Deleted(t.Context(), places...); err != nil {
				t.Error(err)
			}
		}
	})
	for i := range 60 {
		must(t, put("key", fmt.Sprint("v", i+1)))
	}
	cancel()
	group.Wait()
}
