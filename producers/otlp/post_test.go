package otlp

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// request is one with a body of that type.
func request(t testing.TB, url, kind string, body []byte) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(testContext(t), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", kind)
	return req
}

// post sends a body and returns the answer.
func (w *world) post(t testing.TB, kind, encoding string, body []byte) (int, http.Header, []byte) {
	t.Helper()
	req := request(t, w.http, kind, body)
	if encoding != "" {
		req.Header.Set("Content-Encoding", encoding)
	}
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	out, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header, out
}

func packed(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func marshal(t testing.TB, m proto.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// jsonOf writes a request as OTLP's JSON, with ids in hexadecimal.
func jsonOf(req *collector.ExportTraceServiceRequest) []byte {
	s := req.ResourceSpans[0].ScopeSpans[0].Spans[0]
	attr := func(i int) string { return req.ResourceSpans[0].Resource.Attributes[i].Value.GetStringValue() }
	return fmt.Appendf(nil, `{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":%q}},{"key":"cloud.region","value":{"stringValue":%q}}]},
		"scopeSpans":[{"spans":[{"traceId":%q,"spanId":%q,"parentSpanId":%q,"kind":%d,"startTimeUnixNano":"%d","endTimeUnixNano":"%d"}]}]}]}`,
		attr(0), attr(1), hex.EncodeToString(s.TraceId), hex.EncodeToString(s.SpanId), hex.EncodeToString(s.ParentSpanId), s.Kind,
		s.StartTimeUnixNano, s.EndTimeUnixNano)
}

// The halves of one call come by gRPC and by HTTP, each in every format, in either
