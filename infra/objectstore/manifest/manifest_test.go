package manifest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"penstock/infra/clock"
	"penstock/infra/objectstore"
	"penstock/infra/objectstore/objectstoretest"
)

var (
	writable objectstore.Mark
	retired  = objectstore.Mark{State: objectstore.Retired, Version: 2, Site: "b"}
)

func open(t testing.TB, b Backend, o Options) *Store {
	t.Helper()
	s := New(b, o)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func is(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got error %v, want %v", err, want)
	}
}

func put(t testing.TB, s *Store, name, content string) objectstore.Object {
	t.Helper()
	o, err := s.Put(t.Context(), "o", name, strings.NewReader(content), writable)
	ok(t, err)
	return o
}

func get(t testing.TB, s *Store, name string) (string, error) {
	t.Helper()
	r, err := s.Open(t.Context(), "o", name)
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(r)
	ok(t, r.Close())
	return string(b), err
}

// hooks are the suite's hands in a Memory.
func hooks(o Options) objectstoretest.Options {
	return objectstoretest.Options{
		Memory: -1,
		Other: func(t *testing.T, s objectstore.Store) objectstore.Store {
			return open(t, s.(*Store).b, o)
		},
		Lose: func(_ *testing.T, _ objectstore.Store, h objectstore.Held) { Abandon(h) },
		Leave: func(t *testing.T, s objectstore.Store, owner string) func(*testing.T) {
			m := s.(*Store).b.(*Memory)
			id := newBlob(time.Now())
			_, err := m.PutBlob(t.Context(), owner, id, strings.NewReader("half an obj"))
			ok(t, err)
			return func(t *testing.T) {
				if r, err := m.OpenBlob(t.Context(), owner, id); err == nil {
					_ = r.Close()
					t.Error("a leftover is still there")
				}
			}
		},
		Foreign: func(_ *testing.T, s objectstore.Store, owner string) func(*testing.T) {
			m := s.(*Store).b.(*Memory)
			m.Plant(owner, "beside the document", "foreign")
			m.Plant("nobody", "not//a name", "foreign")
			return func(t *testing.T) {
				for who, name := range map[string]string{owner: "beside the document", "nobody": "not//a name"} {
					r, err := m.OpenBlob(t.Context(), who, "plain/"+name)
					ok(t, err)
					if b, err := io.ReadAll(r); err != nil || string(b) != "foreign" {
						t.Errorf("foreign %s is %q, %v", name, b, err)
					}
				}
			}
		},
	}
}

var quick = Options{Lease: time.Second}

func TestConformance(t *testing.T) {
	objectstoretest.Run(t, func(t *testing.T) objectstore.Store { return open(t, NewMemory(nil), quick) }, hooks(quick))
}

// blind is a Memory that can't compare.
type blind struct{ *Memory }

func (blind) Capabilities() objectstore.Capabilities { return objectstore.Capabilities{} }

// TestConformanceWithoutBarrier: a backend that says it can't compare offers no
// Hold and is a store in all else.
func TestConformanceWithoutBarrier(t *testing.T) {
	objectstoretest.Run(t, func(t *testing.T) objectstore.Store { return open(t, blind{NewMemory(nil)}, Options{}) },
		objectstoretest.Options{Memory: -1, Large: 1 << 20})
}

// interrupted calls a function once, when a blob has been stored and no document
// names it yet.
type interrupted struct {
	*Memory
	then atomic.Pointer[func()]
}

func (i *interrupted) PutBlob(ctx context.Context, owner, id string, r io.Reader) (int64, error) {
	n, err := i.Memory.PutBlob(ctx, owner, id, r)
	if then := i.then.Swap(nil); then != nil {
		(*then)()
	}
	return n, err
}

// TestOvertaken: a write whose blob was collected as a leftover before its document
// named it isn't acknowledged without it. A small one is made again.
func TestOvertaken(t *testing.T) {
	for _, size := range []int{10, small + 1} {
		for name, overtake := range map[string]func(s *Store) error{
			"deletion": func(s *Store) error { return s.Delete(t.Context(), "o", writable) },
			// The deletion is cut off when the leftovers are condemned but there.
			"condemned": func(s *Store) error {
				left, err := s.blobs(t.Context(), "o", time.Time{})
				if err != nil {
					return err
				}
				return s.change(t.Context(), "o", newID(), nil, func(d *document) (bool, error) { return d.condemn(left), nil })
			},
		} {
			b := &interrupted{Memory: NewMemory(nil)}
			s, other := open(t, b, Options{}), open(t, b, Options{})
			put(t, s, "a", "old")
			then := func() { ok(t, overtake(other)) }
			b.then.Store(&then)
			_, err := s.Put(t.Context(), "o", "a", strings.NewReader(strings.Repeat("x", size)), writable)
			if size > small {
				is(t, err, ErrCollected)
				continue
			}
			ok(t, err)
			if got, err := get(t, s, "a"); err != nil || len(got) != size {
				t.Errorf("%s: the object holds %q, %v", name, got, err)
			}
		}
	}
}

