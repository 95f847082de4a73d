package s3front

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"penstock/consumers/executor/coder"
	"penstock/consumers/executor/coder/chunks"
)

// troubled is a store in memory that waits or fails when told to.
type troubled struct {
	*chunks.Memory

	mu    sync.Mutex
	gate  chan struct{}
	fails bool
	came  chan struct{}
}

func newTroubled(name string) *troubled {
	return &troubled{Memory: chunks.NewMemory(name), came: make(chan struct{}, 100)}
}

// hold has calls wait until the returned function is called, or their context ends.
func (s *troubled) hold() (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gate := make(chan struct{})
	s.gate = gate
	return sync.OnceFunc(func() { close(gate) })
}

func (s *troubled) fail() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails = true
}

func (s *troubled) pass(ctx context.Context, key string) error {
	if !strings.Contains(key, "/b/") {
		return nil
	}
	s.mu.Lock()
	gate, fails := s.gate, s.fails
	s.mu.Unlock()
	if fails {
		return errors.New("the store is broken")
	}
	if gate == nil {
		return nil
	}
	select {
	case s.came <- struct{}{}:
	default:
	}
	select {
	case <-gate:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *troubled) Put(ctx context.Context, key string, r io.Reader, size int64) error {
	if err := s.pass(ctx, key); err != nil {
		return err
	}
	return s.Memory.Put(ctx, key, r, size)
}

func (s *troubled) Get(ctx context.Context, key string, off, n int64, w io.Writer) (int64, error) {
	if err := s.pass(ctx, key); err != nil {
		return 0, err
	}
	return s.Memory.Get(ctx, key, off, n, w)
}

// await waits until a call has come that waits.
func (s *troubled) await(t *testing.T) {
	t.Helper()
	select {
	case <-s.came:
	case <-time.After(20 * time.Second):
		t.Fatal("nothing came to the store")
	}
}

// until waits until the coder's figures are so.
func (e *engine) until(what string, so func(coder.Stats) bool) {
	e.t.Helper()
	var s coder.Stats
	var err error
	for range 2000 {
		if s, err = e.Stats(context.Background()); err != nil {
			e.t.Fatal(err)
		}
		if so(s) {
			return
		}
		time.Sleep(5 * time.Millisecond) // the coder's figures are asked for, nobody tells them
	}
	e.t.Errorf("not until the end: %s: %+v", what, s)
}

// free waits until the coder uses no connection and nothing waits.
func (e *engine) free() {
	e.t.Helper()
	e.until("connections are free", func(s coder.Stats) bool { return s.Connections == 0 && s.Backlog == 0 })
}

// TestBusy: when too many wait, others are told to come again.
func TestBusy(t *testing.T) {
	t.Parallel()
	s := newTroubled("store")
	e := over(t, func(o *coder.Options) { o.Connections, o.MaxWaiting, o.TaskTimeout = 1, 1, time.Minute }, s)
	w := serve(t, e, nil)
	b := w.bucket("a-bucket")
	w.expect("an object", put("/"+b+"/k", "data"), 200, "")
	release := s.hold()
	defer release()
	get := wire{method: http.MethodGet, path: "/" + b + "/k"}
	replies := make(chan int, 20)
	for range 20 {
		go func() { replies <- w.send(get).status }()
	}
	s.await(t)
	e.until("one waits", func(s coder.Stats) bool { return s.Backlog == 1 })
	if got := w.send(get); got.status != 503 || got.code != "SlowDown" || got.header.Get("Retry-After") == "" {
		t.Errorf("%+v", got)
	}
	release()
	fine := 0
	for range 20 {
		switch status := <-replies; status {
		case 200:
			fine++
		case 503:
		default:
			t.Errorf("%d", status)
		}
	}
	if fine == 0 {
		t.Error("none was served")
	}
}

// TestTooFew: an object that can't be read or written now is said to be so, and one that
// breaks off in the middle is cut, not short.
func TestTooFew(t *testing.T) {
	t.Parallel()
	stores := []*troubled{newTroubled("a"), newTroubled("b"), newTroubled("c"), newTroubled("d")}
	e := over(t, nil, stores[0], stores[1], stores[2], stores[3])
	w := serve(t, e, nil)
	b := w.bucket("a-bucket")
	w.expect("small", put("/"+b+"/small", repeat("y", 200_000)), 200, "")
	w.expect("large", put("/"+b+"/large", repeat("x", 8<<20)), 200, "")
	c, in := w.dial()
	if _, err := c.Write(wire{method: http.MethodGet, path: "/" + b + "/large"}.signed(t, w.front.Addr())); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(in, nil)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatal(res, err)
	}
	for _, s := range stores[:3] {
		s.fail()
	}
	n, err := io.Copy(io.Discard, res.Body)
	if err == nil || n >= 8<<20 {
		t.Errorf("%d bytes of an object that breaks off, %v", n, err)
	}
	_ = res.Body.Close()
	got := w.expect("get", wire{method: http.MethodGet, path: "/" + b + "/small"}, 503, "ServiceUnavailable")
	if got.header.Get("Retry-After") == "" {
		t.Error(got.header)
	}
	w.expect("head", wire{method: http.MethodHead, path: "/" + b + "/small"}, 200, "")
	w.expect("put", put("/"+b+"/other", repeat("y", 200_000)), 503, "ServiceUnavailable")
	w.expect("the other", wire{method: http.MethodGet, path: "/" + b + "/other"}, 404, "NoSuchKey")
}

