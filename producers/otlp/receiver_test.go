package otlp

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcgzip "google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"penstock/infra/clock"
	"penstock/producers/otlp/join"
	"penstock/producers/otlp/span"
)

// order, and are one call.
func TestHalvesByAllWays(t *testing.T) {
	w := start(t, func(o *Options) { o.Window = time.Hour }) // the end closes it
	client := w.client(t)
	ways := []func(*collector.ExportTraceServiceRequest){
		func(req *collector.ExportTraceServiceRequest) {
			if _, err := client.Export(testContext(t), req); err != nil {
				t.Error(err)
			}
		},
		func(req *collector.ExportTraceServiceRequest) {
			if _, err := client.Export(testContext(t), req, grpc.UseCompressor(grpcgzip.Name)); err != nil {
				t.Error(err)
			}
		},
		func(req *collector.ExportTraceServiceRequest) {
			if code, _, b := w.post(t, typeProto, "", marshal(t, req)); code != 200 || len(b) != 0 {
				t.Errorf("%d %q", code, b)
			}
		},
		func(req *collector.ExportTraceServiceRequest) {
			if code, _, b := w.post(t, typeProto, "gzip", packed(t, marshal(t, req))); code != 200 {
				t.Errorf("%d %q", code, b)
			}
		},
		func(req *collector.ExportTraceServiceRequest) {
			if code, h, b := w.post(t, typeJSON+"; charset=utf-8", "", jsonOf(req)); code != 200 || string(b) != "{}" || h.Get("Content-Type") != typeJSON {
				t.Errorf("%d %q", code, b)
			}
		},
		func(req *collector.ExportTraceServiceRequest) {
			if code, _, b := w.post(t, typeJSON, "gzip", packed(t, jsonOf(req))); code != 200 {
				t.Errorf("%d %q", code, b)
			}
		},
	}
	n := byte(0)
	for i := range ways {
		for j := range ways {
			n++
			ways[i](requestOf("shop", "eu", spanOf(n, 1, 0, clientKind, 0, 5*ms)))
			ways[j](requestOf("cart", "us", spanOf(n, 2, 1, serverKind, ms, 4*ms)))
		}
	}
	if err := w.end(); err != nil {
		t.Fatal(err)
	}
	for _, r := range w.sink.all() {
		if r.FromComponent != "shop" || r.FromSite != "eu" || r.ToComponent != "cart" || r.ToSite != "us" || r.Service != 3000 || r.Network != 2000 {
			t.Errorf("%+v", r)
		}
	}
	if st := w.Stats(); len(w.sink.all()) != int(n) || st.Account[join.Called] != int64(n) || st.Account[join.Half] != int64(n) || st.Read != 2*int64(n) {
		t.Errorf("%s", &st.Account)
	}
}