// TestMovedMeanwhile: a write that began before its copy was moved away, and ends
// after that copy was deleted, is refused as any other to a copy that has moved:
// it doesn't begin another one. A write that begins later may.
func TestMovedMeanwhile(t *testing.T) {
	retired := objectstore.Mark{State: objectstore.Retired, Version: 3, Site: "b"}
	for _, size := range []int{10, small + 1} {
		b := &interrupted{Memory: NewMemory(nil)}
		s, other := open(t, b, Options{}), open(t, b, Options{})
		put(t, s, "a", "old")
		then := func() {
			ok(t, other.Mark(t.Context(), "o", writable, retired))
			ok(t, other.Delete(t.Context(), "o", retired))
		}
		b.then.Store(&then)
		_, err := s.Put(t.Context(), "o", "a", strings.NewReader(strings.Repeat("x", size)), writable)
		var marked *objectstore.MarkedError
		if !errors.As(err, &marked) || marked.Have != retired {
			t.Errorf("%d bytes: %v", size, err)
		}
		if m, err := s.Stat(t.Context(), "o"); err != nil || m != absent() {
			t.Errorf("%d bytes: the deleted copy is %v, %v", size, m, err)
		}
		put(t, s, "a", "new")
		ok(t, s.Delete(t.Context(), "o", writable))
		put(t, s, "a", "deleted where it was live: nobody moved it")
	}
}

// TestLateSet: a document that was on its way while the copy was deleted does not
// bring it back.
func TestLateSet(t *testing.T) {
	m := NewMemory(nil)
	s := open(t, m, Options{})
	put(t, s, "a", "x")
	body, revision, err := m.Get(t.Context(), "o")
	ok(t, err)
	ok(t, s.Delete(t.Context(), "o", writable))
	for _, r := range []string{revision, ""} {
		_, err = m.Set(t.Context(), "o", body, r)
		is(t, err, ErrConflict)
	}
}

// TestAdoption: objects that were there before are the owner's as they lie; they
// go when they are replaced, or with the copy, and what is put beside them later
// is foreign.
func TestAdoption(t *testing.T) {
	m := NewMemory(nil)
	s := open(t, m, Options{})
	m.Plant("o", "dir/a", "plain a")
	m.Plant("o", "b", "plain b")
	m.Plant("o", "not//a name", "foreign")
	owners := 0
	ok(t, s.Owners(t.Context(), func(owner string, mark objectstore.Mark) error {
		if owners++; owner != "o" || mark != writable {
			t.Errorf("owner %q is %v", owner, mark)
		}
		return nil
	}))
	l, err := s.List(t.Context(), "o")
	ok(t, err)
	if owners != 1 || len(l.Objects) != 2 || l.Bytes != 14 || l.Objects[0].Name != "b" {
		t.Fatalf("%d owners, listed %+v", owners, l)
	}
	m.Plant("o", "b", "changed")
	_, err = s.Hold(t.Context(), "o", l.Version)
	is(t, err, objectstore.ErrChanged)
	l, err = s.List(t.Context(), "o")
	ok(t, err)
	h, err := s.Hold(t.Context(), "o", l.Version)
	ok(t, err)
	h.Release()
	if n := len(m.blobs["o"]); n != 3 {
		t.Errorf("adoption made %d blobs of 3", n)
	}
	m.Plant("o", "late", "foreign by now")
	put(t, s, "b", "new b")
	for name, want := range map[string]string{"dir/a": "plain a", "b": "new b"} {
		if got, err := get(t, s, name); err != nil || got != want {
			t.Errorf("%s holds %q, %v", name, got, err)
		}
	}
	ok(t, s.Delete(t.Context(), "o", writable))
	for _, id := range []string{"plain/dir/a", "plain/b"} {
		_, err := m.OpenBlob(t.Context(), "o", id)
		is(t, err, objectstore.ErrNoObject)
	}
	for _, id := range []string{"plain/late", "plain/not//a name"} {
		if _, err := m.OpenBlob(t.Context(), "o", id); err != nil {
			t.Errorf("foreign %s: %v", id, err)
		}
	}
	_, err = s.List(t.Context(), "o")
	is(t, err, objectstore.ErrNoOwner)
}

// TestTooLarge: an owner with too many objects gets a clear error, and stays as it
// was.
func TestTooLarge(t *testing.T) {
	m := NewMemory(nil)
	s := open(t, m, Options{MaxDocument: 4000})
	var err error
	n := 0
	for ; err == nil && n < 1000; n++ {
		_, err = s.Put(t.Context(), "o", fmt.Sprintf("object-%04d", n), strings.NewReader("x"), writable)
	}
	is(t, err, ErrTooLarge)
	l, err := s.List(t.Context(), "o")
	ok(t, err)
	if len(l.Objects) != n-1 || n < 40 {
		t.Errorf("%d objects are there, %d were put", len(l.Objects), n-1)
	}
	ok(t, s.Remove(t.Context(), "o", l.Objects[0].Name, writable))
	put(t, s, "object-9999", "there is room again")
}

