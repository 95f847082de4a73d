package objectstoretest

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"penstock/infra/objectstore"
)

// objectNames are names that are hard to hold.
var objectNames = []string{
	"a b", "größe/文書", "100%", "%2e%2e", ".a/.b", "..a", "a#b?c=d&e+f", "~x", "-", "*", ">", "a\tb\nc", "Case", "case",
	"b64=x", `"quoted"`, "'", "$HOME", strings.Repeat("n", 255), strings.Repeat(strings.Repeat("ä", 100)+"/", 4) + "x",
}

func testObjectNames(t *testing.T, s objectstore.Store) {
	for _, name := range objectNames {
		put(t, s, "o", name, "of "+name)
	}
	var listed []string
	for _, o := range list(t, s, "o").Objects {
		listed = append(listed, o.Name)
	}
	if want := slices.Sorted(slices.Values(objectNames)); !slices.Equal(listed, want) {
		t.Errorf("listed are %q, want %q", listed, want)
	}
	for _, name := range objectNames {
		if got := get(t, s, "o", name); got != "of "+name {
			t.Errorf("%.60q holds %.60q", name, got)
		}
		ok(t, s.Remove(t.Context(), "o", name, writable))
	}
	if l := list(t, s, "o"); len(l.Objects) > 0 {
		t.Errorf("left is %.200v", l.Objects)
	}
}

// testForeign: what is nobody's data is not listed, and outlives all that is done
// to the owner that it lies with.
func testForeign(t *testing.T, s objectstore.Store, o *Options) {
	ctx := t.Context()
	put(t, s, "o", "a", "1")
	put(t, s, "o", "sub/b", "2")
	owners := func() []string {
		all := map[string]bool{}
		ok(t, s.Owners(ctx, func(owner string, _ objectstore.Mark) error { all[owner] = true; return nil }))
		return slices.Sorted(maps.Keys(all))
	}
	check := o.Foreign(t, s, "o")
	if l := list(t, s, "o"); len(l.Objects) != 2 {
		t.Errorf("with foreign things beside, %d objects are listed", len(l.Objects))
	}
	if got := owners(); !slices.Equal(got, []string{"o"}) {
		t.Errorf("with foreign things beside, the owners are %q", got)
	}
	put(t, s, "o", "a", "3")
	ok(t, s.Remove(ctx, "o", "sub/b", writable))
	check(t)
	ok(t, s.Mark(ctx, "o", writable, retired))
	ok(t, s.Mark(ctx, "o", retired, incoming))
	ok(t, s.Delete(ctx, "o", incoming))
	wantMark(t, s, "o", absent)
	if got := owners(); len(got) > 0 {
		t.Errorf("deleted owners are listed: %q", got)
	}
	check(t)
	put(t, s, "o", "a", "4")
	ok(t, s.Delete(ctx, "o", writable))
	check(t)
}

// testLeftovers: what a crash leaves is no part of the owner's data and goes at
// the latest with it.
func testLeftovers(t *testing.T, s objectstore.Store, o *Options) {
	ctx := t.Context()
	put(t, s, "o", "a", "1")
	gone := o.Leave(t, s, "o")
	if l := list(t, s, "o"); len(l.Objects) != 1 || l.Bytes != 1 {
		t.Errorf("with leftovers the owner lists as %+v", l)
	}
	put(t, s, "o", "b", "2")
	ok(t, s.Mark(ctx, "o", writable, retired))
	ok(t, s.Delete(ctx, "o", retired))
	gone(t)
	wantMark(t, s, "o", absent)
	// A copy that arrives begins with nothing.
	gone = o.Leave(t, s, "o")
	m, err := s.Stat(ctx, "o")
	ok(t, err)
	ok(t, s.Mark(ctx, "o", m, incoming))
	if l := list(t, s, "o"); len(l.Objects) > 0 {
		t.Errorf("a copy to come begins with %+v", l.Objects)
	}
	ok(t, s.Delete(ctx, "o", incoming))
	gone(t)
}

// testNoBarrier: a store that can't keep writers off says so, and doesn't pretend.
func testNoBarrier(t *testing.T, s objectstore.Store) {
	put(t, s, "o", "a", "1")
	for _, version := range []string{"", list(t, s, "o").Version} {
		h, err := s.Hold(t.Context(), "o", version)
		is(t, err, objectstore.ErrNoBarrier)
		if h != nil {
			t.Error("there is a barrier all the same")
		}
	}
	put(t, s, "o", "a", "2")
}

// testHoldLost: a holder that dies does not keep writers off for ever, and one
// that only seemed dead can do nothing any more.
func testHoldLost(t *testing.T, s objectstore.Store, o *Options) {
	put(t, s, "o", "a", "1")
	h := hold(t, s, "")
	o.Lose(t, s, h)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := s.Put(ctx, "o", "a", strings.NewReader("2"), writable)
	ok(t, err)
	is(t, h.Mark(ctx, writable, retired), objectstore.ErrHoldLost)
	is(t, h.Delete(ctx, writable), objectstore.ErrHoldLost)
	h.Release()
	wantMark(t, s, "o", writable)
	if got := get(t, s, "o", "a"); got != "2" {
		t.Errorf("the object holds %q", got)
	}
	hold(t, s, "").Release()
}

// testHoldGivenUp ends Hold at any moment: a barrier that nobody got keeps nobody
// off.
func testHoldGivenUp(t *testing.T, s objectstore.Store) {
	r := rand.New(rand.NewPCG(3, 4))
	put(t, s, "o", "a", "1")
	usual := usually(t, func() { hold(t, s, "").Release() })
	given := 0
	for i := range 40 {
		ctx, cancel := context.WithTimeout(t.Context(), below(r, usual))
		h, err := s.Hold(ctx, "o", "")
		cancel()
		switch {
		case err == nil:
			h.Release()
		case errors.Is(err, context.DeadlineExceeded):
			given++
		default:
			t.Fatal(err)
		}
		if i%10 == 9 {
			put(t, s, "o", "a", "2")
		}
	}
	t.Logf("%d of 40 were given up", given)
}

// testHoldByAnother: what one process holds, the other can't write to, and wakes
// up when it is released.
func testHoldByAnother(t *testing.T, s objectstore.Store, o *Options) {
	other := o.Other(t, s)
	put(t, s, "o", "a", "1")
	if got := get(t, other, "o", "a"); got != "1" {
		t.Fatalf("the other process reads %q", got)
	}
	for range 10 {
		h, err := other.Hold(t.Context(), "o", list(t, s, "o").Version)
		ok(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Millisecond)
		_, err = s.Put(ctx, "o", "a", strings.NewReader("2"), writable)
		cancel()
		is(t, err, context.DeadlineExceeded)
		waited := make(chan error, 1)
		go func() {
			_, err := s.Put(t.Context(), "o", "a", strings.NewReader("3"), writable)
			waited <- err
		}()
		h.Release()
		ok(t, <-waited)
	}
	h, err := other.Hold(t.Context(), "o", "")
	ok(t, err)
	ok(t, h.Mark(t.Context(), writable, retired))
	h.Release()
	_, err = s.Put(t.Context(), "o", "a", strings.NewReader("4"), writable)
	is(t, err, objectstore.ErrMarked)
}
