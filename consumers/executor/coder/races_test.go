package coder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"penstock/consumers/executor/coder/chunks"
	"penstock/consumers/executor/coder/chunks/dir"
	"penstock/consumers/executor/coder/object"
	"penstock/consumers/executor/coder/queue"
	"penstock/infra/clock/stall"
)

// TestOneWriterWins: of writers of one key at a time one wins whole, and the blobs of
// the others go.
func TestOneWriterWins(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.code.set(4, 2)
		datas := make([][]byte, 8)
		var wg sync.WaitGroup
		for i := range datas {
			datas[i] = noise(uint64(i), 5000+i*testSegment/3)
			wg.Go(func() {
				in := PutInput{Bucket: "bucket", Key: "k", Body: bytes.NewReader(datas[i]), Size: int64(len(datas[i]))}
				if _, err := b.Put(t.Context(), in); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		got, err := b.read(t.Context(), "k", Range{})
		won := false
		for _, data := range datas {
			won = won || bytes.Equal(got, data)
		}
		if err != nil || !won {
			t.Fatalf("%d bytes of nobody, %v", len(got), err)
		}
		b.settled(t)
		if n := b.blobs(t); n != max(2, len(b.stores)) {
			t.Errorf("%d blobs of one object", n)
		}
		b.clean(t)
	}, nil)
}

// TestOnlyOneMayCreate: of writers with If-None-Match one makes the object.
func TestOnlyOneMayCreate(t *testing.T) {
	t.Parallel()
	b := setup(t, object.Shared, 0, 0, nil)
	var wg sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for i := range 8 {
		wg.Go(func() {
			_, err := b.Put(t.Context(), PutInput{
				Bucket: "bucket", Key: "k", Body: bytes.NewReader(noise(uint64(i), 5000)), Size: 5000,
				Conditions: Conditions{IfNoneMatch: "*"},
			})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won++
			} else if !errors.Is(err, ErrPrecondition) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won != 1 {
		t.Errorf("%d won", won)
	}
	b.clean(t)
}

// TestReadersFinish: who began to read a version reads it to its end, although it is
// overwritten and deleted meanwhile, and its blobs go when he has.
func TestReadersFinish(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.code.set(4, 2)
		for _, size := range []int{5000, 4*testSegment + 3} {
			data := noise(uint64(size), size)
			b.put(t, "k", data)
			r, err := b.Get(t.Context(), GetInput{Bucket: "bucket", Key: "k"})
			if err != nil {
				t.Fatal(err)
			}
			b.put(t, "k", noise(1, 100))
			if err := b.Delete(t.Context(), "bucket", "k", Conditions{}); err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(r)
			if err != nil || !bytes.Equal(got, data) {
				t.Fatalf("%d bytes: %d, %v", size, len(got), err)
			}
			_ = r.Close()
			b.settled(t)
			if n := b.blobs(t); n != 0 {
				t.Errorf("%d blobs of no object", n)
			}
		}
	}, nil)
}

// TestBlobsThatLandLate: a blob that is on its way when its version is overwritten or deleted
// goes when it has landed, and not before, which would leave it behind.
func TestBlobsThatLandLate(t *testing.T) {
	t.Parallel()
	b := setup(t, object.Spread, 4, 2, nil)
	gate, read := make(chan struct{}), make(chan struct{}, 10)
	b.stores[0].set(func(s *faulty) { s.late = func() { read <- struct{}{}; <-gate } })
	b.put(t, "k", noise(1, 5000))
	b.put(t, "k", noise(2, 5000))
	<-read
	<-read
	if err := b.Delete(t.Context(), "bucket", "k", Conditions{}); err != nil {
		t.Fatal(err)
	}
	for _, s := range b.Coder.stores {
		if _, err := b.deleteSome(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	close(gate)
	b.idle(t)
	b.settled(t)
	if n := b.blobs(t); n != 0 {
		t.Errorf("%d blobs of nobody", n)
	}
	b.clean(t)
}

// TestOnlyWhatIsLostIsReplaced: a chunk is replaced by as many strips as were lost, in
// the same request.
func TestOnlyWhatIsLostIsReplaced(t *testing.T) {
	t.Parallel()
	for _, code := range [][2]int{{1, 1}, {2, 2}, {3, 3}, {6, 6}} {
		for name, damage := range map[string]func([]byte){
			"one strip": func(b []byte) { b[0] ^= 1 },
			"all":       func(b []byte) { clear(b) },
		} {
			var mu sync.Mutex
			read := int64(0)
			b := setup(t, object.Shared, 0, 0, func(o *Options) {
				o.Retry = time.Hour
				o.Observe = func(r queue.Record) {
					mu.Lock()
					defer mu.Unlock()
					if r.Op == queue.Read && !r.Background {
						read += r.Bytes
					}
				}
			})
			data := noise(1, 60_000)
			b.put(t, "k", data)
			b.settled(t)
			alter(t, b.stores[0], func(key string, blob []byte) ([]byte, bool) {
				if strings.HasSuffix(key, ".0") {
					damage(blob)
				}
				return blob, true
			})
			b.code.set(code[0], code[1])
			b.check(t, "k", data)
			if again := b.counts.get("replaced/again"); again != 0 || b.counts.get("replaced/read") == 0 {
				t.Errorf("%v, %s: %v", code, name, b.counts.of)
			}
			mu.Lock()
			if most := int64(62_000 * code[0] / code[1]); name == "one strip" && read > most+2_000 {
				t.Errorf("%v, %s: read %d bytes", code, name, read)
			}
			mu.Unlock()
			b.stop()
		}
	}
}

// hang is a store whose Get waits until its context ends.
func hang(s *faulty, seen func()) {
	s.set(func(s *faulty) {
		s.get = func(ctx context.Context, _ string, _ []byte, _ error) ([]byte, error) {
			<-ctx.Done()
			seen()
			return nil, ctx.Err()
		}
		s.put = func(ctx context.Context, _ string) error {
			<-ctx.Done()
			seen()
			return ctx.Err()
		}
	})
}

// TestCancelledTasksFreeConnections: reads of (6,4) with a store that never answers are
// answered, and no connection stays in use for it.
func TestCancelledTasksFreeConnections(t *testing.T) {
	t.Parallel()
	b := setup(t, object.Spread, 12, 6, func(o *Options) { o.Connections = 12; o.Background = 1 })
	b.code.set(12, 6)
	data := noise(1, 50_000)
	b.put(t, "k", data)
	b.settled(t)
	var mu sync.Mutex
	cancelled := 0
	hang(b.stores[3], func() { mu.Lock(); cancelled++; mu.Unlock() })
	for range 50 {
		b.check(t, "k", data)
	}
	b.idle(t)
	mu.Lock()
	defer mu.Unlock()
	if cancelled == 0 {
		t.Error("the slow store was never asked")
	}
}

// idle waits until no connection is in use, for less than a task may take.
func (b *bench) idle(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	still := stall.Start(ctx)
	defer still.Wait()
	defer cancel()
	began := time.Now()
	for s, _ := b.Stats(t.Context()); s.Connections != 0; s, _ = b.Stats(t.Context()) {
		if time.Since(began)-still.Total() > b.options.TaskTimeout {
			t.Fatalf("%+v", s)
		}
		time.Sleep(time.Millisecond)
	}
}

// TestSlowClients: a client that sends or reads slowly holds no connection.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	b := setup(t, object.Shared, 0, 0, func(o *Options) { o.Connections = 1 })
	data := noise(1, 2*testSegment+5)
	b.put(t, "k", data)
	b.settled(t)
	r, err := b.Get(t.Context(), GetInput{Bucket: "bucket", Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	in, out := io.Pipe()
	put := make(chan error, 1)
	go func() {
		_, err := b.Put(t.Context(), PutInput{Bucket: "bucket", Key: "slow", Body: in, Size: int64(len(data))})
		put <- err
	}()
	_, _ = out.Write(data[:testSegment+10]) // the first segment is on its way, the second never comes
	for i := range 5 {
		b.put(t, "other", noise(uint64(i), 5000))
		b.check(t, "other", noise(uint64(i), 5000))
	}
	_ = out.CloseWithError(errors.New("client is gone"))
	if err := <-put; err == nil {
		t.Error("half a body is an object")
	}
	b.clean(t)
}

// TestBusy: when the line is full the first segment is refused, at no cost.
func TestBusy(t *testing.T) {
	t.Parallel()
	b := setup(t, object.Shared, 0, 0, func(o *Options) { o.Connections, o.MaxWaiting = 1, 1 })
	data := noise(1, 5000)
	b.put(t, "k", data)
	b.settled(t)
	ctx, cancel := context.WithCancel(t.Context())
	hang(b.stores[0], func() {})
	var wg sync.WaitGroup
	busy := make(chan error, 20)
	for i := range 20 {
		wg.Go(func() {
			if i%2 == 0 {
				_, err := b.read(ctx, "k", Range{})
				busy <- err
				return
			}
			_, err := b.Put(ctx, PutInput{Bucket: "bucket", Key: fmt.Sprint(i), Body: bytes.NewReader(data), Size: 5000})
			busy <- err
		})
	}
	for range 18 { // one has the connection, one waits
		if err := <-busy; !errors.Is(err, ErrBusy) {
			t.Errorf("%v", err)
		}
	}
	cancel()
	wg.Wait()
	heal(b.stores[0])
	b.clean(t)
	b.check(t, "k", data)
}

// TestBoundedMemory: a large object goes through in a few segments' memory.
func TestBoundedMemory(t *testing.T) { // alone, for what others use counts too
	size := int64(24 << 20)
	if whole() {
		size = 256 << 20
	}
	b := setup(t, object.Shared, 0, 0, func(o *Options) {
		disk, err := dir.Open("disk", t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = disk.Close() })
		o.Segment, o.Memory = 1<<20, 16<<20
		o.Stores = []chunks.Store{disk}
	})
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"put", func() error {
			_, err := b.Put(t.Context(), PutInput{Bucket: "bucket", Key: "k", Body: io.LimitReader(zeros{}, size), Size: size})
			return err
		}},
		{"get", func() error {
			r, err := b.Get(t.Context(), GetInput{Bucket: "bucket", Key: "k"})
			if err != nil {
				return err
			}
			defer r.Close()
			n, err := io.Copy(io.Discard, r)
			if n != size {
				t.Errorf("%d bytes", n)
			}
			return err
		}},
	} {
		peak := watchHeap(t)
		if err := step.do(); err != nil {
			t.Fatal(step.name, err)
		}
		if most := peak(); most > 16<<20 {
			t.Errorf("%s: %d MB for an object of %d MB", step.name, most>>20, size>>20)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// watchHeap gives the most that the heap has grown by, of samples taken until it is asked.
func watchHeap(t *testing.T) func() uint64 {
	t.Helper()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	base, most := m.HeapAlloc, uint64(0)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			runtime.GC()
			runtime.ReadMemStats(&m)
			if m.HeapAlloc > base {
				most = max(most, m.HeapAlloc-base)
			}
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	return func() uint64 { close(stop); <-done; return most }
}
