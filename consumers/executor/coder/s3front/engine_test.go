package s3front

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"penstock/consumers/executor/coder"
	"penstock/consumers/executor/coder/chunks"
	"penstock/consumers/executor/coder/object"
	"penstock/consumers/executor/coder/queue"
)

// engine is a coder that runs, and its stores.
type engine struct {
	*coder.Coder
	stores []chunks.Store
	t      testing.TB
}

// code is a chooser that has made up its mind.
type code queue.Code

func (code) Arrived(int) {}

func (c code) Choose(queue.Op, int) queue.Code { return queue.Code(c) }

// memory returns a coder of the layout shared over a store in memory.
func memory(t testing.TB, change func(*coder.Options)) *engine {
	t.Helper()
	return over(t, change, chunks.NewMemory("store"))
}

// over returns a coder over stores: of the layout shared over one, else spread such that
// two may be lost.
func over(t testing.TB, change func(*coder.Options), stores ...chunks.Store) *engine {
	t.Helper()
	logger := zerolog.New(zerolog.NewTestWriter(t)).Level(zerolog.WarnLevel)
	o := coder.Options{
		Name: "test", State: t.TempDir(), Stores: stores, Layout: object.Shared, Chooser: code{N: 2, K: 1},
		Segment: 256 << 10, TaskTimeout: 5 * time.Second, Retry: 50 * time.Millisecond, Grace: time.Second, Logger: &logger,
	}
	if len(stores) > 1 {
		o.Layout, o.N, o.K = object.Spread, len(stores), len(stores)-2
	}
	if change != nil {
		change(&o)
	}
	c, err := coder.Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- c.Run(ctx) }()
	t.Cleanup(sync.OnceFunc(func() {
		cancel()
		if err := <-ran; err != nil {
			t.Error(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}))
	return &engine{Coder: c, stores: stores, t: t}
}

// blobs counts what lies in the stores beside the coder's own log.
func (e *engine) blobs() (n int) {
	e.t.Helper()
	for _, s := range e.stores {
		all, err := s.List(context.Background(), "test/b/", "", 10_000)
		if err != nil {
			e.t.Fatal(err)
		}
		n += len(all)
	}
	return n
}

// deleted waits until the coder has nothing left to delete, not even once more.
func (e *engine) deleted() {
	e.t.Helper()
	deadline := time.Now().Add(5 * time.Minute)
	for {
		s, err := e.Stats(context.Background())
		if err != nil {
			e.t.Fatal(err)
		}
		if s.Deletes == 0 && s.Unintended == 0 {
			return
		}
		if time.Now().After(deadline) {
			e.t.Fatalf("still to do: %+v", s)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// nothing checks that a bucket is empty, and that no blob stays in the stores.
func (e *engine) nothing(bucket string) {
	e.t.Helper()
	l, err := e.List(context.Background(), coder.ListInput{Bucket: bucket})
	if err != nil {
		e.t.Fatal(err)
	}
	for i := range l.Objects {
		e.t.Errorf("%q is stored", l.Objects[i].Key)
	}
	var last string
	for range 500 {
		s, err := e.Stats(context.Background())
		if err != nil {
			e.t.Fatal(err)
		}
		n := e.blobs()
		if n == 0 && s.Backlog == 0 && s.Connections == 0 {
			return
		}
		last = fmt.Sprintf("%d blobs, %+v", n, s)
		time.Sleep(10 * time.Millisecond) // the coder deletes in the background and tells nobody
	}
	e.t.Error("left: ", strings.TrimSpace(last))
}
