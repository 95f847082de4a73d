package objectstoretest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"penstock/infra/objectstore"
)

// Names are owners that are hard to hold: those of Must show 7, and one of the
// greatest length.
var Names = []string{
	"alice", "a@example.com", "2001:db8::1", "100%", "with space", "größe/文書", "../../etc/passwd", ".", "..", "b64=x",
	"Case", "case", "~", "a/b", "a", ".hidden", "%2e%2e", "a b/c d", "#?&+", "*", ">", "a.b", "-", strings.Repeat("a", 200), strings.Repeat("a", 201), strings.Repeat("ä", 512),
	strings.Repeat("/", 1024), strings.Repeat("a", 400), "\x00\xff",
}

// Options say what of the suite needs a hand from the backend's test, and how
// hard it is to be. The zero value leaves out what needs a hand.
type Options struct {
	// Foreign puts things into the place of a store, beside and among the owner's
	// data, that are nobody's data, and returns a function that fails the test
	// unless they are as they were.
	Foreign func(t *testing.T, s objectstore.Store, owner string) (check func(t *testing.T))
	// Large is the size of the large object in bytes. Defaults to 32 MiB.
	Large int64
	// Leave leaves in the place of a store what a process leaves that dies while
	// it puts an object of the owner, and returns a function that fails the test
	// if any of it is still there.
	Leave func(t *testing.T, s objectstore.Store, owner string) (gone func(t *testing.T))
	// Lose makes the barrier of a Held go as it does when its holder's machine
	// dies, or the line to it: without a Release.
	Lose func(t *testing.T, s objectstore.Store, h objectstore.Held)
	// Many is the number of objects of the owner with many. Defaults to 200.
	Many int
	// Memory is by how many bytes the heap may grow while the large object is
	// written and read. Defaults to half of Large; negative checks nothing, for a
	// place that is in this process's memory.
	Memory int64
	// Other opens the place of a store once more, as another process does: the two
	// share nothing in memory.
	Other func(t *testing.T, s objectstore.Store) objectstore.Store
}

// test is a part of the suite.
type test func(t *testing.T, s objectstore.Store, o *Options)

// Run runs the whole suite. newStore returns a fresh store each time.
func Run(t *testing.T, newStore func(t *testing.T) objectstore.Store, options ...Options) {
	var o Options
	if len(options) > 0 {
		o = options[0]
	}
	o.Large, o.Many = cmp.Or(o.Large, 32<<20), cmp.Or(o.Many, 200)
	o.Memory = cmp.Or(o.Memory, o.Large/2)
	probe := newStore(t)
	tests := o.tests(probe)
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		t.Run(name, func(t *testing.T) { tests[name](t, newStore(t), &o) })
	}
	c := probe.Capabilities()
	t.Logf("barrier: %v, durable: %v; %d tests", c.Barrier, c.Durable, len(tests))
}

func plain(f func(*testing.T, objectstore.Store)) test {
	return func(t *testing.T, s objectstore.Store, _ *Options) { f(t, s) }
}

// tests are those that a store like s must pass.
func (o *Options) tests(s objectstore.Store) map[string]test {
	tests := map[string]test{
		"names":        plain(testNames),
		"object names": plain(testObjectNames),
		"objects":      plain(testObjects),
		"bad names":    plain(testBadNames),
		"absent":       plain(testAbsent),
		"breaks off":   plain(testBreaksOff),
		"versions":     plain(testVersions),
		"marks":        plain(testMarks),
		"marks races":  plain(testMarkRace),
		"closed":       plain(testClosed),
		"delete":       plain(testDelete),
		"large":        testLarge,
		"many":         testMany,
		"readers":      plain(testReaders),
		"writers":      plain(testWriters),
		"repeats":      plain(testRepeats),
	}
	add := func(when bool, more map[string]test) {
		if when {
			maps.Copy(tests, more)
		}
	}
	barrier := s.Capabilities().Barrier
	add(!barrier, map[string]test{"no barrier": plain(testNoBarrier)})
	add(barrier, map[string]test{
		"hold":              plain(testHold),
		"hold and changed":  plain(testHoldChanged),
		"hold keeps off":    plain(testHoldKeepsOff),
		"hold and delete":   plain(testHoldDelete),
		"hold given up":     plain(testHoldGivenUp),
		"no write is lost":  plain(testNoWriteLost),
		"delete and create": plain(testDeleteCreateRace),
	})
	add(barrier && o.Lose != nil, map[string]test{"hold lost": testHoldLost})
	add(barrier && o.Other != nil, map[string]test{"hold by another": testHoldByAnother, "writers of two": testWritersOfTwo})
	add(o.Foreign != nil, map[string]test{"foreign": testForeign})
	add(o.Leave != nil, map[string]test{"leftovers": testLeftovers})
	_, records := s.(objectstore.Records)
	add(records, map[string]test{
		"append":         plain(testAppend),
		"append repeats": plain(testAppendRepeats),
		"append closed":  plain(testAppendClosed),
	})
	return tests
}

