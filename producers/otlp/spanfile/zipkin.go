package spanfile

import (
	"bufio"
	"encoding/json"
	"fmt"

	"penstock/producers/otlp/span"
	"penstock/producers/otlp/wire"
)

// zipkinSpan is a span of Zipkin's API v2.
type zipkinSpan struct {
	TraceID  string               `json:"traceId"`
	ID       string               `json:"id"`
	ParentID string               `json:"parentId"`
	Kind     wire.Text            `json:"kind"`
	Name     wire.Text            `json:"name"`
	Start    wire.Number          `json:"timestamp"` // µs
	Duration wire.Number          `json:"duration"`  // µs; 0 is none
	Local    zipkinEndpoint       `json:"localEndpoint"`
	Remote   zipkinEndpoint       `json:"remoteEndpoint"`
	Tags     map[string]wire.Text `json:"tags"`
	Shared   bool                 `json:"shared"`
}

type zipkinEndpoint struct {
	Service wire.Text `json:"serviceName"`
	IPv4    wire.Text `json:"ipv4"`
	IPv6    wire.Text `json:"ipv6"`
}

func readZipkin(r *reader, in *bufio.Reader) error {
	return r.each(in, func(_ int64, raw []byte) error {
		s, err := zipkin(raw, r.mapper)
		if err != nil {
			return err
		}
		r.add(&s)
		return nil
	})
}

func zipkin(raw []byte, m *span.Mapper) (s span.Span, err error) {
	var in zipkinSpan
	if err := json.Unmarshal(raw, &in); err != nil {
		return s, fmt.Errorf("span of Zipkin: %w: %w", err, span.ErrMalformed)
	}
	s.Reset()
	if s.Trace, err = span.ParseTrace(in.TraceID); err != nil {
		return s, fmt.Errorf("traceId: %w", err)
	}
	if s.ID, err = span.ParseID(in.ID); err != nil {
		return s, fmt.Errorf("id: %w", err)
	}
	if s.Parent, err = span.ParseID(in.ParentID); err != nil {
		return s, fmt.Errorf("parentId: %w", err)
	}
	duration := int64(span.Unknown)
	if in.Duration.Set && in.Duration.Value != 0 {
		duration = in.Duration.Value
	}
	if err := s.Micros(in.Start.Value, duration); err != nil {
		return s, err
	}
	s.Kind, s.Shared = span.ParseKind(string(in.Kind)), in.Shared
	m.Resource()
	m.Begin()
	// One process may write its port in some spans and not in others.
	m.Attr(span.AttrAddress, string(in.Local.IPv6))
	m.Attr(span.AttrAddress, string(in.Local.IPv4))
	for key, value := range in.Tags {
		m.Attr(key, string(value))
	}
	// The endpoints say it better than tags of these names.
	m.Attr(span.AttrService, string(in.Local.Service))
	m.Attr(span.AttrPeer, string(in.Remote.Service))
	m.Attr(span.AttrName, string(in.Name))
	m.Fill(&s)
	if s.Kind == span.Unspecified && !s.Shared {
		s.Kind = span.Internal // a span without a kind is local
	}
	return s, s.Check()
}
