package jetstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/objectstore"
	"penstock/infra/objectstore/manifest"
	"penstock/infra/objectstore/objectstoretest"
	"penstock/schemas/subject"
)

var writable objectstore.Mark

// place is a Store that a test knows the inside of.
type place struct {
	*Store
	b    *backend
	name string
}

var bucket atomic.Int64

func fresh() string { return fmt.Sprintf("store-%d", bucket.Add(1)) }

func open(t testing.TB, js jetstream.JetStream, name string) place {
	t.Helper()
	o := Options{JS: js, Bucket: name, Manifest: manifest.Options{Lease: 2 * time.Second}}
	s, err := Open(t.Context(), o)
	ok(t, err)
	t.Cleanup(func() { ok(t, s.Close()) })
	b, err := openBackend(t.Context(), &o)
	ok(t, err)
	b.line = s.line
	return place{s, b, name}
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func put(t testing.TB, s objectstore.Store, owner, name, content string) objectstore.Object {
	t.Helper()
	o, err := s.Put(t.Context(), owner, name, strings.NewReader(content), writable)
	ok(t, err)
	return o
}

func get(t testing.TB, s objectstore.Store, owner, name string) string {
	t.Helper()
	r, err := s.Open(t.Context(), owner, name)
	ok(t, err)
	b, err := io.ReadAll(r)
	ok(t, errors.Join(err, r.Close()))
	return string(b)
}

func TestConformance(t *testing.T) {
	b := bustest.Start(t)
	c, other := bustest.Client(t, b), bustest.Client(t, b)
	objectstoretest.Run(t, func(t *testing.T) objectstore.Store { return open(t, c.JS, fresh()) }, objectstoretest.Options{
		// The server is in this process and keeps what it stored last in memory.
		Large: 64 << 20, Memory: 48 << 20,
		Other: func(t *testing.T, s objectstore.Store) objectstore.Store { return open(t, other.JS, s.(place).name) },
		Lose:  func(_ *testing.T, _ objectstore.Store, h objectstore.Held) { manifest.Abandon(h) },
		Leave: func(t *testing.T, s objectstore.Store, owner string) func(*testing.T) {
			return leave(t, s.(place), owner)
		},
		Foreign: func(t *testing.T, s objectstore.Store, owner string) func(*testing.T) {
			return plant(t, s.(place), owner)
		},
	})
}

// leave leaves the first chunks of a blob.
func leave(t *testing.T, s place, owner string) func(*testing.T) {
	t.Helper()
	put(t, s, "someone else", "a", "x")
	var id string
	ok(t, s.b.Blobs(t.Context(), "someone else", func(blob string, _ time.Time) error { id = blob; return nil }))
	_, err := s.b.PutBlob(t.Context(), owner, id, io.MultiReader(bytes.NewReader(make([]byte, 3*chunkSize)), broken{}))
	if !errors.Is(err, errBroken) {
		t.Fatal(err)
	}
	return func(t *testing.T) {
		t.Helper()
		ok(t, s.b.Blobs(t.Context(), owner, func(blob string, _ time.Time) error {
			return fmt.Errorf("blob %s is left", blob)
		}))
	}
}

var errBroken = errors.New("the process dies")

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errBroken }

// plant puts objects and keys into the buckets that are nobody's data.
func plant(t *testing.T, s place, owner string) func(*testing.T) {
	t.Helper()
	names := []string{owner + "/beside the document", "no owner", "b64=YQ/not our spelling"}
	for _, name := range names {
		_, err := s.b.objects.PutString(t.Context(), name, name)
		ok(t, err)
	}
	_, err := s.b.kv.PutString(t.Context(), "other.key", "foreign")
	ok(t, err)
	return func(t *testing.T) {
		t.Helper()
		for _, name := range names {
			if got, err := s.b.objects.GetString(t.Context(), name); err != nil || got != name {
				t.Errorf("foreign object %s is %q, %v", name, got, err)
			}
		}
		if e, err := s.b.kv.Get(t.Context(), "other.key"); err != nil || string(e.Value()) != "foreign" {
			t.Errorf("a foreign key: %v", err)
		}
	}
}

