package jetstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
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
	"penstock/infra/clock"
)

var buckets atomic.Int64

func open(t testing.TB, js jetstream.JetStream) *Store {
	t.Helper()
	return openBucket(t, js, fmt.Sprintf("bucket-%d", buckets.Add(1)))
}

func openBucket(t testing.TB, js jetstream.JetStream, bucket string) *Store {
	t.Helper()
	s, err := Open(t.Context(), Options{Name: "stream", Bucket: bucket, JS: js})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func connect(t testing.TB) jetstream.JetStream {
	t.Helper()
	return bustest.Client(t, bustest.Start(t)).JS
}

func TestSuite(t *testing.T) {
	js := connect(t)
	chunkstest.Suite(t, func(t *testing.T) chunks.Store { return open(t, js) })
}

// TestReadsByTheLeader: a stream without direct reads, as one with several replicas is.
func TestReadsByTheLeader(t *testing.T) {
	js := connect(t)
	chunkstest.Suite(t, func(t *testing.T) chunks.Store {
		bucket := fmt.Sprintf("led-%d", buckets.Add(1))
		_, err := js.CreateStream(t.Context(), jetstream.StreamConfig{
			Name: "CHUNKS_" + bucket, Subjects: []string{"$CHUNKS." + bucket + ".>"}, AllowRollup: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		return openBucket(t, js, bucket)
	})
}

func bytesOf(t *testing.T, seed byte, n int64) []byte {
	t.Helper()
	b, err := io.ReadAll(chunkstest.Noise(seed, n))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestPagesGoOnInWhatWasSeen: for a minute, in order, each blob once, by one listing; a
// listing from the beginning, or later, sees what is there.
func TestPagesGoOnInWhatWasSeen(t *testing.T) {
	c := clock.NewManual(time.Unix(1e9, 0))
	s, err := Open(t.Context(), Options{Name: "stream", Bucket: "pages", JS: connect(t), Clock: c})
	if err != nil {
		t.Fatal(err)
	}
	put := func(key string) {
		t.Helper()
		if err := s.Put(t.Context(), key, strings.NewReader("x"), 1); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"a", "b", "c", "d", "e"} {
		put(key)
	}
	page := func(after string, limit int, want ...string) {
		t.Helper()
		l, err := s.List(t.Context(), "", after, limit)
		var got []string
		for _, e := range l {
			got = append(got, e.Key)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("after %q: %v, want %v, %v", after, got, want, err)
		}
	}
	page("", 2, "a", "b")
	put("bb")
	page("b", 2, "c", "d") // what was seen
	page("c", 1, "d")      // another place
	page("", 2, "a", "b")
	page("b", 2, "bb", "c")
	put("cc")
	c.Advance(fresh + 1)
	page("c", 2, "cc", "d") // too long ago
	page("d", 1, "e")
	put("f")
	page("e", 9) // it had ended
	page("e", 9, "f")
	page("d", 9, "e", "f")
	s.seen.put(seen{prefix: "", after: "b", entries: []chunks.Entry{{Key: "only"}}, cut: true, at: c.Now()})
	page("b", 2, "bb", "c") // there were more than it kept
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

// TestLargeBlobs are in pieces, none of which is left without its entry.
func TestLargeBlobs(t *testing.T) {
	s := open(t, connect(t))
	chunkstest.Large(t, s, pieceSize, func() int {
		s.tidying.Wait()
		blobs, err := s.List(t.Context(), "", "", 100)
		if err != nil {
			t.Fatal(err)
		}
		wanted := 0
		for _, b := range blobs {
			if wanted++; b.Bytes > pieceSize {
				wanted += int((b.Bytes + pieceSize - 1) / pieceSize)
			}
		}
		return int(messages(t, s)) - wanted
	})
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
				if err := s.Put(t.Context(), "k", chunkstest.Noise(byte(i), size), size); err != nil {
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
	if err := s.Put(t.Context(), "k", chunkstest.Noise(1, 2*pieceSize), 2*pieceSize); err != nil {
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
		if err := s.Put(t.Context(), key, chunkstest.Noise(1, 3*pieceSize), 3*pieceSize); err != nil {
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
		if err := s.Put(t.Context(), fmt.Sprint(size), chunkstest.Noise(1, size), size); err != nil {
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
		"put":       func(ctx context.Context) error { return s.Put(ctx, "k", chunkstest.Noise(1, 9), 9) },
		"large put": func(ctx context.Context) error { return s.Put(ctx, "k", chunkstest.Noise(1, 9*pieceSize), 9*pieceSize) },
	}
	for name, call := range calls {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		start := time.Now()
		if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
		if took := time.Since(start); took >= s.o.Timeout { // by then it would have ended by itself
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