var writable objectstore.Mark // a copy that may be written to

func put(t *testing.T, s objectstore.Store, owner, name, content string) objectstore.Object {
	t.Helper()
	o, err := s.Put(t.Context(), owner, name, strings.NewReader(content), writable)
	ok(t, err)
	return o
}

func get(t *testing.T, s objectstore.Store, owner, name string) string {
	t.Helper()
	r, err := s.Open(t.Context(), owner, name)
	ok(t, err)
	b, err := io.ReadAll(r)
	ok(t, err)
	ok(t, r.Close())
	return string(b)
}

func list(t *testing.T, s objectstore.Store, owner string) objectstore.Listing {
	t.Helper()
	l, err := s.List(t.Context(), owner)
	ok(t, err)
	return l
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func is(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got error %v, want %v", err, want)
	}
}

func testNames(t *testing.T, s objectstore.Store) {
	for _, owner := range Names {
		put(t, s, owner, "object", "of "+owner)
	}
	seen := map[string]int{}
	ok(t, s.Owners(t.Context(), func(owner string, m objectstore.Mark) error {
		if m.State != objectstore.Unmarked {
			t.Errorf("owner %.40q is %v", owner, m)
		}
		seen[owner]++
		return nil
	}))
	for _, owner := range Names {
		if got := get(t, s, owner, "object"); got != "of "+owner {
			t.Errorf("owner %.40q holds %.40q", owner, got)
		}
		if l := list(t, s, owner); len(l.Objects) != 1 {
			t.Errorf("owner %.40q has %d objects", owner, len(l.Objects))
		}
		if seen[owner] != 1 {
			t.Errorf("owner %.40q was listed %d times", owner, seen[owner])
		}
		delete(seen, owner)
	}
	if len(seen) > 0 {
		t.Errorf("listed besides: %.200v", seen)
	}
	stop := errors.New("enough")
	is(t, s.Owners(t.Context(), func(string, objectstore.Mark) error { return stop }), stop)
	for _, owner := range Names {
		ok(t, s.Delete(t.Context(), owner, writable))
		if m, err := s.Stat(t.Context(), owner); err != nil || m.State != objectstore.Absent {
			t.Errorf("deleted owner %.40q is %v, %v", owner, m, err)
		}
	}
	ok(t, s.Owners(t.Context(), func(owner string, _ objectstore.Mark) error {
		t.Errorf("owner %.40q is still there", owner)
		return nil
	}))
}

func testObjects(t *testing.T, s objectstore.Store) {
	contents := map[string]string{"b": "2", "a/x": "1", "a.b": "", "a/y/z": "deep", ".hidden": "too", "sp ace": "ü"}
	var bytes int64
	for _, name := range slices.Sorted(maps.Keys(contents)) {
		o := put(t, s, "o", name, contents[name])
		sum := sha256.Sum256([]byte(contents[name]))
		if o.Name != name || o.Size != int64(len(contents[name])) || o.Digest != hex.EncodeToString(sum[:]) || o.Version == "" {
			t.Errorf("put %q returned %+v", name, o)
		}
		d, err := s.Digest(t.Context(), "o", name)
		ok(t, err)
		if d != o.Digest {
			t.Errorf("digest of %q is %s, put said %s", name, d, o.Digest)
		}
		bytes += o.Size
	}
	l := list(t, s, "o")
	var names []string
	for _, o := range l.Objects {
		names = append(names, o.Name)
		if got := get(t, s, "o", o.Name); got != contents[o.Name] {
			t.Errorf("%q holds %q", o.Name, got)
		}
	}
	if want := slices.Sorted(maps.Keys(contents)); !slices.Equal(names, want) || l.Bytes != bytes {
		t.Errorf("listed %q with %d bytes, want %q with %d", names, l.Bytes, want, bytes)
	}
	ok(t, s.Remove(t.Context(), "o", "a/y/z", writable))
	ok(t, s.Remove(t.Context(), "o", "a/y/z", writable))
	_, err := s.Open(t.Context(), "o", "a/y/z")
	is(t, err, objectstore.ErrNoObject)
	put(t, s, "o", "a/y", "was a folder")
	if got := get(t, s, "o", "a/y"); got != "was a folder" {
		t.Errorf("a/y holds %q", got)
	}
}

