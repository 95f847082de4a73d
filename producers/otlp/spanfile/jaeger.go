package spanfile

import (
	"bufio"
	"encoding/json"
	"fmt"
	"strings"

	"penstock/producers/otlp/span"
	"penstock/producers/otlp/wire"
)

// jaegerDocument is the answer of Jaeger's API, a trace of it, or a span alone.
type jaegerDocument struct {
	Data []jaegerTrace `json:"data"`
	jaegerTrace
	ID *string `json:"spanID"`
}

type jaegerTrace struct {
	Spans     []json.RawMessage        `json:"spans"`
	Processes map[string]jaegerProcess `json:"processes"`
}

type jaegerProcess struct {
	Service wire.Text   `json:"serviceName"`
	Tags    []jaegerTag `json:"tags"`
}

type jaegerTag struct {
	Key   string    `json:"key"`
	Value wire.Text `json:"value"`
}

type jaegerSpan struct {
	TraceID    string            `json:"traceID"`
	ID         string            `json:"spanID"`
	ParentID   string            `json:"parentSpanID"` // as older ones write it
	Name       wire.Text         `json:"operationName"`
	References []jaegerReference `json:"references"`
	Start      wire.Number       `json:"startTime"` // µs
	Duration   wire.Number       `json:"duration"`  // µs
	Tags       []jaegerTag       `json:"tags"`
	ProcessID  string            `json:"processID"`
	Process    *jaegerProcess    `json:"process"`
}

type jaegerReference struct {
	Type    string `json:"refType"`
	TraceID string `json:"traceID"`
	SpanID  string `json:"spanID"`
}

func readJaeger(r *reader, in *bufio.Reader) error {
	return r.each(in, func(line int64, raw []byte) error {
		var doc jaegerDocument
		if err := json.Unmarshal(raw, &doc); err != nil {
			return fmt.Errorf("document of Jaeger: %w: %w", err, span.ErrMalformed)
		}
		if doc.ID != nil {
			doc.Data = append(doc.Data, jaegerTrace{Spans: []json.RawMessage{raw}})
		} else if doc.Data == nil && doc.Spans == nil {
			return fmt.Errorf("no data, spans or spanID: %w", span.ErrMalformed)
		}
		for _, t := range append(doc.Data, doc.jaegerTrace) {
			for _, raw := range t.Spans {
				s, err := jaeger(raw, t.Processes, r.mapper)
				if err != nil {
					r.bad(line, raw, err)
					continue
				}
				r.add(&s)
			}
		}
		return nil
	})
}

func jaeger(raw []byte, processes map[string]jaegerProcess, m *span.Mapper) (s span.Span, err error) {
	var in jaegerSpan
	if err := json.Unmarshal(raw, &in); err != nil {
		return s, fmt.Errorf("span of Jaeger: %w: %w", err, span.ErrMalformed)
	}
	s.Reset()
	if s.Trace, err = span.ParseTrace(in.TraceID); err != nil {
		return s, fmt.Errorf("traceID: %w", err)
	}
	if s.ID, err = span.ParseID(in.ID); err != nil {
		return s, fmt.Errorf("spanID: %w", err)
	}
	if err := in.parent(&s); err != nil {
		return s, err
	}
	duration := int64(span.Unknown)
	if in.Duration.Set {
		duration = in.Duration.Value
	}
	if err := s.Micros(in.Start.Value, duration); err != nil {
		return s, err
	}
	process := processes[in.ProcessID]
	if in.Process != nil {
		process = *in.Process
	}
	m.Resource()
	for _, t := range process.Tags {
		m.ResourceAttr(t.Key, string(t.Value))
	}
	m.ResourceAttr(span.AttrService, string(process.Service))
	m.Begin()
	m.Attr(span.AttrName, string(in.Name))
	for _, t := range in.Tags {
		m.Attr(t.Key, string(t.Value))
	}
	m.Fill(&s)
	return s, s.Check()
}

// parent takes the first CHILD_OF within the trace, else the first FOLLOWS_FROM.
func (in *jaegerSpan) parent(s *span.Span) (err error) {
	if s.Parent, err = span.ParseID(in.ParentID); err != nil {
		return fmt.Errorf("parentSpanID: %w", err)
	}
	found := s.Parent != (span.ID{})
	for _, ref := range in.References {
		follows := strings.EqualFold(ref.Type, "FOLLOWS_FROM")
		if found && (!s.Follows || follows) {
			continue
		}
		trace, err := span.ParseTrace(ref.TraceID)
		if err != nil {
			return fmt.Errorf("references: %w", err)
		}
		if trace != s.Trace && ref.TraceID != "" {
			continue // what caused it, and not within this trace
		}
		if s.Parent, err = span.ParseID(ref.SpanID); err != nil {
			return fmt.Errorf("references: %w", err)
		}
		s.Follows, found = follows, true
	}
	return nil
}
