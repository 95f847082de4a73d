// Package chunkstest is the suite that every store of blobs passes.
//
// States and failures: none; a store that breaks its word fails the test.
package chunkstest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"penstock/consumers/executor/coder/chunks"
)

// Suite runs all of it, each test on an empty store that open gives.
func Suite(t *testing.T, open func(t *testing.T) chunks.Store) {
	t.Helper()
	for _, test := range []struct {
		name string
		run  func(t *testing.T, s chunks.Store)
	}{
		{"what is put is got", putGet},
		{"ranges", ranges},
		{"a blob is replaced whole", replace},
		{"a blob of the wrong size isn't stored", wrongSize},
		{"a reader that fails stores nothing", failingReader},
		{"a context that ends stores nothing", ended},
		{"deleted is gone", deletion},
		{"listing", listing},
		{"listing by pages meets every blob once", pages},
		{"keys that aren't", keys},
		{"a writer that fails", failingWriter},
		{"many at once", manyAtOnce},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t, open(t))
		})
	}
}

func put(t *testing.T, s chunks.Store, key, content string) {
	t.Helper()
	if err := s.Put(t.Context(), key, strings.NewReader(content), int64(len(content))); err != nil {
		t.Fatal(err)
	}
}

// content is a blob, or what there is in its place.
func content(t *testing.T, s chunks.Store, key string) string {
	t.Helper()
	var b bytes.Buffer
	n, err := s.Get(t.Context(), key, 0, 1<<40, &b)
	if errors.Is(err, chunks.ErrNotFound) && n == 0 && b.Len() == 0 {
		return "(none)"
	}
	if err != nil || int(n) != b.Len() {
		t.Fatalf("get %s: %d, %v", key, n, err)
	}
	return b.String()
}

func expect(t *testing.T, s chunks.Store, key, want string) {
	t.Helper()
	if got := content(t, s, key); got != want {
		t.Errorf("%s: %.40q, want %.40q", key, got, want)
	}
}

func putGet(t *testing.T, s chunks.Store) {
	if s.Name() == "" {
		t.Error("a store without a name")
	}
	expect(t, s, "a", "(none)")
	large := strings.Repeat("0123456789abcdef", 1<<16)
	for key, c := range map[string]string{"a": "one", "a/b": "two", "a/b/c": "", "x/large": large, "A-Z=0.b": "x"} {
		put(t, s, key, c)
		expect(t, s, key, c)
	}
	expect(t, s, "a", "one")
	expect(t, s, "a/b", "two")
}

func ranges(t *testing.T, s chunks.Store) {
	put(t, s, "k", "0123456789")
	for _, r := range []struct {
		off, n int64
		want   string
	}{
		{0, 10, "0123456789"},
		{0, 0, ""},
		{3, 4, "3456"},
		{8, 10, "89"},
		{10, 1, ""},
		{11, 1, ""},
		{1 << 40, 1, ""},
		{0, 1 << 62, "0123456789"},
		{9, 1<<63 - 1, "9"},
		{1<<63 - 1, 1<<63 - 1, ""},
	} {
		var b bytes.Buffer
		n, err := s.Get(t.Context(), "k", r.off, r.n, &b)
		if err != nil || b.String() != r.want || int(n) != b.Len() {
			t.Errorf("%d at %d: %q, %d, %v", r.n, r.off, b.String(), n, err)
		}
	}
	for _, r := range [][2]int64{{-1, 1}, {0, -1}} {
		if _, err := s.Get(t.Context(), "k", r[0], r[1], io.Discard); !errors.Is(err, chunks.ErrRange) {
			t.Errorf("%v: %v", r, err)
		}
	}
}

func replace(t *testing.T, s chunks.Store) {
	for _, c := range []string{"a long content", "short", "", "again"} {
		put(t, s, "k", c)
		expect(t, s, "k", c)
	}
}

func wrongSize(t *testing.T, s chunks.Store) {
	put(t, s, "old", "old")
	for _, key := range []string{"old", "new"} {
		want := content(t, s, key)
		for _, size := range []int64{-1, 0, 2, 4, 1 << 40} {
			if err := s.Put(t.Context(), key, strings.NewReader("abc"), size); !errors.Is(err, chunks.ErrSize) {
				t.Errorf("%d bytes for 3: %v", size, err)
			}
			expect(t, s, key, want)
		}
	}
	only(t, s, "old")
}

// only says which blobs there are, and no other.
func only(t *testing.T, s chunks.Store, want ...string) {
	t.Helper()
	if got := list(t, s, "", "", 1000); !slices.Equal(got, want) {
		t.Errorf("there are %v, want %v", got, want)
	}
}

func list(t *testing.T, s chunks.Store, prefix, after string, limit int) []string {
	t.Helper()
	entries, err := s.List(t.Context(), prefix, after, limit)
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, e := range entries {
		keys = append(keys, e.Key)
	}
	return keys
}

type broken struct{ err error }

func (b broken) Read([]byte) (int, error)  { return 0, b.err }
func (b broken) Write([]byte) (int, error) { return 0, b.err }

func failingReader(t *testing.T, s chunks.Store) {
	put(t, s, "old", "old")
	cut := errors.New("cut")
	for _, err := range []error{cut, io.ErrUnexpectedEOF} {
		for _, key := range []string{"old", "new"} {
			for _, size := range []int64{3, 10} { // at the end, and before it
				r := io.MultiReader(strings.NewReader("abc"), broken{err})
				if got := s.Put(t.Context(), key, r, size); !errors.Is(got, err) {
					t.Errorf("%s, %d: %v", key, size, got)
				}
			}
		}
	}
	only(t, s, "old")
	expect(t, s, "old", "old")
}

// endless gives bytes for ever and ends the context on the way.
type endless struct {
	left   int
	cancel func()
}

