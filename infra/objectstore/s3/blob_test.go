package s3

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"penstock/infra/objectstore"
)

// noise returns bytes in which parts that are swapped or repeated show.
func noise(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(n)}).Read(b) // never fails
	return b
}

func read(t *testing.T, b *bucket, id string) []byte {
	t.Helper()
	r, err := b.OpenBlob(t.Context(), "o", id)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	return got
}

// pending returns the ids of uploads that are neither completed nor aborted.
func pending(t *testing.T, b *bucket) (keys []string) {
	t.Helper()
	if err := b.uploads(t.Context(), string(b.layout), func(u uploaded) error { keys = append(keys, u.key); return nil }); err != nil {
		t.Fatal(err)
	}
	return keys
}

func listed(t *testing.T, b *bucket) (ids []string) {
	t.Helper()
	if err := b.Blobs(t.Context(), "o", func(id string, modified time.Time) error {
		if age := time.Since(modified); age < -time.Minute || age > time.Minute {
			t.Errorf("%s was made %v ago", id, age)
		}
		ids = append(ids, id)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return ids
}

// TestSizes: objects of all the sizes at which the way of sending changes.
func TestSizes(t *testing.T) {
	b := open(t, options(t)).b
	for _, n := range []int{0, 1, small - 1, small, small + 1, minPart - 1, minPart, minPart + 1, 2 * minPart, 2*minPart + 77} {
		want := noise(n)
		// A reader that gives little at a time, as the network does.
		size, err := b.PutBlob(t.Context(), "o", "id", &dribble{r: bytes.NewReader(want)})
		if err != nil || size != int64(n) {
			t.Fatalf("%d bytes: wrote %d, %v", n, size, err)
		}
		if !bytes.Equal(read(t, b, "id"), want) {
			t.Errorf("%d bytes came back as others", n)
		}
	}
	if p := pending(t, b); len(p) > 0 {
		t.Errorf("uploads are left: %q", p)
	}
}

type dribble struct{ r io.Reader }

func (d *dribble) Read(p []byte) (int, error) { return d.r.Read(p[:min(len(p), 60_001)]) }

// TestMemory: an object is not held in memory, however large.
func TestMemory(t *testing.T) {
	b := open(t, options(t)).b
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	const size = 48 << 20
	if n, err := b.PutBlob(t.Context(), "o", "id", io.LimitReader(&dribble{zeros{}}, size)); err != nil || n != size {
		t.Fatal(n, err)
	}
	r, err := b.OpenBlob(t.Context(), "o", "id")
	if err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, r)
	if err = errors.Join(err, r.Close()); err != nil || n != size {
		t.Fatal(n, err)
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 3*minPart {
		t.Errorf("writing and reading %d bytes allocated %d, a part is %d", size, grown, minPart)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// cutShort is a reader whose source goes away with the error that readers of the
// network give then.
type cutShort struct{ r io.Reader }

func (c *cutShort) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// TestBrokenWrites: a write that breaks off is an error, and no upload is left.
func TestBrokenWrites(t *testing.T) {
	o := options(t)
	o.maxParts = 2
	b := open(t, o).b
	for _, n := range []int{100, small + 5, minPart + 5} {
		_, err := b.PutBlob(t.Context(), "o", "id", &cutShort{bytes.NewReader(noise(n))})
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cut off after %d bytes: %v", n, err)
		}
	}
	if _, err := b.PutBlob(t.Context(), "o", "id", io.LimitReader(zeros{}, 2*minPart+1)); !errors.Is(err, ErrParts) {
		t.Errorf("more parts than there may be: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err := b.PutBlob(ctx, "o", "id", io.MultiReader(io.LimitReader(zeros{}, minPart+1), readerFunc(func([]byte) (int, error) {
		cancel()
		return 0, io.EOF
	})))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if p := pending(t, b); len(p) > 0 {
		t.Errorf("uploads are left: %q", p)
	}
	if _, err := b.OpenBlob(t.Context(), "o", "id"); !errors.Is(err, objectstore.ErrNoObject) {
		t.Errorf("something was written: %v", err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestUploadsInTrouble: each step of an upload loses its answer once, after the
// server has done it or before.
func TestUploadsInTrouble(t *testing.T) {
	query := func(r *http.Request, name string) bool { return r.URL.Query().Has(name) }
	steps := map[string]func(*http.Request) bool{
		"begin":    func(r *http.Request) bool { return r.Method == http.MethodPost && query(r, "uploads") },
		"part":     func(r *http.Request) bool { return isPut(r) && query(r, "partNumber") },
		"complete": func(r *http.Request) bool { return r.Method == http.MethodPost && query(r, "uploadId") },
	}
	want := noise(minPart + 1000)
	p := newProxy(t, nil)
	o := p.options(t)
	o.Clock = newRushed()
	b := open(t, o).b
	for name, step := range steps {
		for when, f := range map[string]fault{
			"after":  func(_ http.ResponseWriter, _ *http.Request, forward func() *answered) bool { forward(); return cut() },
			"before": func(http.ResponseWriter, *http.Request, func() *answered) bool { return cut() },
		} {
			p.set(once(1, step, f))
			if n, err := b.PutBlob(t.Context(), "o", name+"-"+when, bytes.NewReader(want)); err != nil || n != int64(len(want)) {
				t.Errorf("%s, cut %s: %d, %v", name, when, n, err)
				continue
			}
			if !bytes.Equal(read(t, b, name+"-"+when), want) {
				t.Errorf("%s, cut %s: other bytes came back", name, when)
			}
			if left := pending(t, b); len(left) > 0 {
				t.Errorf("%s, cut %s: uploads are left: %q", name, when, left)
			}
		}
	}
	// One that can't be completed leaves nothing either, though nothing is known of
	// its beginning.
	p.set(func(_ http.ResponseWriter, r *http.Request, forward func() *answered) bool {
		if steps["begin"](r) {
			forward()
			return cut()
		}
		return false
	})
	if _, err := b.PutBlob(t.Context(), "o", "never", bytes.NewReader(want)); err == nil {
		t.Error("an upload that never began was completed")
	}
	if left := pending(t, b); len(left) > 0 {
		t.Errorf("uploads are left: %q", left)
	}
}

// TestLeftovers: what a process leaves that dies during an upload is listed and
// deleted like an object.
func TestLeftovers(t *testing.T) {
	o := options(t)
	b := open(t, o).b
	key, _ := b.layout.blob("o", "Left_1")
	for range 2 {
		if _, err := b.wire.NewMultipartUpload(t.Context(), o.Bucket, key, minio.PutObjectOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.PutBlob(t.Context(), "o", "whole", strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	other := open(t, o).b
	if ids := listed(t, other); len(ids) != 3 || ids[0] != "whole" || ids[1] != "Left_1" {
		t.Errorf("listed are %q", ids)
	}
	if err := other.DeleteBlob(t.Context(), "o", "Left_1"); err != nil {
		t.Fatal(err)
	}
	if ids := listed(t, b); len(ids) != 1 || len(pending(t, b)) != 0 {
		t.Errorf("after the deletion: %q", ids)
	}
	for range 2 {
		if err := b.DeleteBlob(t.Context(), "o", "whole"); err != nil {
			t.Error(err)
		}
	}
}

// TestReadsGoOn: a reading that is cut off goes on where it was, and one whose
// object is deleted meanwhile does not end as if it were whole.
func TestReadsGoOn(t *testing.T) {
	want := noise(3 << 20)
	p := newProxy(t, nil)
	o := p.options(t)
	o.Clock = newRushed()
	b := open(t, o).b
	if _, err := b.PutBlob(t.Context(), "o", "id", bytes.NewReader(want)); err != nil {
		t.Fatal(err)
	}
	half := func(w http.ResponseWriter, _ *http.Request, forward func() *answered) bool {
		a := forward()
		for k, v := range a.header {
			w.Header()[k] = v
		}
		w.WriteHeader(a.status)
		_, _ = w.Write(a.body[:len(a.body)/2])
		return cut()
	}
	p.set(once(4, isGet, half))
	if !bytes.Equal(read(t, b, "id"), want) {
		t.Error("other bytes came back")
	}
	if n := p.requests(http.MethodGet); n < 5 {
		t.Errorf("only %d requests", n)
	}
	// A service that begins anew is not taken for one that goes on.
	whole := once(1, isGet, half)
	p.set(func(w http.ResponseWriter, r *http.Request, forward func() *answered) bool {
		if whole(w, r, forward) {
			return true
		}
		r.Header.Del("Range")
		return false
	})
	r, err := b.OpenBlob(t.Context(), "o", "id")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(r); !errors.Is(err, errRange) {
		t.Errorf("a service without ranges: %v", err)
	}
	_ = r.Close()
	p.set(once(1, isGet, half))
	if r, err = b.OpenBlob(t.Context(), "o", "id"); err != nil {
		t.Fatal(err)
	}
	if err := b.DeleteBlob(t.Context(), "o", "id"); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err == nil || len(got) == len(want) {
		t.Errorf("a deleted object was read to its end: %d bytes, %v", len(got), err)
	}
	if err := errors.Join(r.Close(), r.Close()); err != nil {
		t.Error(err)
	}
}
