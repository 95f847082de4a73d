package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"penstock/consumers/executor/coder/catalog"
	"penstock/consumers/executor/coder/object"
)

// TestDeleting: a store is listed once, whatever lies in it, and stores whose names begin
// alike are told apart.
func TestDeleting(t *testing.T) {
	t.Parallel()
	c, ctx := open(t), context.Background()
	want := []string{"a", "a-b", "ab", "z"}
	var places []object.Place
	for i, store := range want {
		for j := range i + 1 {
			places = append(places, object.Place{Store: store, Key: fmt.Sprintf("%d", j)})
		}
	}
	must(t, c.Begin(ctx, catalog.Intent{ID: "i", Since: time.Now(), Places: places}))
	if got, err := c.Deleting(); err != nil || len(got) > 0 {
		t.Errorf("%v, %v", got, err)
	}
	must(t, c.Abandon(ctx, "i"))
	if got, err := c.Deleting(); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	must(t, c.Deleted(ctx, places[1], places[2]))
	if got, err := c.Deleting(); err != nil || !slices.Equal(got, []string{"a", "ab", "z"}) {
		t.Errorf("%v, %v", got, err)
	}
}

// TestStage: a version is staged until it is settled.
func TestStage(t *testing.T) {
	t.Parallel()
	c, ctx := open(t), context.Background()
	if err := c.Stage(ctx, "none"); !errors.Is(err, catalog.ErrNoVersion) {
		t.Error(err)
	}
	must(t, c.CreateBucket(ctx, catalog.Bucket{Name: "b", Created: time.Now()}))
	e, err := object.NewEncoder(object.SpreadCoding(4, 2), 0)
	must(t, err)
	must(t, e.Reset("k", "v"))
	if _, err := e.Next(strings.NewReader("")); err == nil {
		t.Fatal("not empty")
	}
	v, err := e.Finish(object.Info{Time: time.Now()})
	must(t, err)
	must(t, c.Put(ctx, catalog.PutInput{Bucket: "b", Version: v, Record: catalog.Record{Key: "k", ETag: v.ETag, Modified: v.Time}}))
	for range 2 {
		must(t, c.Stage(ctx, "v"))
		if s := c.Stats(); s.Staged != 1 || s.Lacking != 0 {
			t.Errorf("%+v", s)
		}
	}
	must(t, c.Settle(ctx, catalog.SettleInput{Version: "v"}))
	if s := c.Stats(); s.Staged != 0 {
		t.Errorf("%+v", s)
	}
}
