package otlp

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"pgregory.net/rapid"

	"penstock/producers/otlp/join"
	"penstock/producers/otlp/span"
	"penstock/schemas/event"
)

// startPeers starts receivers that share traces.
func startPeers(t *testing.T, n int, change func(i int, o *Options)) []*world {
	t.Helper()
	var names []string
	var os []Options
	for range n {
		o := Options{GRPC: listen(t), HTTP: listen(t)}
		os, names = append(os, o), append(names, o.GRPC.Addr().String())
	}
	var out []*world
	for i := range n {
		out = append(out, start(t, func(o *Options) {
			_ = o.GRPC.Close()
			_ = o.HTTP.Close()
			o.GRPC, o.HTTP, o.Window = os[i].GRPC, os[i].HTTP, time.Hour
			o.Peers, o.Self = names, names[i]
			if change != nil {
				change(i, o)
			}
		}))
	}
	return out
}

// The halves of each call arrive at different receivers and are one call, made by
// whichever owns the trace; each has its share.
func TestHalvesAtTwoReceivers(t *testing.T) {
	ws := startPeers(t, 3, nil)
	const calls = 60
	for n := range byte(calls) {
		a, b := ws[int(n)%3], ws[int(n+1)%3]
		if _, err := a.client(t).Export(testContext(t), requestOf("shop", "eu", spanOf(n+1, 1, 0, clientKind, 0, 5*ms))); err != nil {
			t.Fatal(err)
		}
		if code, _, body := b.post(t, typeJSON, "", jsonOf(requestOf("cart", "us", spanOf(n+1, 2, 1, serverKind, ms, 4*ms)))); code != 200 {
			t.Fatalf("%d %s", code, body)
		}
	}
	total := 0
	for _, w := range ws {
		if err := w.end(); err != nil {
			t.Fatal(err)
		}
		rows := w.sink.all()
		if len(rows) == 0 || len(rows) > calls/2 {
			t.Errorf("%d of %d calls are one receiver's", len(rows), calls)
		}
		total += len(rows)
		for _, r := range rows {
			if r.FromComponent != "shop" || r.FromSite != "eu" || r.ToComponent != "cart" || r.ToSite != "us" || r.Service != 3000 || r.Network != 2000 {
				t.Errorf("%+v", r)
			}
		}
		if st := w.Stats(); st.Account[join.Called] != st.Account[join.Half] || st.Account[join.Orphan] != 0 {
			t.Errorf("%s", &st.Account)
		}
	}
	if total != calls {
		t.Errorf("%d calls, expected %d", total, calls)
	}
}

// A receiver that is gone is passed over at once, and its traces have one owner
// again: no call is lost or made twice.
func TestReceiverIsGone(t *testing.T) {
	ws := startPeers(t, 3, nil)
	if err := ws[1].end(); err != nil {
		t.Fatal(err)
	}
	const calls = 30
	for n := range byte(calls) {
		for i, w := range []*world{ws[0], ws[2]} {
			req := requestOf("shop", "eu", spanOf(n+1, 1, 0, clientKind, 0, 5*ms))
			if i == 1 {
				req = requestOf("cart", "us", spanOf(n+1, 2, 1, serverKind, ms, 4*ms))
			}
			if _, err := w.client(t).Export(testContext(t), req); err != nil {
				t.Fatal(err)
			}
		}
	}
	total := 0
	for _, w := range []*world{ws[0], ws[2]} {
		if err := w.end(); err != nil {
			t.Fatal(err)
		}
		total += len(w.sink.all())
		if st := w.Stats(); st.Account[join.Orphan]+st.Account[join.Unnamed]+st.Account[join.Late] != 0 {
			t.Errorf("%s", &st.Account)
		}
	}
	if total != calls {
		t.Errorf("%d calls, expected %d", total, calls)
	}
}

