package jetstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"penstock/consumers/executor/coder/chunks"
	"penstock/consumers/executor/coder/chunks/chunkstest"
	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
)

var buckets atomic.Int64

func open(t *testing.T, js jetstream.JetStream) *Store {
	t.Helper()
	return openBucket(t, js, fmt.Sprintf("bucket-%d", buckets.Add(1)))
}

func openBucket(t *testing.T, js jetstream.JetStream, bucket string) *Store {
	t.Helper()
	s, err := Open(t.Context(), Options{Name: "stream", Bucket: bucket, JS: js})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func connect(t *testing.T) jetstream.JetStream {
	t.Helper()
	return bustest.Client(t, bustest.Start(t)).JS
}

func TestSuite(t *testing.T) {
	js := connect(t)
	chunkstest.Suite(t, func(t *testing.T) chunks.Store { return open(t, js) })
}

func noise(seed byte, n int64) io.Reader {
	return io.LimitReader(rand.NewChaCha8([32]byte{seed}), n)
}

func bytesOf(t *testing.T, seed byte, n int64) []byte {
	t.Helper()
	b, err := io.ReadAll(noise(seed, n))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// messages counts what the stream holds.
func messages(t *testing.T, s *Store) uint64 {
	t.Helper()
	info, err := s.stream.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return info.State.Msgs
}

// TestLargeBlobs are in pieces: ranges over them are right, and a blob that is replaced
// or deleted leaves none.
func TestLargeBlobs(t *testing.T) {
	s := open(t, connect(t))
	for _, size := range []int64{pieceSize, pieceSize + 1, 2 * pieceSize, 7*pieceSize + 77} {
		if err := s.Put(t.Context(), "large", noise(1, size), size); err != nil {
			t.Fatal(err)
		}
		want := bytesOf(t, 1, size)
		for _, r := range [][2]int64{{0, size}, {pieceSize - 5, 10}, {size - 3, 100}, {size, 1}, {1, 2*pieceSize + 1}, {pieceSize, pieceSize}} {
			var b bytes.Buffer
			n, err := s.Get(t.Context(), "large", r[0], r[1], &b)
			from, end := min(r[0], size), min(r[0]+r[1], size)
			if err != nil || n != end-from || !bytes.Equal(b.Bytes(), want[from:end]) {
				t.Errorf("%d: %d at %d: %d, %v", size, r[1], r[0], n, err)
			}
		}
		pieces := uint64(0)
		if size > pieceSize {
			pieces = uint64((size + pieceSize - 1) / pieceSize)
		}
		if got := messages(t, s); got != 1+pieces {
			t.Errorf("%d: %d messages", size, got)
		}
		if l, err := s.List(t.Context(), "large", "", 2); err != nil || len(l) != 1 || l[0].Bytes != size {
			t.Errorf("%d: %v, %v", size, l, err)
		}
	}
	if err := s.Delete(t.Context(), "large"); err != nil || messages(t, s) != 0 {
		t.Errorf("%d messages are left: %v", messages(t, s), err)
	}
}

type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }

type call func()

func (c call) Read([]byte) (int, error) {
	c()
	return 0, io.EOF
}

// TestLargeBlobsThatFail leave nothing, and what was there before stays.
func TestLargeBlobsThatFail(t *testing.T) {
	s := open(t, connect(t))
	if err := s.Put(t.Context(), "k", strings.NewReader("old"), 3); err != nil {
		t.Fatal(err)
	}
	cut := errors.New("cut")
	const size = 6*pieceSize + 9
	ctx, cancel := context.WithCancel(t.Context())
	for name, test := range map[string]struct {
		r    io.Reader
		want error
	}{
		"a byte short":  {noise(1, size-1), chunks.ErrSize},
		"a piece short": {noise(1, 5*pieceSize), chunks.ErrSize},
		"a byte more":   {noise(1, size+1), chunks.ErrSize},
		"cut":           {io.MultiReader(noise(1, pieceSize+1), broken{cut}), cut},
		"cut at end":    {io.MultiReader(noise(1, size), broken{cut}), cut},
		"its own short": {io.MultiReader(noise(1, pieceSize+1), broken{fmt.Errorf("body: %w", io.EOF)}), io.EOF},
	} {
		if err := s.Put(t.Context(), "k", test.r, size); !errors.Is(err, test.want) {
			t.Errorf("%s: %v", name, err)
		}
		if got := messages(t, s); got != 1 {
			t.Errorf("%s: %d messages", name, got)
		}
	}
	if err := s.Put(ctx, "k", io.MultiReader(noise(1, 5*pieceSize), call(cancel), noise(2, size)), size); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	s.tidying.Wait()
	if got := messages(t, s); got != 1 {
		t.Errorf("cancelled: %d messages", got)
	}
	var b bytes.Buffer
	if _, err := s.Get(t.Context(), "k", 0, 10, &b); err != nil || b.String() != "old" {
		t.Errorf("%q, %v", b.String(), err)
	}
}

// TestLargeBlobsAtOnce: writers and deleters of one key beside each other leave the
// pieces of the blob that is there and no others.
func TestLargeBlobsAtOnce(t *testing.T) {
	s := open(t, connect(t))
	const size = 2*pieceSize + 5
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for range 6 {
				if err := s.Put(t.Context(), "k", noise(byte(i), size), size); err != nil {
					t.Error(err)
				}
				if i == 3 {
					if err := s.Delete(t.Context(), "k"); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	var b bytes.Buffer
	_, err := s.Get(t.Context(), "k", 0, size, &b)
	switch {
	case errors.Is(err, chunks.ErrNotFound):
		if got := messages(t, s); got != 0 {
			t.Errorf("%d messages of no blob", got)
		}
	case err != nil:
		t.Error(err)
	default:
		if got := messages(t, s); got != 4 {
			t.Errorf("%d messages of one blob", got)
		}
		if !slices.ContainsFunc([]byte{0, 1, 2, 3}, func(i byte) bool { return bytes.Equal(b.Bytes(), bytesOf(t, i, size)) }) {
			t.Error("a blob that nobody wrote")
		}
	}
}

// TestTidy: pieces of the dead go, those that are young or in use stay.
func TestTidy(t *testing.T) {
	s := open(t, connect(t))
	if err := s.Put(t.Context(), "k", noise(1, 2*pieceSize), 2*pieceSize); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := s.o.JS.Publish(t.Context(), s.piecesOf("dead"), []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := s.Tidy(t.Context(), time.Now().Add(-time.Hour)); n != 0 || err != nil {
		t.Errorf("young ones: %d, %v", n, err)
	}
	if n, err := s.Tidy(t.Context(), time.Now().Add(time.Hour)); n != 1 || err != nil || messages(t, s) != 3 {
		t.Errorf("%d, %v, %d messages", n, err, messages(t, s))
	}
	if n, err := s.Get(t.Context(), "k", 0, 2*pieceSize, io.Discard); n != 2*pieceSize || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

// TestMissingPieces and entries that make no sense are errors, not short blobs; they can
// be replaced and deleted.
func TestMissingPieces(t *testing.T) {
	s := open(t, connect(t))
	put := func(key string) {
		t.Helper()
		if err := s.Put(t.Context(), key, noise(1, 3*pieceSize), 3*pieceSize); err != nil {
			t.Fatal(err)
		}
	}
	put("k")
	e, err := s.entry(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.stream.DeleteMsg(t.Context(), e.pieces[1]); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Get(t.Context(), "k", 0, 3*pieceSize, io.Discard); n != pieceSize || !errors.Is(err, ErrPieces) {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := s.Get(t.Context(), "k", pieceSize, 1, io.Discard); n != 0 || !errors.Is(err, ErrPieces) {
		t.Errorf("%d, %v", n, err)
	}
	for _, m := range []*nats.Msg{
		{Header: nats.Header{sizeHeader: {"x"}}},
		{Header: nats.Header{sizeHeader: {"5"}}, Data: []byte("four")},
		{Header: nats.Header{sizeHeader: {"5"}, idHeader: {"id"}}, Data: []byte{1, 1, 1}},
	} {
		m.Subject = s.subjectOf("k")
		if _, err := s.o.JS.PublishMsg(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		if n, err := s.Get(t.Context(), "k", 0, 10, io.Discard); n != 0 || !errors.Is(err, ErrPieces) {
			t.Errorf("%v: %d, %v", m.Header, n, err)
		}
		put("k")
	}
	if _, err := s.o.JS.PublishMsg(t.Context(), &nats.Msg{Subject: s.subjectOf("bad")}); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), "bad"); err != nil {
		t.Error(err)
	}
	if l, err := s.List(t.Context(), "", "", 10); err != nil || len(l) != 1 {
		t.Errorf("%v, %v", l, err)
	}
}

// FuzzParseEntry: what is parsed is written as it was, and names as many pieces as its
// size asks for.
func FuzzParseEntry(f *testing.F) {
	good := &entry{size: 10, id: "id", piece: 4, pieces: []uint64{7, 9, 1000}}
	f.Add("10", "id", good.message("s").Data)
	f.Add("3", "", []byte("abc"))
	f.Add("9223372036854775807", "id", []byte{1, 1})
	f.Fuzz(func(t *testing.T, size, id string, data []byte) {
		header := nats.Header{sizeHeader: {size}, idHeader: {id}}
		e, err := parseEntry(header, data)
		if err != nil {
			if !errors.Is(err, ErrPieces) {
				t.Fatal(err)
			}
			return
		}
		if id != "" && (e.piece <= 0 || int64(len(e.pieces)) != (e.size+e.piece-1)/e.piece) {
			t.Fatalf("%+v", e)
		}
		again, err := parseEntry(e.message("s").Header, e.message("s").Data)
		if err != nil || again.size != e.size || !slices.Equal(again.pieces, e.pieces) || !bytes.Equal(again.content, e.content) {
			t.Fatalf("%v: %+v became %+v", err, e, again)
		}
	})
}

func TestOpenFails(t *testing.T) {
	js := connect(t)
	for _, o := range []Options{{Name: "a", Bucket: "b"}, {Name: "a", JS: js}, {Bucket: "b", JS: js}, {Name: "a", Bucket: "a.b", JS: js}} {
		if _, err := Open(t.Context(), o); !errors.Is(err, ErrOption) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	for i, c := range []jetstream.StreamConfig{
		{MaxAge: time.Hour, AllowRollup: true},
		{MaxMsgs: 5, AllowRollup: true},
		{MaxMsgsPerSubject: 1, AllowRollup: true},
		{Storage: jetstream.MemoryStorage, AllowRollup: true},
		{},
	} {
		bucket := fmt.Sprintf("other-%d", i)
		c.Name, c.Subjects = "CHUNKS_"+bucket, []string{"$CHUNKS." + bucket + ".>"}
		if _, err := js.CreateStream(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(t.Context(), Options{Name: "a", Bucket: bucket, JS: js}); !errors.Is(err, ErrBucket) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestComesBack: blobs are there when the server has been away, and through another
// connection.
func TestComesBack(t *testing.T) {
	b := bustest.Start(t)
	s := open(t, bustest.Client(t, b).JS)
	for _, size := range []int64{100, 3 * pieceSize} {
		if err := s.Put(t.Context(), fmt.Sprint(size), noise(1, size), size); err != nil {
			t.Fatal(err)
		}
	}
	bustest.Restart(t, b)
	other := openBucket(t, bustest.Client(t, b).JS, s.o.Bucket)
	for _, size := range []int64{100, 3 * pieceSize} {
		var got bytes.Buffer
		if _, err := other.Get(t.Context(), fmt.Sprint(size), 0, size, &got); err != nil || !bytes.Equal(got.Bytes(), bytesOf(t, 1, size)) {
			t.Errorf("%d: %v", size, err)
		}
	}
}

// TestAContextEndsItsCall, although the server answers nothing; and without a server
// calls fail by themselves.
func TestAContextEndsItsCall(t *testing.T) {
	b := bustest.Start(t, func(o *bus.Options) { o.Listen = "127.0.0.1:0" })
	proxy := bustest.NewProxy(t, b.URL())
	conn, err := nats.Connect(proxy.URL, nats.ReconnectBufSize(-1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, js)
	release := proxy.Hold()
	calls := map[string]func(ctx context.Context) error{
		"get":       func(ctx context.Context) error { _, err := s.Get(ctx, "k", 0, 5, io.Discard); return err },
		"list":      func(ctx context.Context) error { _, err := s.List(ctx, "", "", 5); return err },
		"delete":    func(ctx context.Context) error { return s.Delete(ctx, "k") },
		"put":       func(ctx context.Context) error { return s.Put(ctx, "k", noise(1, 9), 9) },
		"large put": func(ctx context.Context) error { return s.Put(ctx, "k", noise(1, 9*pieceSize), 9*pieceSize) },
	}
	for name, call := range calls {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		start := time.Now()
		if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
		if took := time.Since(start); took > s.o.Timeout/2 {
			t.Errorf("%s took %v", name, took)
		}
		cancel()
	}
	release()
	s.tidying.Wait()
	b.Suspend()
	for name, call := range calls {
		if call(t.Context()) == nil {
			t.Errorf("%s without a server", name)
		}
	}
	if err := b.Resume(); err != nil {
		t.Fatal(err)
	}
}
