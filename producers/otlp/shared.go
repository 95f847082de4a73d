package otlp

import (
	"fmt"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"

	"penstock/producers/otlp/span"
	"penstock/schemas/event"
)

// sharedAttr is the attribute in which a span goes from one receiver to another:
// what rules have found, in the order of texts, and then the numbers.
const sharedAttr = "penstock.span"

// texts are the texts of a span in the order in which they travel.
func texts(s *span.Span) [8]*string {
	return [...]*string{&s.Component, &s.Site, &s.Server, &s.Callee, &s.Caller, &s.Class, &s.Owner, &s.User}
}

// packShared makes a request of spans that are mapped already.
func packShared(spans []span.Span) *collector.ExportTraceServiceRequest {
	out := make([]*trace.Span, 0, len(spans))
	for i := range spans {
		s := &spans[i]
		t := &trace.Span{TraceId: s.Trace[:], SpanId: s.ID[:], Kind: trace.Span_SpanKind(s.Kind)}
		if s.Parent != (span.ID{}) {
			t.ParentSpanId = s.Parent[:]
		}
		if s.Start != span.Unknown {
			t.StartTimeUnixNano = uint64(s.Start)
		}
		switch {
		case s.Backwards && s.Start > 1:
			t.EndTimeUnixNano = uint64(s.Start) - 1
		case s.End() != span.Unknown:
			t.EndTimeUnixNano = uint64(s.End())
		}
		values := make([]*common.AnyValue, 0, len(texts(s))+3)
		for _, v := range texts(s) {
			values = append(values, &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: *v}})
		}
		for _, n := range [...]int64{int64(s.Status), int64(s.Op), s.Bytes} {
			values = append(values, &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: n}})
		}
		t.Attributes = []*common.KeyValue{{Key: sharedAttr, Value: &common.AnyValue{
			Value: &common.AnyValue_ArrayValue{ArrayValue: &common.ArrayValue{Values: values}},
		}}}
		out = append(out, t)
	}
	return &collector.ExportTraceServiceRequest{ResourceSpans: []*trace.ResourceSpans{{
		ScopeSpans: []*trace.ScopeSpans{{Spans: out}},
	}}}
}

// unpackShared reads what packShared made. The error of a span wraps
// span.ErrMalformed; spans before it are in the batch.
func unpackShared(b *batch, req *collector.ExportTraceServiceRequest) error {
	for _, rs := range req.GetResourceSpans() {
		for _, ss := range rs.GetScopeSpans() {
			for _, t := range ss.GetSpans() {
				s, err := unpackSpan(t)
				if err != nil {
					return err
				}
				b.spans = append(b.spans, s)
			}
		}
	}
	return nil
}

func unpackSpan(t *trace.Span) (s span.Span, err error) {
	s.Reset()
	if len(t.GetTraceId()) != len(s.Trace) || len(t.GetSpanId()) != len(s.ID) || t.GetKind() < 0 || t.GetKind() > trace.Span_SPAN_KIND_CONSUMER {
		return s, fmt.Errorf("shared span with ids of %d and %d bytes: %w", len(t.GetTraceId()), len(t.GetSpanId()), span.ErrMalformed)
	}
	copy(s.Trace[:], t.GetTraceId())
	copy(s.ID[:], t.GetSpanId())
	copy(s.Parent[:], t.GetParentSpanId())
	s.Kind = span.Kind(t.GetKind())
	if err := s.Times(t.GetStartTimeUnixNano(), t.GetEndTimeUnixNano()); err != nil {
		return s, err
	}
	fields := texts(&s)
	var values []*common.AnyValue
	for _, a := range t.GetAttributes() {
		if a.GetKey() == sharedAttr {
			values = a.GetValue().GetArrayValue().GetValues()
		}
	}
	if len(values) != len(fields)+3 {
		return s, fmt.Errorf("shared span with %d values, expected %d: %w", len(values), len(fields)+3, span.ErrMalformed)
	}
	for i, f := range fields {
		*f = values[i].GetStringValue()
	}
	numbers := values[len(fields):]
	status, op := numbers[0].GetIntValue(), numbers[1].GetIntValue()
	if status < event.NullStatus || status > 0xffff || op < 0 || op > int64(event.Write) {
		return s, fmt.Errorf("shared span with status %d and op %d: %w", status, op, span.ErrMalformed)
	}
	s.Status, s.Op, s.Bytes = int32(status), event.Op(op), numbers[2].GetIntValue()
	return s, s.Check()
}