func (e *endless) Read(b []byte) (int, error) {
	if e.left--; e.left == 0 {
		e.cancel()
	}
	return len(b), nil
}

func ended(t *testing.T, s chunks.Store) {
	put(t, s, "old", "old")
	ctx, cancel := context.WithCancel(t.Context())
	if err := s.Put(ctx, "new", &endless{3, cancel}, 1<<50); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := s.Put(ctx, "new", strings.NewReader("abc"), 3); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := s.Get(ctx, "old", 0, 3, io.Discard); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := s.Delete(ctx, "old"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := s.List(ctx, "", "", 1); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	only(t, s, "old")
}

func deletion(t *testing.T, s chunks.Store) {
	for _, key := range []string{"a", "a/b", "a/b/c", "a/d"} {
		put(t, s, key, key)
	}
	for range 2 { // the second time there is nothing, and no error
		for _, key := range []string{"a/b", "a/b/c", "never/was"} {
			if err := s.Delete(t.Context(), key); err != nil {
				t.Error(err)
			}
		}
	}
	only(t, s, "a", "a/d")
	expect(t, s, "a/b/c", "(none)")
	put(t, s, "a/b/c", "back")
	expect(t, s, "a/b/c", "back")
}

// listed are keys whose order by bytes isn't that of folders.
var listed = []string{"a", "a-b", "a.b", "a/b", "a/b-c", "a/b.c", "a/b/c", "a/b0", "a0", "a=/x", "aa", "b", "b/a"}

func listing(t *testing.T, s chunks.Store) {
	only(t, s)
	for i := range listed { // not in order
		key := listed[i*5%len(listed)]
		put(t, s, key, strings.Repeat("x", len(key)))
	}
	for _, prefix := range []string{"", "a", "a/", "a/b", "a/b/", "a-", "b", "c", "a/b/c/d"} {
		for _, after := range append([]string{"", "A", "a/", "a/b/", "z"}, listed...) {
			for _, limit := range []int{0, 1, 3, 100} {
				var want []string
				for _, key := range listed {
					if strings.HasPrefix(key, prefix) && key > after && len(want) < limit {
						want = append(want, key)
					}
				}
				if got := list(t, s, prefix, after, limit); !slices.Equal(got, want) {
					t.Fatalf("%q after %q, %d: %v, want %v", prefix, after, limit, got, want)
				}
			}
		}
	}
	entries, err := s.List(t.Context(), "", "", 100)
	for _, e := range entries {
		if err != nil || e.Bytes != int64(len(e.Key)) {
			t.Errorf("%+v, %v", e, err)
		}
	}
	if _, err := s.List(t.Context(), "", "", -1); !errors.Is(err, chunks.ErrRange) {
		t.Error(err)
	}
}

func pages(t *testing.T, s chunks.Store) {
	var want []string
	for i := range 60 {
		key := fmt.Sprintf("%d/%02d", i/7, i)
		put(t, s, key, "")
		want = append(want, key)
	}
	slices.Sort(want)
	for limit := 1; limit < 10; limit += 3 {
		var got []string
		for after := ""; ; after = got[len(got)-1] {
			page := list(t, s, "", after, limit)
			got = append(got, page...)
			if len(page) < limit {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("pages of %d: %v", limit, got)
		}
	}
}

func keys(t *testing.T, s chunks.Store) {
	for _, key := range []string{
		"", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/.", ".new/x", "a/.b", "~", "a~", "a\\b", "a b",
		"a\x00", "ü", "\xff", "a\n", "C:", "a:b", "%2e%2e", strings.Repeat("x", chunks.MaxPart+1), strings.Repeat("x/", chunks.MaxKey/2) + "xx",
	} {
		if err := s.Put(t.Context(), key, strings.NewReader("x"), 1); !errors.Is(err, chunks.ErrKey) {
			t.Errorf("put %q: %v", key, err)
		}
		if _, err := s.Get(t.Context(), key, 0, 1, io.Discard); !errors.Is(err, chunks.ErrKey) {
			t.Errorf("get %q: %v", key, err)
		}
		if err := s.Delete(t.Context(), key); !errors.Is(err, chunks.ErrKey) {
			t.Errorf("delete %q: %v", key, err)
		}
	}
	only(t, s)
	longest := strings.Repeat("x", chunks.MaxPart) + "/" + strings.Repeat("y", chunks.MaxPart) + "/" + strings.Repeat("z", chunks.MaxKey-2*chunks.MaxPart-2)
	put(t, s, longest, "longest")
	expect(t, s, longest, "longest")
}

func failingWriter(t *testing.T, s chunks.Store) {
	put(t, s, "k", "content")
	if n, err := s.Get(t.Context(), "k", 0, 7, broken{io.ErrClosedPipe}); n != 0 || !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("%d, %v", n, err)
	}
}

// manyAtOnce: of what is written, deleted and read beside each other nobody sees parts,
// and no put fails because a deletion takes its folder away.
func manyAtOnce(t *testing.T, s chunks.Store) {
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			c := strings.Repeat(string(rune('a'+i)), 10_000)
			for range 15 {
				if err := s.Put(t.Context(), "d/e/k", strings.NewReader(c), int64(len(c))); err != nil {
					t.Error(err)
				}
				var b bytes.Buffer
				_, err := s.Get(t.Context(), "d/e/k", 0, 1<<20, &b)
				if err != nil && !errors.Is(err, chunks.ErrNotFound) {
					t.Error(err)
				}
				if got := b.String(); got != "" && got != strings.Repeat(got[:1], 10_000) {
					t.Errorf("%d bytes that nobody wrote", len(got))
				}
				if err := s.Delete(t.Context(), "d/e/k"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	only(t, s)
}
