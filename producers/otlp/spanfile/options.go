package spanfile

import (
	"cmp"
	"fmt"

	"penstock/producers/otlp/join"
	"penstock/producers/otlp/span"
	"penstock/producers/recording"
)

// Format is how spans are written down.
type Format string

// The formats.
const (
	// Auto tells by the first bytes.
	Auto Format = ""
	// OTLP is ExportTraceServiceRequest in JSON, one a line or as documents.
	OTLP Format = "otlp"
	// Proto is the same in protobuf: one message, or messages that each follow
	// their length in four bytes, big end first.
	Proto Format = "otlp-proto"
	// Jaeger is the answer of its API, a trace of it, or spans with their process.
	Jaeger Format = "jaeger"
	// Zipkin is lists of spans of its API v2, or spans.
	Zipkin Format = "zipkin"
	// CSV has a header with TraceID, SpanID, ParentID, PodName, OperationName,
	// StartTimeUnixNano, EndTimeUnixNano, Duration (µs). Other columns are
	// attributes.
	CSV Format = "csv"
)

// Formats are all formats but Auto.
func Formats() []Format { return []Format{OTLP, Proto, Jaeger, Zipkin, CSV} }

// Options of Read.
type Options struct {
	// Bad is told of what can't be used. Nil: it is only counted.
	Bad func(recording.BadLine)
	// Entries says which roots are calls from outside.
	Entries join.Entries
	// Format of all files. Defaults to Auto.
	Format Format
	// MaxSpans bounds the spans in memory. Defaults to 1,048,576.
	MaxSpans int
	// Note is told what a user should know of a file. May be nil.
	Note func(file, text string)
	// Order is how many requests wait for earlier ones. Defaults to 524,288.
	Order int
	// Rules for attributes.
	Rules span.Rules
	// Service says what goes to service_us.
	Service join.Service
	// Window is for how many spans a trace stays open after its last one. Defaults
	// to 1,048,576.
	Window int
}

func (o *Options) complete() error {
	switch o.Format {
	case Auto, OTLP, Proto, Jaeger, Zipkin, CSV:
	default:
		return fmt.Errorf("%.40q, expected one of %v: %w", o.Format, Formats(), ErrFormat)
	}
	o.Order = max(cmp.Or(o.Order, 1<<19), 1)
	o.Window = max(cmp.Or(o.Window, 1<<20), 1)
	return nil
}