func testBadNames(t *testing.T, s objectstore.Store) {
	for _, owner := range []string{"", strings.Repeat("x", objectstore.MaxOwner+1)} {
		_, err := s.Put(t.Context(), owner, "a", strings.NewReader("x"), writable)
		is(t, err, objectstore.ErrName)
		_, err = s.Stat(t.Context(), owner)
		is(t, err, objectstore.ErrName)
	}
	for _, name := range []string{"", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/./b", strings.Repeat("n", 256)} {
		_, err := s.Put(t.Context(), "o", name, strings.NewReader("x"), writable)
		is(t, err, objectstore.ErrName)
		_, err = s.Open(t.Context(), "o", name)
		is(t, err, objectstore.ErrName)
		is(t, s.Remove(t.Context(), "o", name, writable), objectstore.ErrName)
	}
	if m, err := s.Stat(t.Context(), "o"); err != nil || m.State != objectstore.Absent {
		t.Errorf("after refused writes the owner is %v, %v", m, err)
	}
}

func testAbsent(t *testing.T, s objectstore.Store) {
	ctx := t.Context()
	_, err := s.List(ctx, "o")
	is(t, err, objectstore.ErrNoOwner)
	_, err = s.Open(ctx, "o", "a")
	is(t, err, objectstore.ErrNoOwner)
	_, err = s.Digest(ctx, "o", "a")
	is(t, err, objectstore.ErrNoOwner)
	is(t, s.Remove(ctx, "o", "a", writable), objectstore.ErrNoOwner)
	ok(t, s.Delete(ctx, "o", writable))
	ok(t, s.Create(ctx, "o", writable))
	ok(t, s.Create(ctx, "o", writable))
	if l := list(t, s, "o"); len(l.Objects) != 0 || l.Version == "" || l.Mark != writable {
		t.Errorf("an empty owner lists as %+v", l)
	}
	_, err = s.Open(ctx, "o", "a")
	is(t, err, objectstore.ErrNoObject)
}

type failing struct{ r io.Reader }

var errBroken = errors.New("the line is cut")

func (f failing) Read(b []byte) (int, error) {
	n, err := f.r.Read(b)
	if errors.Is(err, io.EOF) {
		err = errBroken
	}
	return n, err
}

func testBreaksOff(t *testing.T, s objectstore.Store) {
	big := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	o, err := s.Put(t.Context(), "o", "big", bytes.NewReader(big), writable)
	ok(t, err)
	if o.Size != int64(len(big)) || get(t, s, "o", "big") != string(big) {
		t.Errorf("a megabyte came back as %+v", o)
	}
	// A write that breaks off leaves the old object, small or large.
	for _, b := range [][]byte{big[:100], big[:300_000]} {
		_, err = s.Put(t.Context(), "o", "big", failing{bytes.NewReader(b)}, writable)
		is(t, err, errBroken)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.Put(ctx, "o", "big", bytes.NewReader(big[:10]), writable)
	is(t, err, context.Canceled)
	if l := list(t, s, "o"); len(l.Objects) != 1 || l.Objects[0].Version != o.Version {
		t.Errorf("after broken writes: %+v, want %+v", l.Objects, o)
	}
}

func testVersions(t *testing.T, s objectstore.Store) {
	seen := map[string]bool{}
	var objects []string
	for i := range 200 {
		o := put(t, s, "o", "a", "same size "+string(rune('a'+i%2)))
		objects = append(objects, o.Version)
		l := list(t, s, "o")
		if seen[l.Version] {
			t.Fatalf("after write %d the version is one of before", i)
		}
		seen[l.Version] = true
		if again := list(t, s, "o"); again.Version != l.Version || again.Objects[0].Version != o.Version {
			t.Fatalf("the version changed without a write")
		}
	}
	slices.Sort(objects)
	if n := len(slices.Compact(objects)); n != 200 {
		t.Errorf("200 contents have %d versions", n)
	}
	before := list(t, s, "o").Version
	put(t, s, "o", "b", "")
	between := list(t, s, "o").Version
	ok(t, s.Remove(t.Context(), "o", "b", writable))
	if after := list(t, s, "o").Version; between == before || after == between {
		t.Errorf("versions without, with and without an object: %s, %s, %s", before, between, after)
	}
}
