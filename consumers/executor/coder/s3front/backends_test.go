package s3front

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"penstock/consumers/executor/coder"
	"penstock/consumers/executor/coder/chunks"
	"penstock/consumers/executor/coder/chunks/dir"
	"penstock/consumers/executor/coder/chunks/jetstream"
	chunkss3 "penstock/consumers/executor/coder/chunks/s3"
	"penstock/consumers/executor/coder/queue"
	"penstock/infra/bus/bustest"
	"penstock/infra/testserver"
)

// whole runs the long version: 1 GB over every backend.
func whole() bool { return os.Getenv("PENSTOCK_WHOLE") == "1" }

// latest is how long a server here takes at most to carry out what its client has given up.
func latest() time.Duration {
	if whole() {
		return 30 * time.Second
	}
	return 4 * time.Second
}

// cycling is a chooser that takes one code after another.
type cycling struct{ n atomic.Int64 }

func (*cycling) Arrived(int) {}

func (c *cycling) Choose(queue.Op, int) queue.Code {
	all := [...]queue.Code{{N: 1, K: 1}, {N: 2, K: 1}, {N: 3, K: 2}, {N: 6, K: 3}, {N: 12, K: 6}, {N: 2, K: 2}, {N: 4, K: 3}}
	return all[int(c.n.Add(1))%len(all)]
}

// backends are stores of every kind.
var backends = []struct {
	name string
	// most is the size of the largest object of the short version.
	most int64
	open func(t *testing.T) []chunks.Store
}{
	{"dir", 64 << 20, func(t *testing.T) []chunks.Store { return dirs(t, 1) }},
	{"six dirs", 2*coder.MinPart + 1, func(t *testing.T) []chunks.Store { return dirs(t, 6) }},
	{"s3", 2*coder.MinPart + 1, func(t *testing.T) []chunks.Store {
		server := testserver.VersityGW(t)
		s, err := chunkss3.New(chunkss3.Options{
			Name: "s3", Endpoint: server.Endpoint, Region: server.Region, Bucket: server.Bucket(t),
			AccessKey: server.AccessKey, SecretKey: server.SecretKey, Late: latest(),
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return []chunks.Store{s}
	}},
	{"jetstream", 2*coder.MinPart + 1, func(t *testing.T) []chunks.Store {
		s, err := jetstream.Open(t.Context(), jetstream.Options{Name: "jetstream", Bucket: "front", Late: latest(), JS: bustest.Client(t, bustest.Start(t)).JS})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return []chunks.Store{s}
	}},
}

func dirs(t *testing.T, n int) (all []chunks.Store) {
	t.Helper()
	for i := range n {
		s, err := dir.Open(fmt.Sprintf("dir-%d", i), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		all = append(all, s)
	}
	return all
}

// file makes a file of noise.
func file(t *testing.T, size int64) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), fmt.Sprint(size))
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	piece := noise(4<<20, uint64(size)+1)
	for at := int64(0); at < size; at += int64(len(piece)) {
		piece[0]++ // no two pieces are the same
		if _, err := f.Write(piece[:min(int64(len(piece)), size-at)]); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return name
}

// same compares what r gives with a part of a file.
func same(r io.Reader, name string, off, n int64) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	want := bufio.NewReaderSize(io.NewSectionReader(f, off, n), 1<<20)
	a, b := make([]byte, 1<<20), make([]byte, 1<<20)
	for at := int64(0); ; {
		i, errA := io.ReadFull(r, a)
		j, errB := io.ReadFull(want, b)
		if i != j || !bytes.Equal(a[:i], b[:j]) {
			return fmt.Errorf("differs between %d and %d of %d", at, at+int64(max(i, j)), n)
		}
		at += int64(i)
		if errA != nil || errB != nil {
			if at != n || errA != errB { //nolint:errorlint // both are those of ReadFull
				return fmt.Errorf("%d of %d bytes: %w", at, n, errA)
			}
			return nil
		}
	}
}