// A receiver without room makes the others say so: nothing is left out silently.
func TestPeerWithoutRoom(t *testing.T) {
	ws := startPeers(t, 2, func(i int, o *Options) {
		if i == 1 {
			o.QueueMax, o.MaxSpans = 1, 1
		}
	})
	ws[1].sink.gate.Lock()
	client := ws[0].client(t)
	var refused error
	for n := byte(1); n < 200 && refused == nil; n++ {
		_, refused = client.Export(testContext(t), requestOf("cart", "us", spanOf(n, 1, 0, serverKind, 0, ms)))
	}
	ws[1].sink.gate.Unlock()
	if status.Code(refused) != codes.Unavailable || !isBusy(refused) {
		t.Errorf("%v, expected UNAVAILABLE with RetryInfo", refused)
	}
}

func TestPeersThatCannotBe(t *testing.T) {
	l := listen(t)
	defer l.Close()
	for name, o := range map[string]Options{
		"not among":  {GRPC: l, Publisher: newSink(), Peers: []string{"a:1", "b:1"}, Self: "c:1"},
		"twice":      {GRPC: l, Publisher: newSink(), Peers: []string{"a:1", "b:1", "a:1"}, Self: "b:1"},
		"needs a li": {HTTP: l, Publisher: newSink(), Peers: []string{"a:1"}, Self: "a:1"},
	} {
		if _, err := New(o); !errors.Is(err, ErrOptions) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A span that goes from one receiver to another arrives as it was.
func TestSharedSpansStayAsTheyAre(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var want []span.Span
		for range rapid.IntRange(0, 5).Draw(t, "spans") {
			var s span.Span
			s.Reset()
			copy(s.Trace[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "trace"))
			copy(s.ID[:], rapid.SliceOfN(rapid.Byte(), 8, 8).Draw(t, "id"))
			s.Trace[0], s.ID[0] = 1, 1
			s.Parent[7] = rapid.Byte().Draw(t, "parent")
			s.Kind = span.Kind(rapid.IntRange(0, 5).Draw(t, "kind"))
			start := uint64(rapid.Int64Range(0, 1<<60).Draw(t, "start"))
			end := uint64(rapid.SampledFrom([]int64{0, 1, 1 << 40, 1<<60 + 5}).Draw(t, "end"))
			if err := s.Times(start, end); err != nil {
				t.Fatal(err)
			}
			for _, f := range texts(&s) {
				*f = rapid.SampledFrom([]string{"", "a", "été"}).Draw(t, "text")
			}
			s.Status = int32(rapid.SampledFrom([]int{event.NullStatus, 0, 200, 503}).Draw(t, "status"))
			s.Op, s.Bytes = event.Op(rapid.IntRange(0, 1).Draw(t, "op")), rapid.Int64Range(0, 1<<30).Draw(t, "bytes")
			want = append(want, s)
		}
		var got batch
		if err := unpackShared(&got, packShared(want)); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got.spans, want) {
			t.Fatalf("%+v\n%+v", got.spans, want)
		}
	})
}

// What is no shared span is refused, and nothing of the request is taken.
func TestSharedSpansThatAreNone(t *testing.T) {
	good := func() *span.Span {
		var s span.Span
		s.Reset()
		s.Trace[0], s.ID[0] = 1, 1
		return &s
	}
	for name, spoil := range map[string]func(*span.Span){
		"no trace": func(s *span.Span) { s.Trace = span.Trace{} },
		"status":   func(s *span.Span) { s.Status = 1 << 20 },
		"op":       func(s *span.Span) { s.Op = 7 },
		"bytes":    func(s *span.Span) { s.Bytes = -1 },
	} {
		s := good()
		spoil(s)
		var b batch
		if err := unpackShared(&b, packShared([]span.Span{*s})); !errors.Is(err, span.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var b batch
	if err := unpackShared(&b, requestOf("cart", "us", spanOf(1, 1, 0, serverKind, 0, ms))); !errors.Is(err, span.ErrMalformed) {
		t.Errorf("one of a client: %v", err)
	}
}
