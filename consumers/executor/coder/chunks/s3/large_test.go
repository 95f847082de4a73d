package s3

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"penstock/consumers/executor/coder/chunks"
)

// noise is n bytes that follow from a seed, and reads like a body.
func noise(seed byte, n int64) io.Reader {
	return io.LimitReader(rand.NewChaCha8([32]byte{seed}), n)
}

func bytesOf(t *testing.T, r io.Reader) []byte {
	t.Helper()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// left are the uploads that nobody completed.
func left(t *testing.T, s *Store) (keys []string) {
	t.Helper()
	found, err := s.client.ListMultipartUploads(t.Context(), s.o.Bucket, s.root, "", "", "", page)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range found.Uploads {
		keys = append(keys, u.Key)
	}
	return keys
}

// TestLargeBlobs are uploads in parts: whole, with ranges over parts, and in the memory
// of one part.
func TestLargeBlobs(t *testing.T) {
	s := open(t, options(t))
	for _, size := range []int64{minPart, minPart + 1, 3 * minPart, 4*minPart + 77} {
		if err := s.Put(t.Context(), "large", noise(1, size), size); err != nil {
			t.Fatal(err)
		}
		want := bytesOf(t, noise(1, size))
		for _, r := range [][2]int64{{0, size}, {minPart - 5, 10}, {size - 3, 100}, {size, 1}, {1, 2*minPart + 1}} {
			var b bytes.Buffer
			n, err := s.Get(t.Context(), "large", r[0], r[1], &b)
			if end := min(r[0]+r[1], size); err != nil || n != end-r[0] || !bytes.Equal(b.Bytes(), want[r[0]:end]) {
				t.Errorf("%d: %d at %d: %d, %v", size, r[1], r[0], n, err)
			}
		}
	}
	if l := left(t, s); len(l) > 0 {
		t.Errorf("uploads are left: %v", l)
	}
	const size = 12 * minPart
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := s.Put(t.Context(), "large", noise(2, size), size); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 4*minPart {
		t.Errorf("%d bytes of memory for a blob of %d in parts of %d", used, size, minPart)
	}
}

// TestLargeBlobsThatFail leave nothing, and what was there before stays.
func TestLargeBlobsThatFail(t *testing.T) {
	s := open(t, options(t))
	if err := s.Put(t.Context(), "k", strings.NewReader("old"), 3); err != nil {
		t.Fatal(err)
	}
	cut := errors.New("cut")
	const size = 2*minPart + 9
	for name, test := range map[string]struct {
		r    io.Reader
		want error
	}{
		"a byte short":  {noise(1, size-1), chunks.ErrSize},
		"a part short":  {noise(1, minPart), chunks.ErrSize},
		"a byte more":   {noise(1, size+1), chunks.ErrSize},
		"cut in part 2": {io.MultiReader(noise(1, minPart+1), broken{cut}), cut},
		"cut at end":    {io.MultiReader(noise(1, size), broken{cut}), cut},
	} {
		if err := s.Put(t.Context(), "k", test.r, size); !errors.Is(err, test.want) {
			t.Errorf("%s: %v", name, err)
		}
		if l := left(t, s); len(l) > 0 {
			t.Errorf("%s: uploads are left: %v", name, l)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	stopping := io.MultiReader(noise(1, minPart+5), call(cancel), noise(2, size))
	if err := s.Put(ctx, "k", stopping, size); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	s.tidying.Wait()
	if l := left(t, s); len(l) > 0 {
		t.Errorf("cancelled: uploads are left: %v", l)
	}
	var b bytes.Buffer
	if _, err := s.Get(t.Context(), "k", 0, 10, &b); err != nil || b.String() != "old" {
		t.Errorf("%q, %v", b.String(), err)
	}
}

type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }

// call is a reader of nothing that calls a function.
type call func()

func (c call) Read([]byte) (int, error) {
	c()
	return 0, io.EOF
}

// TestTidy: uploads of the dead are aborted, those that are young and those that aren't
// ours stay.
func TestTidy(t *testing.T) {
	s := open(t, options(t))
	for _, object := range []string{s.object("a"), s.object("b/c"), s.root + "foreign", "elsewhere" + mark} {
		if _, err := s.client.NewMultipartUpload(t.Context(), s.o.Bucket, object, minio.PutObjectOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := s.Tidy(t.Context(), time.Now().Add(-time.Hour)); n != 0 || err != nil {
		t.Errorf("young ones: %d, %v", n, err)
	}
	if n, err := s.Tidy(t.Context(), time.Now().Add(time.Hour)); n != 2 || err != nil {
		t.Errorf("%d aborted, %v", n, err)
	}
	if l := left(t, s); len(l) != 1 {
		t.Errorf("left: %v", l)
	}
}

// TestForeignObjectsAreNotListed, be they without the mark or with a key that isn't one.
func TestForeignObjectsAreNotListed(t *testing.T) {
	s := open(t, options(t))
	for _, object := range []string{s.root + "foreign", s.object("no key~"), "some/where" + mark, "other/a" + mark, s.object("ours")} {
		if _, err := s.client.Client.PutObject(t.Context(), s.o.Bucket, object, strings.NewReader("x"), 1, minio.PutObjectOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := s.List(t.Context(), "", "", 10); err != nil || len(got) != 1 || got[0] != (chunks.Entry{Key: "ours", Bytes: 1}) {
		t.Errorf("%v, %v", got, err)
	}
}
