package chunks_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"penstock/consumers/executor/coder/chunks"
)

// FuzzCheckKey: a key that is taken is a path that stays where it is put, on any
// system, and is the only way to write it.
func FuzzCheckKey(f *testing.F) {
	for _, key := range []string{"a/b.c", "../a", "a/./b", "/a", "a\\..\\b", "a~", ".new/1", "a%2fb", "NUL", "\xff"} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		if err := chunks.CheckKey(key); err != nil {
			if !errors.Is(err, chunks.ErrKey) {
				t.Fatal(err)
			}
			return
		}
		if !filepath.IsLocal(key) || path.Clean(key) != key || strings.Contains(key, "/.") || strings.ContainsAny(key, "\\~:\x00") {
			t.Fatalf("taken: %q", key)
		}
	})
}

// TestExactly: neither fewer nor more, and a wrapped end is an error like others.
func TestExactly(t *testing.T) {
	t.Parallel()
	wrapped := fmt.Errorf("body: %w", io.EOF)
	for _, c := range []struct {
		r    io.Reader
		size int64
		want error
	}{
		{strings.NewReader("abc"), 3, nil},
		{iotest.DataErrReader(strings.NewReader("abc")), 3, nil},
		{iotest.OneByteReader(strings.NewReader("abc")), 3, nil},
		{strings.NewReader(""), 0, nil},
		{strings.NewReader("abc"), 4, chunks.ErrSize},
		{strings.NewReader("abc"), 2, chunks.ErrSize},
		{strings.NewReader("abc"), -1, chunks.ErrSize},
		{io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(wrapped)), 3, wrapped},
		{io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(wrapped)), 4, wrapped},
	} {
		whole, err := io.ReadAll(c.r)
		again := func() io.Reader { return io.MultiReader(bytes.NewReader(whole), end{err}) }
		var b bytes.Buffer
		if err := chunks.Exactly(t.Context(), &b, again(), c.size); !errors.Is(err, c.want) {
			t.Errorf("%d bytes: %v, want %v", c.size, err, c.want)
		}
		if c.size < 0 {
			continue
		}
		if err := chunks.Whole(t.Context(), again(), make([]byte, c.size)); !errors.Is(err, c.want) {
			t.Errorf("%d bytes in memory: %v, want %v", c.size, err, c.want)
		}
	}
}

// TestFill: all of it or an error, whatever the reader is like.
func TestFill(t *testing.T) {
	t.Parallel()
	wrapped, text := fmt.Errorf("body: %w", io.EOF), strings.Repeat("0123456789", 50_000)
	for i, c := range []struct {
		r    io.Reader
		n    int
		want error
	}{
		{strings.NewReader(text), len(text), nil},
		{iotest.OneByteReader(strings.NewReader(text)), 3000, nil},
		{iotest.DataErrReader(strings.NewReader(text)), len(text), nil},
		{strings.NewReader(""), 0, nil},
		{strings.NewReader(text), len(text) + 1, chunks.ErrSize},
		{io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(wrapped)), 4, wrapped},
		{iotest.ErrReader(nil), 1, io.ErrNoProgress},
	} {
		b := make([]byte, c.n)
		if err := chunks.Fill(c.r, b); !errors.Is(err, c.want) || err == nil && string(b) != text[:c.n] {
			t.Errorf("%d: %v, want %v", i, err, c.want)
		}
	}
}

// end is a reader that is at its end, or fails there.
type end struct{ err error }

func (e end) Read([]byte) (int, error) {
	if e.err != nil {
		return 0, e.err
	}
	return 0, io.EOF
}
