package catalog_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"penstock/consumers/executor/coder/catalog"
	"penstock/consumers/executor/coder/catalog/catalogtest"
)

// TestCancelled: a writer whose context ends while it stands in line has changed nothing.
func TestCancelled(t *testing.T) {
	t.Parallel()
	c := open(t)
	put := bucket(t, c)
	must(t, put("key", "v"))
	inside, release := make(chan struct{}), make(chan struct{})
	first := make(chan error, 1)
	go func() {
		_, err := c.Amend(t.Context(), "b", "key", func(r *catalog.Record) error {
			close(inside)
			<-release
			r.ETag = "amended"
			return nil
		})
		first <- err
	}()
	<-inside
	ctx, cancel := context.WithCancel(t.Context())
	second := make(chan error, 1)
	go func() {
		_, err := c.Delete(ctx, "b", "key", nil)
		second <- err
	}()
	for c.Waiting() == 0 {
		runtime.Gosched()
	}
	cancel()
	wants(t, <-second, context.Canceled)
	close(release)
	must(t, <-first)
	r, err := c.Get("b", "key")
	must(t, err)
	if r.ETag != "amended" {
		t.Errorf("record %+v", r)
	}
	wants(t, c.Deleted(ctx), context.Canceled)

	// One whose context ends when the transaction has begun waits for the outcome.
	ctx, cancel = context.WithCancel(t.Context())
	_, err = c.Amend(ctx, "b", "key", func(r *catalog.Record) error {
		cancel()
		r.ETag = "amended again"
		return nil
	})
	must(t, err)
	r, err = c.Get("b", "key")
	must(t, err)
	if r.ETag != "amended again" {
		t.Errorf("record %+v", r)
	}
}

// TestCallbackPanics: a panic of a caller's callback is the caller's, and others go on.
func TestCallbackPanics(t *testing.T) {
	t.Parallel()
	c := open(t)
	put := bucket(t, c)
	must(t, put("key", "v"))
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			defer func() {
				if got := recover(); (got != nil) != (i%2 == 0) {
					t.Errorf("writer %d recovered %v", i, got)
				}
			}()
			_, err := c.Amend(t.Context(), "b", "key", func(*catalog.Record) error {
				if i%2 == 0 {
					panic("mine")
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

// TestBatchesShareACommit lets many writers stand in line behind one.
func TestBatchesShareACommit(t *testing.T) {
	t.Parallel()
	c := open(t)
	put := bucket(t, c)
	must(t, put("key", "v"))
	inside, release := make(chan struct{}), make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		_, err := c.Amend(t.Context(), "b", "key", func(*catalog.Record) error {
			close(inside)
			<-release
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-inside
	const writers = 64
	for i := range writers {
		group.Go(func() {
			if err := c.Begin(t.Context(), catalog.Intent{ID: fmt.Sprint(i), Since: catalogtest.Epoch}); err != nil {
				t.Error(err)
			}
		})
	}
	for c.Waiting() < writers {
		runtime.Gosched()
	}
	before := c.Commits()
	close(release)
	group.Wait()
	if got := c.Commits() - before; got != 2 {
		t.Errorf("%d writers took %d commits after the first, want the first's and one", writers, got)
	}
}
