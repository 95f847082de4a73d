package chunkstest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"penstock/consumers/executor/coder/chunks"
)

// Noise is n bytes that follow from a seed, and reads like a body.
func Noise(seed byte, n int64) io.Reader {
	return io.LimitReader(rand.NewChaCha8([32]byte{seed}), n)
}

// Large tries blobs that a store keeps in parts of so many bytes. left counts what is in
// the medium and belongs to no blob, once what is being tidied up is.
func Large(t *testing.T, s chunks.Store, part int64, left func() int) {
	t.Helper()
	t.Run("ranges over parts", func(t *testing.T) { partRanges(t, s, part, left) })
	t.Run("puts that fail leave nothing", func(t *testing.T) { partFailures(t, s, part, left) })
}

func noise(t *testing.T, seed byte, n int64) []byte {
	t.Helper()
	b, err := io.ReadAll(Noise(seed, n))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func partRanges(t *testing.T, s chunks.Store, part int64, left func() int) {
	for _, size := range []int64{part, part + 1, 2 * part, 4*part + 77} {
		if err := s.Put(t.Context(), "large", Noise(1, size), size); err != nil {
			t.Fatal(err)
		}
		want := noise(t, 1, size)
		for _, r := range [][2]int64{{0, size}, {part - 5, 10}, {size - 3, 100}, {size, 1}, {1, 2*part + 1}, {part, part}} {
			var b bytes.Buffer
			n, err := s.Get(t.Context(), "large", r[0], r[1], &b)
			from, end := min(r[0], size), min(r[0]+r[1], size)
			if err != nil || n != end-from || !bytes.Equal(b.Bytes(), want[from:end]) {
				t.Errorf("%d: %d at %d: %d, %v", size, r[1], r[0], n, err)
			}
		}
		if l, err := s.List(t.Context(), "large", "", 2); err != nil || len(l) != 1 || l[0].Bytes != size {
			t.Errorf("%d: %v, %v", size, l, err)
		}
	}
	if n := left(); n > 0 {
		t.Errorf("replaced: %d are left", n)
	}
	if err := s.Delete(t.Context(), "large"); err != nil || left() > 0 {
		t.Errorf("deleted: %d are left, %v", left(), err)
	}
	only(t, s)
}

// then is a reader of nothing that calls a function.
type then func()

func (f then) Read([]byte) (int, error) {
	f()
	return 0, io.EOF
}

func partFailures(t *testing.T, s chunks.Store, part int64, left func() int) {
	put(t, s, "k", "old")
	cut, wrapped := errors.New("cut"), fmt.Errorf("body: %w", io.EOF)
	size := 3*part + 9
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, test := range []struct {
		name string
		r    io.Reader
		want error
	}{
		{"a byte short", Noise(1, size-1), chunks.ErrSize},
		{"a part short", Noise(1, 2*part), chunks.ErrSize},
		{"a byte more", Noise(1, size+1), chunks.ErrSize},
		{"cut in a part", io.MultiReader(Noise(1, part+1), broken{cut}), cut},
		{"cut at the end", io.MultiReader(Noise(1, size), broken{cut}), cut},
		{"an end that is none", io.MultiReader(Noise(1, part+1), broken{wrapped}), wrapped},
		{"cancelled", io.MultiReader(Noise(1, 2*part+5), then(cancel), Noise(2, size)), context.Canceled},
	} {
		if err := s.Put(ctx, "k", test.r, size); !errors.Is(err, test.want) {
			t.Errorf("%s: %v", test.name, err)
		}
		if n := left(); n > 0 {
			t.Errorf("%s: %d are left", test.name, n)
		}
		expect(t, s, "k", "old")
	}
}

// Bench measures puts and gets of some sizes, a task's and an object's.
func Bench(b *testing.B, s chunks.Store) {
	for _, size := range []int{16 << 10, 512 << 10, 8 << 20} {
		content := strings.Repeat("x", size)
		b.Run(fmt.Sprintf("put/%dKiB", size>>10), func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if err := s.Put(b.Context(), fmt.Sprintf("bench/%d/%d", size, i%8), strings.NewReader(content), int64(size)); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("get/%dKiB", size>>10), func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				if n, err := s.Get(b.Context(), fmt.Sprintf("bench/%d/0", size), 0, int64(size), io.Discard); err != nil || n != int64(size) {
					b.Fatal(n, err)
				}
			}
		})
	}
}