// TestGoneWhileWaiting: a client that goes away frees what its request holds.
func TestGoneWhileWaiting(t *testing.T) {
	t.Parallel()
	s := newTroubled("store")
	e := over(t, func(o *coder.Options) { o.TaskTimeout = time.Minute }, s)
	w := serve(t, e, nil)
	b := w.bucket("a-bucket")
	w.expect("an object", put("/"+b+"/k", "data"), 200, "")
	e.free()
	release := s.hold()
	defer release()
	for _, r := range []wire{{method: http.MethodGet, path: "/" + b + "/k"}, put("/"+b+"/l", "data")} {
		before := len(w.await(0))
		c, _ := w.dial()
		if _, err := c.Write(r.signed(t, w.front.Addr())); err != nil {
			t.Fatal(err)
		}
		s.await(t)
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		w.await(before + 1)
		if r.method == http.MethodGet {
			e.free()
		}
	}
}

// TestEnd: a request that runs at the end is answered if it is quick, and cut off if it
// isn't; no other is begun.
func TestEnd(t *testing.T) {
	t.Parallel()
	const taskTimeout = time.Minute
	for _, quick := range []bool{true, false} {
		s := newTroubled("store")
		e := over(t, func(o *coder.Options) { o.TaskTimeout = taskTimeout }, s)
		f, err := New(Options{Coder: e.Coder, Keys: testKeys(), Listen: "127.0.0.1:0", Region: region, Stop: 500 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		w := &world{t: t, front: f, url: "http://" + f.Addr()}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- f.Run(ctx) }()
		b := w.bucket("a-bucket")
		w.expect("an object", put("/"+b+"/k", "data"), 200, "")
		release := s.hold()
		c, in := w.dial()
		if _, err := c.Write(wire{method: http.MethodGet, path: "/" + b + "/k"}.signed(t, f.Addr())); err != nil {
			t.Fatal(err)
		}
		s.await(t)
		began := time.Now()
		cancel()
		if quick {
			release()
			if got := answerOf(t, in, http.MethodGet); got.status != 200 || got.text != "data" {
				t.Errorf("%+v", got)
			}
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > taskTimeout/2 {
			t.Errorf("the end took %v, and a task may take %v", took, taskTimeout)
		}
		if !quick {
			if b, err := in.ReadByte(); err == nil {
				t.Errorf("a request that hangs was answered: %q", b)
			}
		}
		release()
		e.free()
	}
}
