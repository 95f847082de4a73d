package otlp

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"

	"penstock/infra/bus/bustest"
	"penstock/infra/publisher"
	"penstock/schemas/event"
)

var _ Publisher = (*publisher.Publisher)(nil)

func TestMain(m *testing.M) { bustest.Main(m) }

const patience = time.Minute

func testContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// sink keeps what is published. While gate is locked nothing gets through.
type sink struct {
	gate sync.Mutex
	mu   sync.Mutex
	rows []event.Request
	some chan struct{}
}

func newSink() *sink { return &sink{some: make(chan struct{}, 1)} }

func (s *sink) Publish(r *event.Request) {
	s.gate.Lock()
	defer s.gate.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows = append(s.rows, *r)
	select {
	case s.some <- struct{}{}:
	default:
	}
}

func (s *sink) all() []event.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.rows)
}

// await returns the rows once there are n.
func (s *sink) await(t testing.TB, n int) []event.Request {
	t.Helper()
	ctx := testContext(t)
	for {
		if rows := s.all(); len(rows) >= n {
			return rows
		}
		select {
		case <-s.some:
		case <-ctx.Done():
			t.Fatalf("%d calls, expected %d", len(s.all()), n)
		}
	}
}

// world is a receiver that runs.
type world struct {
	*Receiver
	sink       *sink
	grpc, http string
	end        func() error
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func start(t testing.TB, change func(*Options)) *world {
	t.Helper()
	w := &world{sink: newSink()}
	o := Options{GRPC: listen(t), HTTP: listen(t), Publisher: w.sink, Window: 50 * time.Millisecond, CloseTimeout: time.Second}
	if change != nil {
		change(&o)
	}
	w.grpc, w.http = o.GRPC.Addr().String(), "http://"+o.HTTP.Addr().String()+TracesPath
	r, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	w.Receiver = r
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	w.end = sync.OnceValue(func() error {
		cancel()
		select {
		case err := <-done:
			return err
		case <-time.After(patience):
			return errors.New("Run does not return")
		}
	})
	t.Cleanup(func() {
		if err := w.end(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// client is a client of the receiver's gRPC.
func (w *world) client(t testing.TB) collector.TraceServiceClient {
	t.Helper()
	c, err := grpc.NewClient(w.grpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return collector.NewTraceServiceClient(c)
}

// spanOf makes a span of a trace by numbers; parent 0 is none.
func spanOf(tr, id, parent byte, k trace.Span_SpanKind, from, to time.Duration) *trace.Span {
	at := uint64(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixNano())
	s := &trace.Span{
		TraceId: make([]byte, 16), SpanId: make([]byte, 8), Kind: k,
		StartTimeUnixNano: at + uint64(from), EndTimeUnixNano: at + uint64(to),
	}
	s.TraceId[15], s.SpanId[7] = tr, id
	if parent > 0 {
		s.ParentSpanId = make([]byte, 8)
		s.ParentSpanId[7] = parent
	}
	return s
}

func requestOf(service, region string, spans ...*trace.Span) *collector.ExportTraceServiceRequest {
	text := func(k, v string) *common.KeyValue {
		return &common.KeyValue{Key: k, Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: v}}}
	}
	return &collector.ExportTraceServiceRequest{ResourceSpans: []*trace.ResourceSpans{{
		Resource:   &resource.Resource{Attributes: []*common.KeyValue{text("service.name", service), text("cloud.region", region)}},
		ScopeSpans: []*trace.ScopeSpans{{Spans: spans}},
	}}}
}

const (
	clientKind = trace.Span_SPAN_KIND_CLIENT
	serverKind = trace.Span_SPAN_KIND_SERVER
	ms         = time.Millisecond
)
