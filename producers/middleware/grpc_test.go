package middleware

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	health "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"penstock/schemas/event"
)

// healthShop is a gRPC service: its owners are the names that are asked for.
type healthShop struct {
	health.UnimplementedHealthServer
}

func (healthShop) Check(_ context.Context, q *health.HealthCheckRequest) (*health.HealthCheckResponse, error) {
	switch q.GetService() {
	case "missing":
		return nil, status.Error(codes.NotFound, "no such service")
	case "panic":
		panic("on purpose")
	}
	return &health.HealthCheckResponse{Status: health.HealthCheckResponse_SERVING}, nil
}

func (healthShop) Watch(q *health.HealthCheckRequest, s grpc.ServerStreamingServer[health.HealthCheckResponse]) error {
	for range 3 {
		if err := s.Send(&health.HealthCheckResponse{Status: health.HealthCheckResponse_SERVING}); err != nil {
			return err
		}
	}
	return status.Error(codes.Unavailable, "enough")
}

// survive keeps a panic from ending the test, as servers have it outermost.
func survive(ctx context.Context, q any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (a any, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = status.Error(codes.Internal, "panic")
		}
	}()
	return h(ctx, q)
}

func TestCalls(t *testing.T) {
	t.Parallel()
	b := listening(t)
	rec := record(t, b.URL())
	owner := func(_ context.Context, _ string, m any) string {
		if q, ok := m.(*health.HealthCheckRequest); ok {
			return q.GetService()
		}
		return ""
	}
	rules := GRPCRules{
		Owner: owner, User: Metadata("x-user"),
		Class: func(_ context.Context, method string, _ any) string { return method },
		Skip:  func(method string) bool { return strings.HasSuffix(method, "/List") },
		Fill: func(_ context.Context, _ string, _ any, r *event.Request) {
			r.FromComponent = "web"
		},
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(survive, rec.UnaryServerInterceptor(rules)),
		grpc.StreamInterceptor(rec.StreamServerInterceptor(rules)))
	health.RegisterHealthServer(server, healthShop{})
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	defer func() {
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := health.NewHealthClient(conn)
	ctx := metadata.AppendToOutgoingContext(testContext(t), "traceparent", traceparent, "x-user", "anna")
	var header, trailer metadata.MD
	for name, code := range map[string]codes.Code{"good": codes.OK, "missing": codes.NotFound, "panic": codes.Internal} {
		_, err := client.Check(ctx, &health.HealthCheckRequest{Service: name}, grpc.Header(&header), grpc.Trailer(&trailer))
		if status.Code(err) != code {
			t.Errorf("%s: %v", name, err)
		}
		told := append(header.Get("server-timing"), trailer.Get("server-timing")...)
		if name != "panic" && (len(told) != 1 || !strings.HasPrefix(told[0], "app;dur=")) {
			t.Errorf("%s: server-timing %q", name, told)
		}
	}
	if _, err := client.List(ctx, &health.HealthListRequest{}); status.Code(err) != codes.Unimplemented {
		t.Error(err)
	}
	watch, err := client.Watch(ctx, &health.HealthCheckRequest{Service: "stream"})
	for err == nil {
		_, err = watch.Recv()
	}
	if status.Code(err) != codes.Unavailable || len(watch.Trailer().Get("server-timing")) != 1 {
		t.Errorf("%v, trailer %v", err, watch.Trailer())
	}
	if err := rec.Close(testContext(t)); err != nil {
		t.Fatal(err)
	}
	rows := published(t, b, 4)
	answer := int64(proto.Size(&health.HealthCheckResponse{Status: health.HealthCheckResponse_SERVING}))
	for name, want := range map[string]struct {
		status  int32
		answers int64
		class   string
	}{
		"good": {200, 1, "Check"}, "missing": {404, 0, "Check"}, "panic": {500, 0, "Check"}, "stream": {503, 3, "Watch"},
	} {
		r := rows[name]
		bytes := int64(proto.Size(&health.HealthCheckRequest{Service: name})) + want.answers*answer
		if r.Status != want.status || r.Bytes != bytes || r.Op != event.Read || r.User != "anna" || string(r.Trace[:]) != traceID ||
			r.Class != "/grpc.health.v1.Health/"+want.class || r.FromComponent != "web" || r.Service < 0 {
			t.Errorf("%s: %+v, expected %d bytes", name, r, bytes)
		}
	}
	if len(rows) != 4 {
		t.Errorf("%d rows", len(rows))
	}
}

func TestOpsOfMethods(t *testing.T) {
	t.Parallel()
	for method, op := range map[string]event.Op{
		"/shop.Cart/Get": event.Read, "/shop.Cart/GetItems": event.Read, "/shop.Cart/ListItems": event.Read,
		"/shop.Cart/Getaway": event.Write, "/shop.Cart/AddItem": event.Write, "/shop.Get/Put": event.Write,
		"/shop.Cart/BatchGetItems": event.Read, "": event.Write, "IsThere": event.Read, "Issue": event.Write,
	} {
		if got := OpOfMethod(method); got != op {
			t.Errorf("%q is a %v", method, got)
		}
	}
}

func TestStatusOfCodes(t *testing.T) {
	t.Parallel()
	for code, want := range map[codes.Code]int32{
		codes.OK: 200, codes.Canceled: 499, codes.Unknown: 500, codes.InvalidArgument: 400, codes.DeadlineExceeded: 504,
		codes.NotFound: 404, codes.AlreadyExists: 409, codes.PermissionDenied: 403, codes.ResourceExhausted: 429,
		codes.FailedPrecondition: 400, codes.Aborted: 409, codes.OutOfRange: 400, codes.Unimplemented: 501,
		codes.Internal: 500, codes.Unavailable: 503, codes.DataLoss: 500, codes.Unauthenticated: 401, 99: 500,
	} {
		if got := StatusOf(code); got != want {
			t.Errorf("%v is %d, expected %d", code, got, want)
		}
	}
	if status.Code(errors.New("plain")) != codes.Unknown {
		t.Error("an error without a status is no longer Unknown")
	}
}
