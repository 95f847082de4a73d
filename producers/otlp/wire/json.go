package wire

import (
	"encoding/json"
	"fmt"

	"penstock/producers/otlp/span"
)

// request is an ExportTraceServiceRequest in JSON. Spans stay raw, so that one
// that is none costs itself only.
type request struct {
	ResourceSpans []struct {
		Resource struct {
			Attributes []attribute `json:"attributes"`
		} `json:"resource"`
		ScopeSpans   []scopeSpans `json:"scopeSpans"`
		LibrarySpans []scopeSpans `json:"instrumentationLibrarySpans"`
	} `json:"resourceSpans"`
}

type scopeSpans struct {
	Spans []json.RawMessage `json:"spans"`
}

type attribute struct {
	Key   string `json:"key"`
	Value value  `json:"value"`
}

// jsonSpan is a span; what is not here is not looked at.
type jsonSpan struct {
	TraceID    string      `json:"traceId"`
	SpanID     string      `json:"spanId"`
	ParentID   string      `json:"parentSpanId"`
	Name       string      `json:"name"`
	Kind       Text        `json:"kind"`
	Start      Number      `json:"startTimeUnixNano"`
	End        Number      `json:"endTimeUnixNano"`
	Attributes []attribute `json:"attributes"`
	Status     struct {
		Code Text `json:"code"`
	} `json:"status"`
}

// JSON reads a request in JSON. A document without resourceSpans is none.
func (d *Decoder) JSON(b []byte) error {
	var probe struct {
		ResourceSpans *json.RawMessage `json:"resourceSpans"`
	}
	if err := json.Unmarshal(b, &probe); err != nil {
		return fmt.Errorf("OTLP JSON: %w: %w", err, span.ErrMalformed)
	}
	if probe.ResourceSpans == nil {
		if string(b) == "{}" {
			return nil // nothing was recorded
		}
		return fmt.Errorf("OTLP JSON: no resourceSpans: %w", span.ErrMalformed)
	}
	var req request
	if err := json.Unmarshal(b, &req); err != nil {
		return fmt.Errorf("OTLP JSON: %w: %w", err, span.ErrMalformed)
	}
	for i := range req.ResourceSpans {
		rs := &req.ResourceSpans[i]
		d.mapper.Resource()
		for _, a := range rs.Resource.Attributes {
			d.mapper.ResourceAttr(a.Key, string(a.Value))
		}
		for _, scopes := range [...][]scopeSpans{rs.ScopeSpans, rs.LibrarySpans} {
			for j := range scopes {
				for _, raw := range scopes[j].Spans {
					d.finish(d.json(raw))
				}
			}
		}
	}
	return nil
}

func (d *Decoder) json(raw []byte) (err error) {
	var in jsonSpan
	if err := json.Unmarshal(raw, &in); err != nil {
		return fmt.Errorf("span in JSON: %w: %w", err, span.ErrMalformed)
	}
	s := &d.span
	s.Reset()
	if s.Trace, err = span.ParseProtoTrace(in.TraceID); err != nil {
		return fmt.Errorf("traceId: %w", err)
	}
	if s.ID, err = span.ParseProtoID(in.SpanID); err != nil {
		return fmt.Errorf("spanId: %w", err)
	}
	if s.Parent, err = span.ParseProtoID(in.ParentID); err != nil {
		return fmt.Errorf("parentSpanId: %w", err)
	}
	if in.Start.Value < 0 || in.End.Value < 0 {
		return fmt.Errorf("times %d to %d, expected ns since 1970: %w", in.Start.Value, in.End.Value, span.ErrMalformed)
	}
	if err := s.Times(uint64(in.Start.Value), uint64(in.End.Value)); err != nil {
		return err
	}
	s.Kind = kindOf(string(in.Kind))
	if c := in.Status.Code; c == "2" || c == "STATUS_CODE_ERROR" {
		s.Status = 500
	}
	d.mapper.Begin()
	d.mapper.Attr(span.AttrName, in.Name)
	for _, a := range in.Attributes {
		d.mapper.Attr(a.Key, string(a.Value))
	}
	d.mapper.Fill(s)
	return nil
}

// kindOf reads a kind by number or name.
func kindOf(s string) span.Kind {
	if len(s) == 1 && s[0] >= '0' && s[0] <= '5' {
		return span.Kind(s[0] - '0')
	}
	return span.ParseKind(s)
}
