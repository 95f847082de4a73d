package objectstoretest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"penstock/infra/objectstore"
)

func hold(t *testing.T, s objectstore.Store, version string) objectstore.Held {
	t.Helper()
	h, err := s.Hold(t.Context(), "o", version)
	ok(t, err)
	return h
}

func testHold(t *testing.T, s objectstore.Store) {
	_, err := s.Hold(t.Context(), "o", "")
	is(t, err, objectstore.ErrNoOwner)
	put(t, s, "o", "a", "1")
	h := hold(t, s, list(t, s, "o").Version)
	// Reads, listings and other owners go on.
	if get(t, s, "o", "a") != "1" || len(list(t, s, "o").Objects) != 1 {
		t.Error("a held copy can't be read")
	}
	put(t, s, "other", "a", "1")
	is(t, h.Mark(t.Context(), live, retired), objectstore.ErrMarked)
	ok(t, h.Mark(t.Context(), writable, retired))
	h.Release()
	h.Release()
	wantMark(t, s, "o", retired)
}

func testHoldChanged(t *testing.T, s objectstore.Store) {
	put(t, s, "o", "a", "1")
	version := list(t, s, "o").Version
	put(t, s, "o", "a", "2")
	_, err := s.Hold(t.Context(), "o", version)
	is(t, err, objectstore.ErrChanged)
	put(t, s, "o", "a", "3") // it isn't held
	hold(t, s, "").Release()
}

func testHoldKeepsOff(t *testing.T, s objectstore.Store) {
	put(t, s, "o", "a", "1")
	writes := map[string]func(ctx context.Context) error{
		"put": func(ctx context.Context) error {
			_, err := s.Put(ctx, "o", "a", strings.NewReader("2"), writable)
			return err
		},
		"put large": func(ctx context.Context) error {
			_, err := s.Put(ctx, "o", "b", strings.NewReader(strings.Repeat("2", 100_000)), writable)
			return err
		},
		"remove": func(ctx context.Context) error { return s.Remove(ctx, "o", "a", writable) },
		"mark":   func(ctx context.Context) error { return s.Mark(ctx, "o", writable, retired) },
		"delete": func(ctx context.Context) error { return s.Delete(ctx, "o", writable) },
		"hold": func(ctx context.Context) error {
			h, err := s.Hold(ctx, "o", "")
			if err == nil {
				h.Release()
			}
			return err
		},
	}
	if r, is := s.(objectstore.Records); is {
		writes["append"] = func(ctx context.Context) error { return objectstore.Append(ctx, r, "o", "r", 1, nil) }
	}
	h := hold(t, s, "")
	version := list(t, s, "o").Version
	for name, write := range writes {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Millisecond)
		if err := write(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s while held: %v, want that it waits", name, err)
		}
		cancel()
	}
	wantMark(t, s, "o", writable)
	if list(t, s, "o").Version != version {
		t.Error("a held copy was written to")
	}
	waited := make(chan error, 1)
	go func() { waited <- writes["put"](t.Context()) }()
	h.Release()
	ok(t, <-waited)
}

func testHoldDelete(t *testing.T, s objectstore.Store) {
	put(t, s, "o", "a", "1")
	ok(t, s.Mark(t.Context(), "o", writable, retired))
	h := hold(t, s, "")
	is(t, h.Delete(t.Context(), writable), objectstore.ErrMarked)
	ok(t, h.Delete(t.Context(), retired))
	h.Release()
	wantMark(t, s, "o", absent)
	put(t, s, "o", "b", "new")
	if l := list(t, s, "o"); len(l.Objects) != 1 {
		t.Errorf("a new copy has %d objects", len(l.Objects))
	}
}

// testNoWriteLost lets writers write while the copy is held and retired: every
// write that was acknowledged is there when the barrier holds, and none comes
// after.
func testNoWriteLost(t *testing.T, s objectstore.Store) {
	var mu sync.Mutex
	acked := map[string]bool{}
	var wg sync.WaitGroup
	started := make(chan struct{}, 4)
	put(t, s, "o", "first", "")
	acked["first"] = true
	for w := range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				name := fmt.Sprintf("%d-%d", w, i)
				_, err := s.Put(t.Context(), "o", name, strings.NewReader("x"), writable)
				if errors.Is(err, objectstore.ErrMarked) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				acked[name] = true
				mu.Unlock()
				if i == 10 {
					started <- struct{}{}
				}
			}
		})
	}
	for range 4 {
		<-started
	}
	var held objectstore.Listing
	for lost := true; lost; {
		h := hold(t, s, "")
		held = list(t, s, "o")
		err := h.Mark(t.Context(), writable, retired)
		h.Release()
		// The machine may have stood still for longer than a holder may be silent.
		if lost = errors.Is(err, objectstore.ErrHoldLost); !lost {
			ok(t, err)
		}
	}
	wg.Wait()
	if l := list(t, s, "o"); l.Version != held.Version {
		t.Error("a write came after the copy was retired")
	}
	there := map[string]bool{}
	for _, o := range held.Objects {
		there[o.Name] = true
	}
	for name := range acked {
		if !there[name] {
			t.Errorf("write %s was acknowledged and isn't there", name)
		}
	}
}

// testDeleteCreateRace deletes and creates one owner from many sides: no
// operation fails, and none leaves half an owner.
func testDeleteCreateRace(t *testing.T, s objectstore.Store) {
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				if _, err := s.Put(t.Context(), "o", "dir/a", strings.NewReader("x"), writable); err != nil {
					t.Errorf("put: %v", err)
				}
				if err := s.Delete(t.Context(), "o", writable); err != nil {
					t.Errorf("delete: %v", err)
				}
			}
		})
	}
	wg.Wait()
	wantMark(t, s, "o", absent)
}