// Spans that can't be used are rejected with a reason, and the others are taken:
// nobody should send them again.
func TestPartialSuccess(t *testing.T) {
	reg := prometheus.NewRegistry()
	w := start(t, func(o *Options) { o.Registerer = reg })
	bad := spanOf(1, 3, 0, serverKind, 0, ms)
	bad.TraceId = bad.TraceId[:3]
	req := requestOf("cart", "us", spanOf(1, 2, 0, serverKind, 0, ms), bad)
	check := func(p *collector.ExportTracePartialSuccess) {
		t.Helper()
		if p.GetRejectedSpans() != 1 || !strings.Contains(p.GetErrorMessage(), "trace id of 3 bytes") {
			t.Errorf("%v", p)
		}
	}
	res, err := w.client(t).Export(testContext(t), req)
	if err != nil {
		t.Fatal(err)
	}
	check(res.GetPartialSuccess())
	code, _, b := w.post(t, typeProto, "", marshal(t, req))
	var out collector.ExportTraceServiceResponse
	if err := proto.Unmarshal(b, &out); err != nil || code != 200 {
		t.Fatalf("%d %v", code, err)
	}
	check(out.GetPartialSuccess())
	code, _, b = w.post(t, typeJSON, "", []byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"1"}]}]}]}`))
	var answer struct {
		PartialSuccess struct {
			RejectedSpans string `json:"rejectedSpans"`
			ErrorMessage  string `json:"errorMessage"`
		} `json:"partialSuccess"`
	}
	if err := json.Unmarshal(b, &answer); err != nil || code != 200 || answer.PartialSuccess.RejectedSpans != "1" || answer.PartialSuccess.ErrorMessage == "" {
		t.Errorf("%d %s", code, b)
	}
	if err := w.end(); err != nil {
		t.Fatal(err)
	}
	if st := w.Stats(); st.Account.Sum() != 5 || st.Account[join.Malformed] != 3 || st.Account[join.Duplicate] != 1 {
		t.Errorf("%s", &st.Account)
	}
	if n := testutil.ToFloat64(w.m.spans.WithLabelValues("malformed")); n != 3 {
		t.Errorf("%v malformed in metrics", n)
	}
	if n := testutil.ToFloat64(w.m.requests.WithLabelValues("http-json", outcomePartial)); n != 1 {
		t.Errorf("%v partial in metrics", n)
	}
}

// What is wrong once is wrong again: the codes say that it should not be sent again.
func TestRefusedForGood(t *testing.T) {
	w := start(t, func(o *Options) { o.MaxBody = 1000 })
	long := requestOf(strings.Repeat("x", 2000), "eu", spanOf(1, 2, 0, serverKind, 0, ms))
	good := marshal(t, requestOf("cart", "us", spanOf(1, 2, 0, serverKind, 0, ms)))
	for name, c := range map[string]struct {
		kind, encoding string
		body           []byte
		code           int
	}{
		"no protobuf":           {typeProto, "", []byte{0x0a, 0x7f, 1}, 400},
		"no JSON":               {typeJSON, "", []byte(`{"resourceSpans":[`), 400},
		"JSON of another thing": {typeJSON, "", []byte(`[1]`), 400},
		"no gzip":               {typeProto, "gzip", good, 400},
		"half a gzip":           {typeProto, "gzip", packed(t, good)[:20], 400},
		"too large":             {typeProto, "", marshal(t, long), 413},
		"too large unpacked":    {typeProto, "gzip", packed(t, marshal(t, long)), 413},
		"another encoding":      {typeProto, "br", good, 415},
		"another type":          {"text/plain", "", good, 415},
		"no type":               {"", "", good, 415},
	} {
		t.Run(name, func(t *testing.T) {
			code, h, b := w.post(t, c.kind, c.encoding, c.body)
			if code != c.code || len(b) == 0 {
				t.Errorf("%d %q, expected %d and a reason", code, b, c.code)
			}
			if h.Get("Retry-After") != "" {
				t.Error("it says to try again")
			}
			var st rpcstatus.Status
			if c.kind == typeProto && (proto.Unmarshal(b, &st) != nil || st.GetMessage() == "") {
				t.Errorf("%q is no status", b)
			}
		})
	}
	_, err := w.client(t).Export(testContext(t), long)
	if status.Code(err) != codes.ResourceExhausted || len(status.Convert(err).Details()) > 0 {
		t.Errorf("%v, expected RESOURCE_EXHAUSTED without RetryInfo", err)
	}
	res, err := http.Get(w.http)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", res.StatusCode)
	}
	if code, _, b := w.post(t, typeProto, "", good); code != 200 {
		t.Errorf("a good one after all these: %d %q", code, b)
	}
	http.DefaultClient.CloseIdleConnections()
}

// While nothing gets through the queue fills, and clients are told to try again;
// nothing of what was refused is taken, and what was taken is not lost.
func TestNoRoom(t *testing.T) {
	w := start(t, func(o *Options) { o.QueueMax, o.MaxSpans = 4, 1 })
	w.sink.gate.Lock()
	client := w.client(t)
	taken := int64(0)
	ctx := testContext(t)
	for n := byte(1); ; n++ {
		_, err := client.Export(ctx, requestOf("cart", "us", spanOf(n, 1, 0, serverKind, 0, ms), spanOf(n+100, 2, 0, serverKind, 0, ms)))
		if err == nil {
			if taken += 2; taken > 100 {
				t.Fatal("the queue has no end")
			}
			continue
		}
		s := status.Convert(err)
		if s.Code() != codes.Unavailable || len(s.Details()) != 1 {
			t.Fatalf("%v, expected UNAVAILABLE with RetryInfo", err)
		}
		if info, ok := s.Details()[0].(*errdetails.RetryInfo); !ok || info.GetRetryDelay().AsDuration() != retryAfter {
			t.Fatalf("%v", s.Details())
		}
		break
	}
	code, h, _ := w.post(t, typeProto, "", marshal(t, requestOf("cart", "us", spanOf(99, 9, 0, serverKind, 0, ms))))
	if code != http.StatusServiceUnavailable || h.Get("Retry-After") != "1" {
		t.Errorf("%d, Retry-After %q", code, h.Get("Retry-After"))
	}
	w.sink.gate.Unlock()
	w.sink.await(t, int(taken))
	for { // there is room again
		if code, _, _ := w.post(t, typeProto, "", marshal(t, requestOf("cart", "us", spanOf(99, 9, 0, serverKind, 0, ms)))); code == 200 {
			break
		}
	}
	if err := w.end(); err != nil {
		t.Fatal(err)
	}
	if st := w.Stats(); st.Account[join.Called] != taken+1 || st.Account.Sum() != taken+1 {
		t.Errorf("%s, expected %d calls", &st.Account, taken+1)
	}
}

// Traces are open for a window after their last span, and for no more than MaxAge.
func TestWindowByTheClock(t *testing.T) {
	m := clock.NewManual(time.Unix(1_700_000_000, 0))
	w := start(t, func(o *Options) { o.Clock, o.Window, o.MaxAge = m, 10*time.Second, 25*time.Second })
	client := w.client(t)
	send := func(service string, n byte, parent byte, k int) {
		t.Helper()
		s := spanOf(1, n, parent, serverKind, 0, ms)
		if k == 0 {
			s.Kind = clientKind
		}
		if _, err := client.Export(testContext(t), requestOf(service, "eu", s)); err != nil {
			t.Fatal(err)
		}
		for w.open.Load() != int64(n) { // joined before the clock goes on
			time.Sleep(time.Millisecond)
		}
	}
	if err := m.Await(testContext(t), 1); err != nil {
		t.Fatal(err)
	}
	// Each span keeps the trace open for another window, until its age ends it.
	send("shop", 1, 0, 0)
	m.Advance(9 * time.Second)
	send("cart", 2, 1, 1)
	m.Advance(9 * time.Second)
	send("cart", 3, 2, 2)
	if n := len(w.sink.all()); n != 0 {
		t.Fatalf("%d calls after 18 s", n)
	}
	m.Advance(9 * time.Second)
	rows := w.sink.await(t, 1)
	if rows[0].FromComponent != "shop" || rows[0].ToComponent != "cart" {
		t.Errorf("%+v", rows[0])
	}
}

// At the end open traces are resolved: nothing that was taken is lost.
func TestEndResolvesWhatIsOpen(t *testing.T) {
	w := start(t, func(o *Options) { o.Window = time.Hour })
	client := w.client(t)
	for n := byte(1); n <= 50; n++ {
		if _, err := client.Export(testContext(t), requestOf("cart", "us", spanOf(n, 1, 0, serverKind, 0, ms))); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.end(); err != nil {
		t.Fatal(err)
	}
	if n := len(w.sink.all()); n != 50 {
		t.Errorf("%d calls, expected 50", n)
	}
	if err := w.queue.put(batch{}); !errors.Is(err, errClosing) {
		t.Errorf("after the end: %v", err)
	}
}

func TestOptionsThatCannotBe(t *testing.T) {
	good := Options{GRPC: listen(t), Publisher: newSink()}
	defer good.GRPC.Close()
	for name, spoil := range map[string]func(*Options){
		"no publisher":   func(o *Options) { o.Publisher = nil },
		"no listener":    func(o *Options) { o.GRPC = nil },
		"a window of -1": func(o *Options) { o.Window = -1 },
		"2 GB":           func(o *Options) { o.MaxBody = 2 << 30 },
	} {
		o := good
		spoil(&o)
		if _, err := New(o); !errors.Is(err, ErrOptions) {
			t.Errorf("%s: %v", name, err)
		}
	}
	o := good
	o.Rules.Site = []span.Source{{}}
	if _, err := New(o); !errors.Is(err, span.ErrRule) {
		t.Errorf("a bad rule: %v", err)
	}
	if d := (Options{}).Delay(); d != 7*time.Second {
		t.Errorf("calls are %v late by default, expected 7 s: a window of 10 s is decided within two", d)
	}
}

// Whatever is posted is answered, and accounted for.
func FuzzPost(f *testing.F) {
	req := requestOf("cart", "us", spanOf(1, 2, 0, serverKind, 0, ms))
	f.Add(marshal(f, req), false, false)
	f.Add(jsonOf(req), true, false)
	f.Add(packed(f, jsonOf(req)), true, true)
	l := listen(f)
	defer l.Close()
	s := newSink()
	r, err := New(Options{GRPC: l, Publisher: s, MaxBody: 1 << 16, QueueMax: 1 << 30})
	if err != nil {
		f.Fatal(err)
	}
	h := r.Handler()
	f.Fuzz(func(t *testing.T, body []byte, asJSON, zipped bool) {
		w := newRecorder()
		hr, err := http.NewRequest(http.MethodPost, TracesPath, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		hr.Host = "127.0.0.1:4318"
		hr.Header.Set("Content-Type", typeProto)
		if asJSON {
			hr.Header.Set("Content-Type", typeJSON)
		}
		if zipped {
			hr.Header.Set("Content-Encoding", "gzip")
		}
		h.ServeHTTP(w, hr)
		if w.code != 200 && w.code != 400 && w.code != 413 {
			t.Fatalf("%d %q", w.code, w.body.String())
		}
		batches := r.queue.take()
		for _, b := range batches {
			for i := range b.spans {
				if err := b.spans[i].Check(); err != nil {
					t.Fatal(err)
				}
			}
		}
		r.queue.done(batches)
	})
}

// recorder is an answer in memory.
type recorder struct {
	code   int
	header http.Header
	body   bytes.Buffer
}

func newRecorder() *recorder { return &recorder{header: http.Header{}} }

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(code int)        { r.code = code }
func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }

// The joiner's goroutine makes no garbage for each span that it joins.
func BenchmarkJoin(b *testing.B) {
	n := 0
	j := join.New(join.Options{MaxSpans: 1 << 14}, func(*join.Call) { n++ })
	var halves [2]span.Span
	for i := range halves {
		halves[i].Reset()
		halves[i].ID[7], halves[i].Start, halves[i].Duration = byte(i+1), 1_700_000_000_000_000_000, int64(1000-i)
		halves[i].Component = [...]string{"shop", "cart"}[i]
	}
	halves[0].Kind, halves[1].Kind, halves[1].Parent = span.Client, span.Server, halves[0].ID
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		for h := range halves {
			halves[h].Trace = span.Trace{1, 10: byte(i >> 24), 11: byte(i >> 16), 12: byte(i >> 8), 13: byte(i)}
			j.Add(int64(i), &halves[h])
		}
	}
	j.Flush()
	if st := j.Stats(); st.Account[join.Called] != int64(n) {
		b.Fatal(st.Account.String())
	}
}
