package objectstoretest

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"penstock/infra/objectstore"
)

var (
	absent   = objectstore.Mark{State: objectstore.Absent}
	incoming = objectstore.Mark{State: objectstore.Incoming, Version: 4, By: "m"}
	live     = objectstore.Mark{State: objectstore.Live, Version: 4}
	retired  = objectstore.Mark{State: objectstore.Retired, Version: 5, Site: "elsewhere"}
)

func wantMark(t *testing.T, s objectstore.Store, owner string, want objectstore.Mark) {
	t.Helper()
	if m, err := s.Stat(t.Context(), owner); err != nil || m != want {
		t.Fatalf("the copy is %v, %v, want %v", m, err, want)
	}
}

func testMarks(t *testing.T, s objectstore.Store) {
	ctx := t.Context()
	wantMark(t, s, "o", absent)
	is(t, s.Mark(ctx, "o", writable, incoming), objectstore.ErrMarked)
	is(t, s.Mark(ctx, "o", live, incoming), objectstore.ErrMarked)
	wantMark(t, s, "o", absent)
	ok(t, s.Mark(ctx, "o", absent, incoming))
	wantMark(t, s, "o", incoming)
	if l := list(t, s, "o"); l.Mark != incoming || len(l.Objects) != 0 {
		t.Errorf("a copy to come lists as %+v", l)
	}
	is(t, s.Mark(ctx, "o", absent, live), objectstore.ErrMarked)
	ok(t, s.Mark(ctx, "o", incoming, live))
	version := list(t, s, "o").Version
	ok(t, s.Mark(ctx, "o", live, retired))
	if l := list(t, s, "o"); l.Mark != retired || l.Version != version {
		t.Errorf("a mark changed the version, or did not take: %+v", l)
	}
	err := s.Mark(ctx, "o", live, incoming)
	var marked *objectstore.MarkedError
	if !errors.As(err, &marked) || marked.Have != retired || marked.Want != live || marked.Owner != "o" {
		t.Errorf("got %v, want what the copy is and should be", err)
	}
	ok(t, s.Mark(ctx, "o", retired, writable))
	wantMark(t, s, "o", writable)
	ok(t, s.Owners(ctx, func(owner string, m objectstore.Mark) error {
		if owner != "o" || m != writable {
			t.Errorf("listed %q as %v", owner, m)
		}
		return nil
	}))
}

func testMarkRace(t *testing.T, s objectstore.Store) {
	ctx := t.Context()
	const n = 8
	for range 20 {
		var wg sync.WaitGroup
		var mu sync.Mutex
		var won []objectstore.Mark
		for i := range n {
			wg.Go(func() {
				mine := objectstore.Mark{State: objectstore.Incoming, Version: 1, By: string(rune('a' + i))}
				err := s.Mark(ctx, "o", absent, mine)
				if err == nil {
					mu.Lock()
					won = append(won, mine)
					mu.Unlock()
				} else if !errors.Is(err, objectstore.ErrMarked) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if len(won) != 1 {
			t.Fatalf("%d of %d took the mark", len(won), n)
		}
		wantMark(t, s, "o", won[0])
		ok(t, s.Delete(ctx, "o", won[0]))
	}
}

func testClosed(t *testing.T, s objectstore.Store) {
	ctx := t.Context()
	put(t, s, "o", "a", "old")
	for _, m := range []objectstore.Mark{incoming, retired} {
		ok(t, s.Mark(ctx, "o", writable, m))
		_, err := s.Put(ctx, "o", "a", strings.NewReader("new"), writable)
		is(t, err, objectstore.ErrMarked)
		_, err = s.Put(ctx, "o", "big", strings.NewReader(strings.Repeat("x", 200_000)), writable)
		is(t, err, objectstore.ErrMarked)
		is(t, s.Remove(ctx, "o", "a", writable), objectstore.ErrMarked)
		is(t, s.Create(ctx, "o", writable), objectstore.ErrMarked)
		is(t, s.Delete(ctx, "o", writable), objectstore.ErrMarked)
		is(t, s.Delete(ctx, "o", live), objectstore.ErrMarked)
		_, err = s.Put(ctx, "o", "a", strings.NewReader("new"), live)
		is(t, err, objectstore.ErrMarked)
		if got := get(t, s, "o", "a"); got != "old" {
			t.Errorf("a copy that is %v was changed to %q", m, got)
		}
		// Who knows the mark may write.
		_, err = s.Put(ctx, "o", "b", strings.NewReader("mover's"), m)
		ok(t, err)
		ok(t, s.Remove(ctx, "o", "b", m))
		ok(t, s.Create(ctx, "o", m))
		ok(t, s.Mark(ctx, "o", m, writable))
	}
	ok(t, s.Mark(ctx, "o", writable, live))
	put(t, s, "o", "a", "a live copy is open")
	_, err := s.Put(ctx, "nobody", "a", strings.NewReader("x"), incoming)
	is(t, err, objectstore.ErrMarked)
	wantMark(t, s, "nobody", absent)
}

func testDelete(t *testing.T, s objectstore.Store) {
	ctx := t.Context()
	put(t, s, "o", "a/b/c", "1")
	put(t, s, "o", "d", "2")
	ok(t, s.Mark(ctx, "o", writable, retired))
	other := retired
	other.Version++
	is(t, s.Delete(ctx, "o", other), objectstore.ErrMarked)
	ok(t, s.Delete(ctx, "o", retired))
	wantMark(t, s, "o", absent)
	ok(t, s.Delete(ctx, "o", retired))
	_, err := s.List(ctx, "o")
	is(t, err, objectstore.ErrNoOwner)
	put(t, s, "o", "a", "again")
	wantMark(t, s, "o", writable)
	if l := list(t, s, "o"); len(l.Objects) != 1 {
		t.Errorf("a new copy has %d objects", len(l.Objects))
	}
}
