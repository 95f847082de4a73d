package middleware

import (
	"context"
	"net/http"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"penstock/schemas/event"
)

// GRPCRules say what the columns of a gRPC call are, as Rules do for HTTP. method
// is the full name, "/shop.Cart/GetItems"; message is the first that the client
// sent, nil if none came.
type GRPCRules struct {
	// User asked. Without it, a keyed hash of the client's address if the
	// recorder has a key.
	User func(ctx context.Context, method string, message any) string
	// Owner is whose data was asked for.
	Owner func(ctx context.Context, method string, message any) string
	// Class is an endpoint, an object class, …
	Class func(ctx context.Context, method string, message any) string
	// Op is a read or a write. Without it the method's name says (OpOfMethod).
	Op func(method string) event.Op
	// Fill has the last word on the whole row.
	Fill func(ctx context.Context, method string, message any, row *event.Request)
	// Skip leaves methods out, such as those of health checks.
	Skip func(method string) bool
}

// Metadata takes a value of the call's metadata.
func Metadata(name string) func(context.Context, string, any) string {
	return func(ctx context.Context, _ string, _ any) string {
		if v := metadata.ValueFromIncomingContext(ctx, name); len(v) > 0 {
			return v[0]
		}
		return ""
	}
}

// reads are the words with which names of methods begin that change nothing
// (Google's API design guide, standard methods, and common others).
var reads = [...]string{
	"Get", "List", "Search", "Find", "Read", "Lookup", "Query", "Fetch", "Watch", "Count", "Check",
	"Describe", "BatchGet", "Has", "Is", "Exists", "Stat", "Show", "View", "Resolve", "Subscribe", "Stream", "Download",
}

// OpOfMethod is a read for a method whose name begins with a word such as Get,
// List or Search, and a write for all others.
func OpOfMethod(method string) event.Op {
	name := method[strings.LastIndexByte(method, '/')+1:]
	for _, word := range reads {
		rest, ok := strings.CutPrefix(name, word)
		// "Get" and "GetItem" begin with the word, "Getaway" does not.
		if ok && (rest == "" || rest[0] < 'a' || rest[0] > 'z') {
			return event.Read
		}
	}
	return event.Write
}

// StatusOf is the HTTP status of a gRPC code, as google.rpc.Code maps them.
func StatusOf(code codes.Code) int32 {
	switch code {
	case codes.OK:
		return http.StatusOK
	case codes.Canceled:
		return 499
	case codes.InvalidArgument, codes.FailedPrecondition, codes.OutOfRange:
		return http.StatusBadRequest
	case codes.DeadlineExceeded:
		return http.StatusGatewayTimeout
	case codes.NotFound:
		return http.StatusNotFound
	case codes.AlreadyExists, codes.Aborted:
		return http.StatusConflict
	case codes.PermissionDenied:
		return http.StatusForbidden
	case codes.Unauthenticated:
		return http.StatusUnauthorized
	case codes.ResourceExhausted:
		return http.StatusTooManyRequests
	case codes.Unimplemented:
		return http.StatusNotImplemented
	case codes.Unavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError // Unknown, Internal, DataLoss, and what is new
}

// call is one call of a method.
type call struct {
	r       *Recorder
	rules   *GRPCRules
	ctx     context.Context
	method  string
	began   time.Time
	message any
	bytes   int64
	status  int32
}

func (r *Recorder) begin(ctx context.Context, method string, rules *GRPCRules) *call {
	// A handler that panics never comes to say how it went.
	return &call{r: r, rules: rules, ctx: ctx, method: method, began: r.o.Clock.Now(), status: http.StatusInternalServerError}
}

// skipsCall asks the rule whether to leave a method out.
func (r *Recorder) skipsCall(rules *GRPCRules, method string) (skip bool) {
	if rules.Skip != nil {
		r.guard("skip", func() { skip = rules.Skip(method) })
	}
	return skip
}

// timing is the metadata that tells how long the service took.
func (c *call) timing() metadata.MD {
	return metadata.Pairs("server-timing", string(appendTiming(make([]byte, 0, 32), c.r.o.Clock.Now().Sub(c.began))))
}

// took adds a message's bytes.
func (c *call) took(m any) {
	if p, ok := m.(proto.Message); ok {
		c.bytes += int64(proto.Size(p))
	}
}

// UnaryServerInterceptor records calls with one message each way. Bytes are those
// of the messages; the status is that of StatusOf. A handler that panics is
// recorded with status 500 and goes on panicking.
func (r *Recorder) UnaryServerInterceptor(rules GRPCRules) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		if r.skipsCall(&rules, info.FullMethod) {
			return handler(ctx, req)
		}
		c := r.begin(ctx, info.FullMethod, &rules)
		c.message = req
		c.took(req)
		defer c.done()
		resp, err := handler(ctx, req)
		c.status = StatusOf(status.Code(err))
		if err == nil {
			c.took(resp)
		}
		if grpc.SetHeader(ctx, c.timing()) != nil {
			_ = grpc.SetTrailer(ctx, c.timing()) // The handler has sent the header itself.
		}
		return resp, err
	}
}

// StreamServerInterceptor records calls with streams of messages, when they end.
func (r *Recorder) StreamServerInterceptor(rules GRPCRules) grpc.StreamServerInterceptor {
	return func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		if r.skipsCall(&rules, info.FullMethod) {
			return handler(srv, ss)
		}
		c := &countedStream{ServerStream: ss, call: r.begin(ss.Context(), info.FullMethod, &rules)}
		defer c.finish()
		err := handler(srv, c)
		c.call.status = StatusOf(status.Code(err))
		ss.SetTrailer(c.call.timing())
		return err
	}
}

// done records the call.
func (c *call) done() {
	r, rules := c.r, c.rules
	now := r.o.Clock.Now()
	row := event.NewRequest(now.UnixMicro())
	row.Service, row.Status = now.Sub(c.began).Microseconds(), c.status
	row.Bytes = min(c.bytes, event.MaxRequestBytes)
	if v := metadata.ValueFromIncomingContext(c.ctx, "traceparent"); len(v) > 0 {
		row.Trace = traceOf(v[0])
	}
	row.Op = OpOfMethod(c.method)
	if rules.Op != nil {
		r.guard("op", func() { row.Op = rules.Op(c.method) })
	}
	for _, f := range [...]struct {
		name string
		rule func(context.Context, string, any) string
		into *string
	}{{"user", rules.User, &row.User}, {"owner", rules.Owner, &row.Owner}, {"class", rules.Class, &row.Class}} {
		if f.rule != nil {
			r.guard(f.name, func() { *f.into = f.rule(c.ctx, c.method, c.message) })
		}
	}
	if p, ok := peer.FromContext(c.ctx); ok && row.User == "" && p.Addr != nil {
		row.User = r.address(p.Addr.String())
	}
	if rules.Fill != nil {
		r.guard("fill", func() { rules.Fill(c.ctx, c.method, c.message, &row) })
	}
	r.Record(&row)
}
