package otlp

import (
	"context"
	"errors"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"penstock/producers/otlp/span"
)

// retryAfter is when a client that was refused for want of room may try again.
const retryAfter = time.Second

// traceService is the service of OTLP over gRPC.
type traceService struct {
	collector.UnimplementedTraceServiceServer
	r *Receiver
}

// Export takes one request.
func (s *traceService) Export(ctx context.Context, req *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	var t taken
	var err error
	if s.r.peers != nil && isShared(ctx) {
		err = s.r.takeShared(req)
	} else {
		t, err = s.r.take(ctx, func(d *decoder) error {
			d.Request(req)
			return nil
		})
	}
	outcome := outcomeOf(t, err)
	s.r.m.requests.WithLabelValues("grpc", outcome).Inc()
	switch outcome {
	case outcomeTaken, outcomePartial:
		return response(t), nil
	case outcomeBusy, outcomeClosing:
		return nil, unavailable(err).Err()
	}
	if errors.Is(err, span.ErrMalformed) {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	return nil, status.FromContextError(err).Err()
}

// response says what was taken.
func response(t taken) *collector.ExportTraceServiceResponse {
	out := &collector.ExportTraceServiceResponse{}
	if t.rejected > 0 {
		out.PartialSuccess = &collector.ExportTracePartialSuccess{RejectedSpans: t.rejected, ErrorMessage: t.reason}
	}
	return out
}

// unavailable tells a client to try again.
func unavailable(err error) *status.Status {
	s := status.New(codes.Unavailable, err.Error())
	if detailed, err := s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(retryAfter)}); err == nil {
		return detailed
	}
	return s
}

// outcomeOf names what became of a request.
func outcomeOf(t taken, err error) string {
	switch {
	case err == nil && t.rejected > 0:
		return outcomePartial
	case err == nil:
		return outcomeTaken
	case errors.Is(err, errBusy):
		return outcomeBusy
	case errors.Is(err, errClosing), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return outcomeClosing
	case errors.Is(err, errLarge):
		return outcomeLarge
	}
	return outcomeBad
}