// TestAdoption: objects that were put with NATS's own means are the owner's, and
// go with its copy. One that somebody replaces later is foreign.
func TestAdoption(t *testing.T) {
	ctx := t.Context()
	s := open(t, bustest.Client(t, bustest.Start(t)).JS, fresh())
	const who = "alice@example.com"
	prefix := subject.Encode(who) + "/"
	big := strings.Repeat("0123456789", 50_000)
	for name, content := range map[string]string{"photos/1.jpg": big, "empty": "", "later": "old", "gone": "x"} {
		_, err := s.b.objects.PutString(ctx, prefix+name, content)
		ok(t, err)
	}
	ok(t, s.b.objects.Delete(ctx, prefix+"gone"))
	info, err := s.b.objects.GetInfo(ctx, prefix+"empty")
	ok(t, err)
	_, err = s.b.objects.AddLink(ctx, prefix+"link", info)
	ok(t, err)
	owners := 0
	ok(t, s.Owners(ctx, func(owner string, m objectstore.Mark) error {
		if owners++; owner != who || m != writable {
			t.Errorf("owner %q is %v", owner, m)
		}
		return nil
	}))
	l, err := s.List(ctx, who)
	ok(t, err)
	if owners != 1 || len(l.Objects) != 3 || l.Bytes != int64(len(big))+3 {
		t.Fatalf("%d owners, listed %+v", owners, l)
	}
	h, err := s.Hold(ctx, who, l.Version)
	ok(t, err)
	h.Release()
	if get(t, s, who, "photos/1.jpg") != big || get(t, s, who, "empty") != "" {
		t.Error("plain objects read otherwise")
	}
	_, err = s.b.objects.PutString(ctx, prefix+"later", "new")
	ok(t, err)
	if _, err := s.Open(ctx, who, "later"); !errors.Is(err, manifest.ErrMissing) {
		t.Errorf("an object that was replaced past the store: %v", err)
	}
	ok(t, s.Delete(ctx, who, writable))
	for name, want := range map[string]error{"photos/1.jpg": jetstream.ErrObjectNotFound, "empty": jetstream.ErrObjectNotFound, "later": nil} {
		if _, err := s.b.objects.GetInfo(ctx, prefix+name); !errors.Is(err, want) {
			t.Errorf("after the deletion %s: %v", name, err)
		}
	}
}

// TestRestart takes the server down and up while it is written to: what was
// acknowledged is there, what was not can be done again, holders that lived
// through it hold on or know that they don't.
func TestRestart(t *testing.T) {
	b := bustest.Start(t, func(o *bus.Options) { o.Sync = bus.SyncAlways })
	s, mover := open(t, bustest.Client(t, b).JS, "x"), open(t, bustest.Client(t, b).JS, "x")
	put(t, s, "o", "a", "0")
	var wg sync.WaitGroup
	var acked [3]atomic.Int64
	stop := make(chan struct{})
	for w := range acked {
		wg.Go(func() {
			for n := int64(1); ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				content := fmt.Sprint(n, " ", strings.Repeat("x", w*100_000))
				for {
					ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
					_, err := s.Put(ctx, "o", fmt.Sprint("w", w), strings.NewReader(content), writable)
					cancel()
					if err == nil {
						break
					}
					time.Sleep(time.Millisecond)
				}
				acked[w].Store(n)
			}
		})
	}
	for round := range int64(3) {
		for w := range acked {
			for acked[w].Load() < 5*(round+1) {
				time.Sleep(time.Millisecond)
			}
		}
		h, err := mover.Hold(t.Context(), "o", "")
		for err != nil {
			h, err = mover.Hold(t.Context(), "o", "")
		}
		held, err := mover.List(t.Context(), "o")
		ok(t, err)
		bustest.Restart(t, b)
		fence := objectstore.Mark{State: objectstore.Retired, Version: uint64(round + 1), Site: "y"}
		fenced(t, mover, h, held, fence)
		h.Release()
		for {
			m, err := mover.Stat(t.Context(), "o")
			if err == nil && (m == writable || mover.Mark(t.Context(), "o", m, writable) == nil) {
				break
			}
		}
	}
	close(stop)
	wg.Wait()
	for w := range acked {
		got := get(t, s, "o", fmt.Sprint("w", w))
		if n, _, _ := strings.Cut(got, " "); n != fmt.Sprint(acked[w].Load()) || len(got) < w*100_000 {
			t.Errorf("writer %d: acknowledged %d, there is %q of %d bytes", w, acked[w].Load(), n, len(got))
		}
	}
}

