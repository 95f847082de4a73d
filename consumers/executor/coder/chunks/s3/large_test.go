package s3

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"penstock/consumers/executor/coder/chunks"
	"penstock/consumers/executor/coder/chunks/chunkstest"
)

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

// TestLargeBlobs are uploads in parts, none of which is left.
func TestLargeBlobs(t *testing.T) {
	s := open(t, options(t))
	chunkstest.Large(t, s, minPart, func() int {
		s.tidying.Wait()
		return len(left(t, s))
	})
}

// TestALargeBlobTakesTheMemoryOfAPart.
func TestALargeBlobTakesTheMemoryOfAPart(t *testing.T) {
	s := open(t, options(t))
	const size = 8 * minPart
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := s.Put(t.Context(), "large", chunkstest.Noise(2, size), size); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 4*minPart {
		t.Errorf("%d bytes of memory for a blob of %d in parts of %d", used, size, minPart)
	}
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
