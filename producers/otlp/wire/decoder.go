package wire

import (
	"fmt"
	"strconv"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"penstock/producers/otlp/span"
)

// Decoder reads requests of OTLP. It is not safe for concurrent use.
type Decoder struct {
	mapper *span.Mapper
	span   span.Span
	// Emit takes each span; it is the decoder's again when Emit returns.
	Emit func(*span.Span)
	// Bad, if set, is told of each span that can't be used.
	Bad func(error)
}

// New returns a decoder that fills spans by the mapper's rules.
func New(m *span.Mapper, emit func(*span.Span), bad func(error)) *Decoder {
	return &Decoder{mapper: m, Emit: emit, Bad: bad}
}

// Proto reads an ExportTraceServiceRequest, or TracesData, which is the same on
// the wire.
func (d *Decoder) Proto(b []byte) error {
	var req collector.ExportTraceServiceRequest
	if err := proto.Unmarshal(b, &req); err != nil {
		return fmt.Errorf("OTLP protobuf: %w: %w", err, span.ErrMalformed)
	}
	d.Request(&req)
	return nil
}

// Request takes a request that is decoded already.
func (d *Decoder) Request(req *collector.ExportTraceServiceRequest) {
	for _, rs := range req.GetResourceSpans() {
		d.mapper.Resource()
		for _, kv := range rs.GetResource().GetAttributes() {
			if d.mapper.Wants(kv.GetKey()) {
				d.mapper.ResourceAttr(kv.GetKey(), text(kv.GetValue()))
			}
		}
		for _, ss := range rs.GetScopeSpans() {
			for _, s := range ss.GetSpans() {
				d.finish(d.proto(s))
			}
		}
	}
}

// finish hands on the span at hand, or the error that it has.
func (d *Decoder) finish(err error) {
	if err == nil {
		err = d.span.Check()
	}
	switch {
	case err == nil:
		d.Emit(&d.span)
	case d.Bad != nil:
		d.Bad(err)
	}
}

func (d *Decoder) proto(in *trace.Span) error {
	s := &d.span
	s.Reset()
	if err := exactly(s.Trace[:], in.GetTraceId(), "trace id"); err != nil {
		return err
	}
	if err := exactly(s.ID[:], in.GetSpanId(), "span id"); err != nil {
		return err
	}
	if len(in.GetParentSpanId()) > 0 {
		if err := exactly(s.Parent[:], in.GetParentSpanId(), "parent's id"); err != nil {
			return err
		}
	}
	if err := s.Times(in.GetStartTimeUnixNano(), in.GetEndTimeUnixNano()); err != nil {
		return err
	}
	if k := in.GetKind(); k > 0 && k <= trace.Span_SPAN_KIND_CONSUMER {
		s.Kind = span.Kind(k)
	}
	if in.GetStatus().GetCode() == trace.Status_STATUS_CODE_ERROR {
		s.Status = 500
	}
	d.mapper.Begin()
	d.mapper.Attr(span.AttrName, in.GetName())
	for _, kv := range in.GetAttributes() {
		if d.mapper.Wants(kv.GetKey()) {
			d.mapper.Attr(kv.GetKey(), text(kv.GetValue()))
		}
	}
	d.mapper.Fill(s)
	return nil
}

func exactly(dst, id []byte, what string) error {
	if len(id) != len(dst) {
		return fmt.Errorf("%s of %d bytes, expected %d: %w", what, len(id), len(dst), span.ErrMalformed)
	}
	copy(dst, id)
	return nil
}

// text is a scalar as text, and of an array its only element; "" of anything else.
func text(v *common.AnyValue) string {
	switch x := v.GetValue().(type) {
	case *common.AnyValue_StringValue:
		return x.StringValue
	case *common.AnyValue_BoolValue:
		return strconv.FormatBool(x.BoolValue)
	case *common.AnyValue_IntValue:
		return strconv.FormatInt(x.IntValue, 10)
	case *common.AnyValue_DoubleValue:
		return strconv.FormatFloat(x.DoubleValue, 'f', -1, 64)
	case *common.AnyValue_ArrayValue:
		if vs := x.ArrayValue.GetValues(); len(vs) == 1 {
			if _, nested := vs[0].GetValue().(*common.AnyValue_ArrayValue); !nested {
				return text(vs[0])
			}
		}
	}
	return ""
}
