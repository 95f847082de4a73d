package shipping_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"penstock/consumers/executor/coder/catalog"
	"penstock/consumers/executor/coder/catalog/catalogtest"
	"penstock/consumers/executor/coder/catalog/shipping"
	"penstock/consumers/executor/coder/chunks"
	"penstock/consumers/executor/coder/object"
)

func TestMain(m *testing.M) {
	catalogtest.FewerChecks()
	goleak.VerifyTestMain(m)
}

var errAway = errors.New("store is away")

// flaky is a store that fails when it is told to.
type flaky struct {
	*chunks.Memory
	mu   sync.Mutex
	fail func(op, key string) error
}

func (f *flaky) told(op, key string) error {
	f.mu.Lock()
	fail := f.fail
	f.mu.Unlock()
	if fail == nil {
		return nil
	}
	return fail(op, key)
}

func (f *flaky) set(fail func(op, key string) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = fail
}

func (f *flaky) Put(ctx context.Context, key string, r io.Reader, size int64) error {
	if err := f.told("put", key); err != nil {
		return err
	}
	return f.Memory.Put(ctx, key, r, size)
}

func (f *flaky) Get(ctx context.Context, key string, off, n int64, w io.Writer) (int64, error) {
	if err := f.told("get", key); err != nil {
		return 0, err
	}
	return f.Memory.Get(ctx, key, off, n, w)
}

func (f *flaky) List(ctx context.Context, prefix, after string, limit int) ([]chunks.Entry, error) {
	if err := f.told("list", prefix); err != nil {
		return nil, err
	}
	return f.Memory.List(ctx, prefix, after, limit)
}

func away(string, string) error { return errAway }

func stores(n int) ([]*flaky, []chunks.Store) {
	var a []*flaky
	var b []chunks.Store
	for i := range n {
		f := &flaky{Memory: chunks.NewMemory(fmt.Sprint("s", i))}
		a, b = append(a, f), append(b, f)
	}
	return a, b
}

// keys are all keys of the log in a store.
func (f *flaky) keys(t testing.TB) (keys []string) {
	t.Helper()
	list, err := f.Memory.List(t.Context(), "objects/log/", "", 1<<20)
	must(t, err)
	for _, e := range list {
		keys = append(keys, e.Key)
	}
	return keys
}

func (f *flaky) read(t testing.TB, key string) []byte {
	t.Helper()
	var b bytes.Buffer
	_, err := f.Memory.Get(t.Context(), key, 0, 1<<30, &b)
	must(t, err)
	return b.Bytes()
}

func (f *flaky) write(t testing.TB, key string, b []byte) {
	t.Helper()
	must(t, f.Memory.Put(t.Context(), key, bytes.NewReader(b), int64(len(b))))
}

// failer is a testing.TB or a rapid.T.
type failer interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func must(t failer, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wants(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got error %v, want %v", err, want)
	}
}

func open(t testing.TB, path string) *catalog.Catalog {
	t.Helper()
	c, err := catalog.Open(path, catalog.Options{Coder: "objects", NoSync: true})
	must(t, err)
	t.Cleanup(func() { must(t, c.Close()) })
	return c
}

func fresh(t testing.TB) *catalog.Catalog {
	t.Helper()
	return open(t, filepath.Join(t.TempDir(), "catalog"))
}

// quick are options whose times don't keep a test waiting.
func quick(c *catalog.Catalog, need int, list []chunks.Store) shipping.Options {
	return shipping.Options{Catalog: c, Need: need, Stores: list, Interval: time.Millisecond, Check: time.Millisecond}
}

// ship claims and runs a shipper until stop.
func ship(t testing.TB, o shipping.Options) (s *shipping.Shipper, stop func() error) {
	t.Helper()
	s, err := shipping.New(o)
	must(t, err)
	must(t, s.Claim(t.Context()))
	return s, running(t, s)
}

func running(t testing.TB, s *shipping.Shipper) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() { _ = stop() })
	return stop
}

// put makes n objects.
func put(t testing.TB, c *catalog.Catalog, from, n int) {
	t.Helper()
	if _, err := c.Bucket("b"); err != nil {
		must(t, c.CreateBucket(t.Context(), catalog.Bucket{Name: "b", Created: catalogtest.Epoch}))
	}
	for i := from; i < from+n; i++ {
		v := catalogtest.Version(fmt.Sprintf("v%06d", i), 10, 2, "")
		must(t, c.Begin(t.Context(), catalog.Intent{ID: v.ID, Since: catalogtest.Epoch, Places: v.Places}))
		must(t, c.Put(t.Context(), putInput(fmt.Sprintf("key-%06d", i), v)))
	}
}

func putInput(key string, v *object.Version) catalog.PutInput {
	return catalog.PutInput{
		Bucket: "b", Version: v, Intents: []string{v.ID},
		Record: catalog.Record{Key: key, Size: v.Shape.Size, ETag: v.ETag, Modified: catalogtest.Epoch},
	}
}

// rebuilt is the catalog that the stores give.
func rebuilt(t testing.TB, need int, list []chunks.Store) (*catalog.Catalog, shipping.Report) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rebuilt")
	report, err := shipping.Rebuild(t.Context(), shipping.RebuildOptions{Coder: "objects", Need: need, Path: path, Stores: list})
	must(t, err)
	return open(t, path), report
}