// TestBackends: clients that nobody here wrote put, get, range, list, delete and upload
// in parts over stores of every kind, byte for byte. When all is deleted, nothing is left.
func TestBackends(t *testing.T) {
	t.Parallel()
	for _, kind := range backends {
		t.Run(kind.name, func(t *testing.T) {
			if !whole() { // objects of 1 GB, one backend after another: else all wait for one disk
				t.Parallel()
			}
			e := over(t, func(o *coder.Options) {
				o.Chooser, o.Segment = &cycling{}, 0
				if whole() {
					o.TaskTimeout = time.Minute
				}
			}, kind.open(t)...)
			w := serve(t, e, nil)
			sizes := []int64{0, 1, 64<<10 - 1, 3<<20 + 7, kind.most}
			switch {
			case whole():
				sizes = append(sizes, 64<<20, 1<<30)
			case racing:
				sizes[len(sizes)-1] = 2*coder.MinPart + 1
			}
			t.Run("sdk", func(t *testing.T) { bySDK(t, w, sizes) })
			at := testserver.S3{Endpoint: w.url, Region: region, AccessKey: access, SecretKey: testKeys()[access].Secret}
			programs := []*testserver.S3Program{testserver.Rclone(t, at)}
			if whole() || kind.name == "dir" { // each of its calls takes half a second to start
				programs = testserver.S3Programs(t, at)
			}
			for _, p := range programs {
				t.Run(p.Name, func(t *testing.T) { byProgram(t, p, sizes) })
			}
			e.deleted()
			all, err := e.Buckets(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range all {
				e.nothing(b.Name)
			}
		})
	}
}

// bySDK uses AWS's client for Go.
func bySDK(t *testing.T, w *world, sizes []int64) {
	c, ctx := w.sdk(nil), t.Context()
	b := w.bucket("by-sdk")
	for _, size := range sizes {
		name, key := file(t, size), fmt.Sprintf("a/%d", size)
		if size <= 1<<30/2 {
			f, err := os.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.PutObject(ctx, &s3.PutObjectInput{Bucket: &b, Key: &key, Body: f}); err != nil {
				t.Fatalf("put %d: %v", size, err)
			}
			_ = f.Close()
		} else {
			upload(t, c, b, key, name, size)
		}
		got, err := c.GetObject(ctx, &s3.GetObjectInput{Bucket: &b, Key: &key})
		if err != nil {
			t.Fatalf("get %d: %v", size, err)
		}
		if err := same(got.Body, name, 0, size); err != nil {
			t.Errorf("get %d: %v", size, err)
		}
		_ = got.Body.Close()
		for _, r := range [][2]int64{{0, 1}, {size / 3, size / 2}, {size - 1, 1}, {size / 2, 70_000}} {
			off, n := r[0], min(r[1], size-r[0])
			if off < 0 || n <= 0 {
				continue
			}
			got, err := c.GetObject(ctx, &s3.GetObjectInput{Bucket: &b, Key: &key, Range: aws.String(fmt.Sprintf("bytes=%d-%d", off, off+n-1))})
			if err != nil {
				t.Fatalf("range of %d: %v", size, err)
			}
			if err := same(got.Body, name, off, n); err != nil {
				t.Errorf("range of %d from %d: %v", size, off, err)
			}
			_ = got.Body.Close()
		}
		if size >= 2*coder.MinPart {
			upload(t, c, b, key, name, size)
			got, err := c.GetObject(ctx, &s3.GetObjectInput{Bucket: &b, Key: &key})
			if err != nil {
				t.Fatalf("get %d in parts: %v", size, err)
			}
			if err := same(got.Body, name, 0, size); err != nil {
				t.Errorf("get %d in parts: %v", size, err)
			}
			_ = got.Body.Close()
		}
		remove(t, name)
	}
	list, err := c.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &b})
	if err != nil || len(list.Contents) != len(sizesOf(sizes)) {
		t.Fatalf("list: %+v, %v", list, err)
	}
	for _, o := range list.Contents {
		if _, err := c.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &b, Key: o.Key}); err != nil {
			t.Error(err)
		}
	}
}