// fenced fences a held copy over a server that comes back: if it succeeds nothing
// was written since the listing.
func fenced(t *testing.T, s place, h objectstore.Held, held objectstore.Listing, fence objectstore.Mark) {
	t.Helper()
	for {
		err := h.Mark(t.Context(), writable, fence)
		if errors.Is(err, objectstore.ErrHoldLost) {
			return
		}
		if err != nil && !errors.Is(err, objectstore.ErrMarked) {
			continue // the line is not back yet; it may have been done all the same
		}
		l, err := s.List(t.Context(), "o")
		if err != nil {
			continue
		}
		if l.Mark != fence || l.Version != held.Version {
			t.Errorf("held at %s, now the copy is %v at %s", held.Version, l.Mark, l.Version)
		}
		return
	}
}

// TestOptions: what can't be is refused before anything is made.
func TestOptions(t *testing.T) {
	js := bustest.Client(t, bustest.Start(t)).JS
	for _, o := range []Options{{Bucket: "x"}, {JS: js}} {
		if _, err := Open(t.Context(), o); !errors.Is(err, ErrOptions) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if _, err := Open(t.Context(), Options{JS: js, Bucket: "no.bucket"}); !errors.Is(err, jetstream.ErrInvalidBucketName) {
		t.Error(err)
	}
}

// TestForgetfulBuckets: buckets that lose what they are given are no place for
// anybody's data.
func TestForgetfulBuckets(t *testing.T) {
	js := bustest.Client(t, bustest.Start(t)).JS
	for name, c := range map[string]jetstream.StreamConfig{
		"KV_ages":     {MaxAge: time.Hour, Storage: jetstream.FileStorage, Discard: jetstream.DiscardNew},
		"OBJ_ages2":   {MaxAge: time.Hour, Storage: jetstream.FileStorage, Discard: jetstream.DiscardNew},
		"OBJ_drops":   {MaxBytes: 1 << 20, Storage: jetstream.FileStorage, Discard: jetstream.DiscardOld},
		"KV_volatile": {Storage: jetstream.MemoryStorage, Discard: jetstream.DiscardNew},
		"OBJ_memory":  {Storage: jetstream.MemoryStorage, Discard: jetstream.DiscardNew},
	} {
		kind, bucket, _ := strings.Cut(name, "_")
		c.Name, c.Subjects, c.AllowRollup, c.AllowDirect = name, []string{"$KV." + bucket + ".>"}, true, true
		if kind == "OBJ" {
			c.Subjects = []string{"$O." + bucket + ".C.>", "$O." + bucket + ".M.>"}
		}
		c.MaxMsgsPerSubject = map[string]int64{"KV": 1}[kind]
		_, err := js.CreateStream(t.Context(), c)
		ok(t, err)
		if _, err := Open(t.Context(), Options{JS: js, Bucket: bucket}); !errors.Is(err, ErrBucket) {
			t.Errorf("%s: %v", name, err)
		}
		ok(t, js.DeleteStream(t.Context(), name))
	}
}

// between calls a function before its n-th read.
type between struct {
	io.Reader
	n  int
	do func()
}

func (b *between) Read(p []byte) (int, error) {
	if b.n--; b.n == 0 {
		b.do()
	}
	return b.Reader.Read(p[:min(len(p), chunkSize)])
}

// TestChunksKeepTheirOrder: when nobody takes one chunk and somebody takes those
// that follow it, the blob breaks off. The client's own second try would put it
// behind them.
func TestChunksKeepTheirOrder(t *testing.T) {
	js := bustest.Client(t, bustest.Start(t)).JS
	s := open(t, js, fresh())
	stream, err := js.Stream(t.Context(), "OBJ_"+s.name)
	ok(t, err)
	ok(t, js.DeleteStream(t.Context(), "OBJ_"+s.name))
	// The third chunk is read when the first is on its way.
	r := &between{io.LimitReader(neverEnding('x'), 5*chunkSize), 3, func() {
		ok(t, js.Conn().Flush()) // the first has found nobody
		_, err := js.CreateStream(t.Context(), stream.CachedInfo().Config)
		ok(t, err)
	}}
	if _, err := s.b.PutBlob(t.Context(), "o", "id", r); !errors.Is(err, jetstream.ErrNoStreamResponse) {
		t.Errorf("a blob whose first chunk was taken by nobody: %v", err)
	}
}

type neverEnding byte

func (n neverEnding) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(n)
	}
	return len(p), nil
}

func BenchmarkPut(b *testing.B) {
	js := bustest.Client(b, bustest.Start(b, func(o *bus.Options) { o.Sync = bus.SyncAlways })).JS
	for _, size := range []int{1000, 10 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			s := open(b, js, fresh())
			content := strings.Repeat("x", size)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				put(b, s, "o", "a", content)
			}
		})
	}
}