// TestLostContent: an object whose content is gone is not taken for one that was
// removed, nor one that was damaged for whole.
func TestLostContent(t *testing.T) {
	m := NewMemory(nil)
	s := open(t, m, Options{Poll: time.Microsecond})
	o := put(t, s, "a", "content")
	m.put("o", o.Version, memoryBlob{content: []byte("c0ntent")})
	_, err := get(t, s, "a")
	is(t, err, objectstore.ErrCorrupt)
	if d, err := s.Digest(t.Context(), "o", "a"); err != nil || d == o.Digest {
		t.Errorf("the digest of what is stored is %s, %v", d, err)
	}
	m.put("o", o.Version, memoryBlob{content: []byte("conten")})
	_, err = get(t, s, "a")
	is(t, err, objectstore.ErrCorrupt)
	ok(t, m.DeleteBlob(t.Context(), "o", o.Version))
	_, err = get(t, s, "a")
	is(t, err, ErrMissing)
	if errors.Is(err, objectstore.ErrNoObject) {
		t.Error("a mover would leave the object behind")
	}
}

// TestDamagedDocument: a copy whose document can't be read is not taken for an
// absent one.
func TestDamagedDocument(t *testing.T) {
	m := NewMemory(nil)
	s := open(t, m, Options{})
	put(t, s, "a", "x")
	body, revision, err := m.Get(t.Context(), "o")
	ok(t, err)
	body[len(body)/2] ^= 1
	_, err = m.Set(t.Context(), "o", body, revision)
	ok(t, err)
	_, err = s.Put(t.Context(), "o", "a", strings.NewReader("y"), writable)
	is(t, err, objectstore.ErrCorrupt)
	_, err = s.Stat(t.Context(), "o")
	is(t, err, objectstore.ErrCorrupt)
	is(t, s.Mark(t.Context(), "o", absent(), retired), objectstore.ErrCorrupt)
	is(t, s.Delete(t.Context(), "o", writable), objectstore.ErrCorrupt)
}

// TestGrace: what an object was stays until its readers have had time, and what
// crashes left until it is old.
func TestGrace(t *testing.T) {
	c := clock.NewManual(time.Date(2015, 5, 17, 10, 0, 0, 0, time.UTC))
	m := NewMemory(c)
	gone := make(chan int64, 10)
	s := open(t, m, Options{Clock: c, Grace: time.Minute, Orphan: time.Hour, Count: func(reason string, n int64) {
		if reason == "blob-collected" {
			gone <- n
		}
	}})
	soon, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	first := put(t, s, "a", "old").Version
	second := put(t, s, "a", "newer").Version
	ok(t, c.Await(soon, 1))
	c.Advance(59 * time.Second)
	r, err := m.OpenBlob(t.Context(), "o", first)
	ok(t, err)
	_ = r.Close()
	c.Advance(time.Second)
	<-gone
	_, err = m.OpenBlob(t.Context(), "o", first)
	is(t, err, objectstore.ErrNoObject)

	_, err = m.PutBlob(t.Context(), "o", "left", strings.NewReader("by a crash"))
	ok(t, err)
	c.Advance(time.Hour)
	ok(t, s.Sweep(t.Context(), "o")) // it is an hour old, not older
	if len(m.blobs["o"]) != 2 {
		t.Error("a blob was swept that may be a write under way")
	}
	c.Advance(time.Second)
	ok(t, s.Sweep(t.Context(), "o"))
	ok(t, c.Await(soon, 1))
	c.Advance(time.Minute)
	<-gone
	if _, there := m.blobs["o"]["left"]; there || len(m.blobs["o"]) != 1 {
		t.Errorf("left are %d blobs", len(m.blobs["o"]))
	}
	if _, there := m.blobs["o"][second]; !there {
		t.Error("an object was swept")
	}
}

// skewed is a clock that is wrong.
type skewed struct {
	clock.Clock
	by time.Duration
}

func (s skewed) Now() time.Time { return s.Clock.Now().Add(s.by) }

// TestClocks: a hold stands as long as its holder lives, and as long as it said
// after its death, however wrong the clocks are. In a bubble, for on a machine that
// stands still a holder looks dead that isn't.
func TestClocks(t *testing.T) {
	for _, by := range []time.Duration{-time.Hour, time.Hour} {
		t.Run(by.String(), synctested(func(t *testing.T) {
			m := NewMemory(nil)
			o := Options{Lease: 400 * time.Millisecond}
			s := open(t, m, o)
			o.Clock = skewed{clock.System(), by}
			other := open(t, m, o)
			put(t, s, "a", "x")
			h, err := other.Hold(t.Context(), "o", "")
			ok(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err = s.Put(ctx, "o", "a", strings.NewReader("y"), writable)
			cancel()
			is(t, err, context.DeadlineExceeded)
			Abandon(h)
			start := time.Now()
			put(t, s, "a", "z")
			if took := time.Since(start); took < 200*time.Millisecond {
				t.Errorf("a dead holder was waited for %v", took)
			}
			is(t, h.Mark(t.Context(), writable, retired), objectstore.ErrHoldLost)
		}))
	}
}

// synctested is a test whose time is its own.
func synctested(test func(t *testing.T)) func(t *testing.T) {
	return func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, test)
	}
}
