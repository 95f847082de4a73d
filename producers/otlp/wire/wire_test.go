package wire

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"penstock/producers/otlp/span"
)

func decoder(t testing.TB) (d *Decoder, got *[]span.Span, bad *[]error) {
	t.Helper()
	m, err := span.NewMapper(span.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	got, bad = new([]span.Span), new([]error)
	return New(m, func(s *span.Span) { *got = append(*got, *s) }, func(err error) { *bad = append(*bad, err) }), got, bad
}

// P09: 5, "5" and 5.0 are one number; null, "" and "-" are none, and never 0.
func TestNumbers(t *testing.T) {
	for in, want := range map[string]Number{
		`5`: {5, true}, `"5"`: {5, true}, `5.0`: {5, true}, `" 5 "`: {5, true}, `5e3`: {5000, true}, `-5`: {-5, true},
		`"1640000000000000001"`: {1640000000000000001, true}, `1640000000000000001`: {1640000000000000001, true},
		`0`: {0, true}, `null`: {}, `""`: {}, `"-"`: {},
	} {
		var n Number
		if err := json.Unmarshal([]byte(in), &n); err != nil || n != want {
			t.Errorf("%s: %+v, %v; expected %+v", in, n, err, want)
		}
	}
	for _, in := range []string{`5.5`, `"x"`, `true`, `1e30`, `"NaN"`, `[5]`} {
		var n Number
		if err := json.Unmarshal([]byte(in), &n); !errors.Is(err, span.ErrMalformed) {
			t.Errorf("%s: %+v, %v", in, n, err)
		}
	}
}

func TestValues(t *testing.T) {
	for in, want := range map[string]string{
		`{"stringValue":"a"}`: "a", `{"intValue":"7"}`: "7", `{"intValue":7}`: "7", `{"doubleValue":1.5}`: "1.5", `{"boolValue":true}`: "true",
		`{"arrayValue":{"values":[{"stringValue":"a"}]}}`: "a", `{"arrayValue":{"values":[{"stringValue":"a"},{"stringValue":"b"}]}}`: "",
		`{"arrayValue":{}}`: "", `{"kvlistValue":{"values":[{"key":"a","value":{"kvlistValue":{}}}]}}`: "", `{"bytesValue":"AA=="}`: "",
		`{}`: "", `null`: "", `"bare"`: "bare", `{"arrayValue":{"values":[{"arrayValue":{"values":[{"intValue":1}]}}]}}`: "",
	} {
		var v value
		if err := json.Unmarshal([]byte(in), &v); err != nil || string(v) != want {
			t.Errorf("%s: %q, %v; expected %q", in, v, err, want)
		}
	}
}

// nested is an array in an array, so many deep.
func nested(depth int) *common.AnyValue {
	v := &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: "deep"}}
	for range depth {
		v = &common.AnyValue{Value: &common.AnyValue_ArrayValue{ArrayValue: &common.ArrayValue{Values: []*common.AnyValue{v}}}}
	}
	return v
}

func TestProtoValues(t *testing.T) {
	for _, c := range []struct {
		v    *common.AnyValue
		want string
	}{
		{&common.AnyValue{Value: &common.AnyValue_DoubleValue{DoubleValue: 1.5}}, "1.5"},
		{&common.AnyValue{Value: &common.AnyValue_BoolValue{BoolValue: true}}, "true"},
		{&common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: -7}}, "-7"},
		{&common.AnyValue{Value: &common.AnyValue_BytesValue{BytesValue: []byte{1}}}, ""},
		{nested(1), "deep"},
		{nested(2), ""},
		{nested(5000), ""},
		{nil, ""},
	} {
		if got := text(c.v); got != c.want {
			t.Errorf("%.60v: %q, expected %q", c.v, got, c.want)
		}
	}
}

// A depth that would be too much for a stack is refused, by either mapping.
func TestDepth(t *testing.T) {
	d, _, _ := decoder(t)
	deep := `{"resourceSpans":[{"resource":{"attributes":[{"key":"a","value":` + strings.Repeat(`{"arrayValue":{"values":[`, 100_000)
	if err := d.JSON([]byte(deep)); !errors.Is(err, span.ErrMalformed) {
		t.Errorf("%v", err)
	}
	b, err := proto.Marshal(&collector.ExportTraceServiceRequest{ResourceSpans: []*trace.ResourceSpans{{
		Resource: &resource.Resource{Attributes: []*common.KeyValue{{Key: "a", Value: nested(10_000)}}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Proto(b); !errors.Is(err, span.ErrMalformed) {
		t.Errorf("%v", err)
	}
}

// FuzzWire decodes any bytes by both mappings: what is emitted is a span.
func FuzzWire(f *testing.F) {
	req := &collector.ExportTraceServiceRequest{ResourceSpans: []*trace.ResourceSpans{{
		Resource:   &resource.Resource{Attributes: []*common.KeyValue{{Key: "service.name", Value: nested(1)}}},
		ScopeSpans: []*trace.ScopeSpans{{Spans: []*trace.Span{{TraceId: make([]byte, 16), SpanId: []byte{1, 2, 3, 4, 5, 6, 7, 8}, StartTimeUnixNano: 5, EndTimeUnixNano: 4}}}},
	}}}
	req.ResourceSpans[0].ScopeSpans[0].Spans[0].TraceId[3] = 1
	b, err := proto.Marshal(req)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174","kind":"2","attributes":[{"key":"a","value":{"arrayValue":{"values":[7]}}}]}]}]}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, got, bad := decoder(t)
		for _, err := range []error{d.JSON(b), d.Proto(b)} {
			if err != nil && !errors.Is(err, span.ErrMalformed) {
				t.Fatal(err)
			}
		}
		for i := range *got {
			if err := (*got)[i].Check(); err != nil {
				t.Fatal(err)
			}
		}
		for _, err := range *bad {
			if !errors.Is(err, span.ErrMalformed) {
				t.Fatal(err)
			}
		}
	})
}