// remove removes a file that isn't needed any more: some have a gigabyte.
func remove(t *testing.T, name string) {
	t.Helper()
	if err := os.Remove(name); err != nil {
		t.Error(err)
	}
}

// sizesOf is sizes without repeats.
func sizesOf(sizes []int64) []int64 { return slices.Compact(slices.Sorted(slices.Values(sizes))) }

// upload puts a file in parts.
func upload(t *testing.T, c *s3.Client, b, key, name string, size int64) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	u, err := c.CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{Bucket: &b, Key: &key})
	if err != nil {
		t.Fatal(err)
	}
	part := max(int64(coder.MinPart), size/20)
	var done types.CompletedMultipartUpload
	for at, n := int64(0), int32(1); at < size; at, n = at+part, n+1 {
		p, err := c.UploadPart(t.Context(), &s3.UploadPartInput{
			Bucket: &b, Key: &key, UploadId: u.UploadId, PartNumber: &n, Body: io.NewSectionReader(f, at, min(part, size-at)),
		})
		if err != nil {
			t.Fatalf("part %d: %v", n, err)
		}
		done.Parts = append(done.Parts, types.CompletedPart{PartNumber: &n, ETag: p.ETag, ChecksumCRC32: p.ChecksumCRC32})
	}
	if _, err := c.CompleteMultipartUpload(t.Context(), &s3.CompleteMultipartUploadInput{Bucket: &b, Key: &key, UploadId: u.UploadId, MultipartUpload: &done}); err != nil {
		t.Fatal(err)
	}
}

// byProgram uses a program of the command line.
func byProgram(t *testing.T, p *testserver.S3Program, sizes []int64) {
	ctx, b := t.Context(), "by-"+p.Name
	if err := p.MakeBucket(ctx, b); err != nil {
		t.Fatal(err)
	}
	var want []testserver.Listed
	if !whole() { // starting a program takes longer than what it does
		sizes = []int64{0, 70_001, 2*testserver.MinPart + 1}
	}
	for _, size := range sizesOf(sizes) {
		name, key := file(t, size), fmt.Sprintf("b/%d", size)
		put := p.Put(ctx, b, key, name)
		if size > testserver.MinPart {
			put = p.PutParts(ctx, b, key, name, max(testserver.MinPart, int(size/20)))
		}
		if put != nil {
			t.Fatalf("put %d: %v", size, put)
		}
		got := filepath.Join(t.TempDir(), "got")
		if err := p.Get(ctx, b, key, got); err != nil {
			t.Fatalf("get %d: %v", size, err)
		}
		f, err := os.Open(got)
		if err != nil {
			t.Fatal(err)
		}
		if err := same(f, name, 0, size); err != nil {
			t.Errorf("get %d: %v", size, err)
		}
		_ = f.Close()
		remove(t, got)
		if section, err := p.Range(ctx, b, key, size/3, min(70_000, size/2)); size > 1 && p.Name != "s3cmd" {
			if err == nil {
				err = same(bytes.NewReader(section), name, size/3, min(70_000, size/2))
			}
			if err != nil {
				t.Errorf("range of %d: %v", size, err)
			}
		}
		want = append(want, testserver.Listed{Key: key, Bytes: size})
		remove(t, name)
	}
	got, err := p.List(ctx, b)
	less := func(a, b testserver.Listed) int { return int(a.Bytes - b.Bytes) }
	slices.SortFunc(got, less)
	if slices.SortFunc(want, less); err != nil || !slices.Equal(got, want) {
		t.Errorf("list: %+v, %v, expected %+v", got, err, want)
	}
	for _, l := range want {
		if err := p.Delete(ctx, b, l.Key); err != nil {
			t.Error(err)
		}
	}
}
