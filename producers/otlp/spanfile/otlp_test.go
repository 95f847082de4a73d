package spanfile

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"penstock/infra/shareddata"
	"penstock/producers/otlp/join"
)

// The files made by hand: numbers as texts, no resource, no kind, deep and large
// attributes, ids in capitals, an orphan.
func TestOTLPFiles(t *testing.T) {
	for name, want := range map[string]string{
		"duckdb_traces_simple.jsonl": `1640000000050000 test-service@→postgresql@/ service=40000 network=? status=-1 read
			3 spans = 1 call + 1 inside + 1 orphan`,
		"duckdb_traces_deep_nesting.jsonl": "1 spans = 1 root",
		"duckdb_traces_large_attrs.jsonl":  "1 spans = 1 root",
	} {
		t.Run(name, func(t *testing.T) {
			r := read(Options{}, filepath.Join(shareddata.Dir(t, "traces-otlp"), name))
			r.expect(t, want)
			if none := strings.Contains(name, "simple"); (r.stats.NoDuration == 0) != none {
				t.Errorf("%d spans without a duration", r.stats.NoDuration)
			}
		})
	}
}

// A request of one call: client and server in two resources.
const call = `{"resourceSpans":[
{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"shop"}},{"key":"cloud.region","value":{"stringValue":"eu-1"}},{"key":"service.instance.id","value":{"intValue":"7"}}]},
 "scopeSpans":[{"spans":[{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174","parentSpanId":"","kind":3,"startTimeUnixNano":"1640000000000000000","endTimeUnixNano":"1640000000000500000"}]}]},
{"resource":{"attributes":[{"key":"cloud.availability_zone","value":{"stringValue":"us-1a"}},{"key":"service.name","value":{"arrayValue":{"values":[{"stringValue":"cart"}]}}},{"key":"x","value":{"kvlistValue":{"values":[{"key":"a","value":{"arrayValue":{}}}]}}}]},
 "scopeSpans":[{"spans":[{"traceId":"W47/95gDgQPSabYzgT/GDA==","spanId":"7uGbfsPBsXU=","parentSpanId":"7uGbfsPBsXQ=","kind":"SPAN_KIND_SERVER","startTimeUnixNano":1640000000000100000,"endTimeUnixNano":1640000000000400000,
  "attributes":[{"key":"rpc.grpc.status_code","value":{"intValue":14}},{"key":"http.request.method","value":{"stringValue":"PUT"}},{"key":"http.route","value":{"stringValue":"/cart/{id}"}},{"key":"http.response.body.size","value":{"intValue":"120"}}],"status":{"code":"STATUS_CODE_ERROR"}}]}]}]}`

const called = `1640000000000500 shop@eu→cart@us-1a/ service=300 network=200 status=503 write /cart/{id}
	2 spans = 1 call + 1 half`

func called2() string { return strings.Replace(called, "shop@eu→", "shop@eu-1→", 1) }

// Ids in hexadecimal and base64, kinds by number and name, numbers as numbers and
// texts; documents over lines, on lines, and one behind the other.
func TestOTLPJSON(t *testing.T) {
	oneLine := strings.ReplaceAll(call, "\n", "")
	for name, c := range map[string]struct{ in, want string }{
		"over lines": {call, called2()},
		"on a line":  {oneLine, called2()},
		"byte order mark and the old name of scopes": {
			"\ufeff" + strings.ReplaceAll(oneLine, "scopeSpans", "instrumentationLibrarySpans"), called2(),
		},
		"one behind the other": {oneLine + oneLine + "\n" + oneLine, strings.Replace(called2(), "2 spans = 1 call + 1 half", "6 spans = 1 call + 1 half + 4 duplicate", 1)},
		"a half line in the middle and one at the end": {
			oneLine + "\n" + oneLine[:200] + "\n\n" + oneLine + "\n{}\n" + oneLine[:90],
			strings.Replace(called2(), "2 spans = 1 call + 1 half", "6 spans = 1 call + 1 half + 2 duplicate + 2 malformed", 1) +
				"\nbad: line 2: a whole JSON object\nbad: line 6: a whole JSON object",
		},
		"half a document": {call[:len(call)-5], "1 spans = 1 malformed\nbad: line 1: a whole JSON object\nerror: 1 spans or lines, all malformed: nothing of the spans can be read"},
		"spans that are none cost themselves": {
			`{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"00000000000000000000000000000000","spanId":"eee19b7ec3c1b174"},` +
				`{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"00"},7,` +
				`{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174","startTimeUnixNano":"-5"},` +
				`{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174","startTimeUnixNano":"9000000000000000000"},` +
				`{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174","kind":9,"startTimeUnixNano":"1640000000000400000","endTimeUnixNano":"1640000000000300000"}]}]}]}`,
			`6 spans = 1 root + 5 malformed
			bad: line 1: no trace id: malformed span
			bad: line 1: spanId: id "00", expected 16 hexadecimal digits or base64 of 8 bytes: malformed span
			bad: line 1: span in JSON: json: cannot unmarshal number into Go value of type wire.jsonSpan: malformed span
			bad: line 1: times -5 to 0, expected ns since 1970: malformed span
			bad: line 1: start 9000000000000000000 ns, expected a time before 2200: malformed span`,
		},
	} {
		t.Run(name, func(t *testing.T) { readText(t, Options{}, c.in).expect(t, c.want) })
	}
}

// attrs makes attributes of texts.
func attrs(kv ...string) (out []*common.KeyValue) {
	for i := 0; i < len(kv); i += 2 {
		out = append(out, &common.KeyValue{Key: kv[i], Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: kv[i+1]}}})
	}
	return out
}

func id(t testing.TB, digits string) []byte {
	t.Helper()
	b, err := hex.DecodeString(digits)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// protoCall is the call of above in protobuf.
func protoCall(t testing.TB) []byte {
	t.Helper()
	tr := id(t, "5b8efff798038103d269b633813fc60c")
	half := func(service, region string, s *trace.Span) *trace.ResourceSpans {
		s.TraceId = tr
		return &trace.ResourceSpans{
			Resource:   &resource.Resource{Attributes: attrs("service.name", service, "cloud.region", region)},
			ScopeSpans: []*trace.ScopeSpans{{Spans: []*trace.Span{s}}},
		}
	}
	b, err := proto.Marshal(&collector.ExportTraceServiceRequest{ResourceSpans: []*trace.ResourceSpans{
		half("shop", "eu-1", &trace.Span{
			SpanId: id(t, "eee19b7ec3c1b174"), Kind: trace.Span_SPAN_KIND_CLIENT,
			StartTimeUnixNano: 1640000000000000000, EndTimeUnixNano: 1640000000000500000,
		}),
		half("cart", "us-1a", &trace.Span{
			SpanId: id(t, "eee19b7ec3c1b175"), ParentSpanId: id(t, "eee19b7ec3c1b174"), Kind: trace.Span_SPAN_KIND_SERVER,
			StartTimeUnixNano: 1640000000000100000, EndTimeUnixNano: 1640000000000400000,
			Attributes: append(attrs("http.request.method", "PUT", "http.route", "/cart/{id}"),
				&common.KeyValue{Key: "http.response.status_code", Value: &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: 503}}}),
		}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func delimited(messages ...[]byte) (out []byte) {
	for _, m := range messages {
		out = append(binary.BigEndian.AppendUint32(out, uint32(len(m))), m...)
	}
	return out
}

func TestOTLPProtobuf(t *testing.T) {
	m := protoCall(t)
	bad := []byte{0x0a, 0x7f, 1}
	odd, err := proto.Marshal(&collector.ExportTraceServiceRequest{ResourceSpans: []*trace.ResourceSpans{{
		ScopeSpans: []*trace.ScopeSpans{{Spans: []*trace.Span{{TraceId: []byte{1}, SpanId: []byte{2}}}}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(delimited(m)); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ in, want string }{
		"one message":            {string(m), called2()},
		"messages after lengths": {string(delimited(m, nil, m)), strings.Replace(called2(), "2 spans = 1 call + 1 half", "4 spans = 1 call + 1 half + 2 duplicate", 1)},
		"packed":                 {packed.String(), called2()},
		"a broken message, a span with short ids, half a message": {
			string(delimited(m, bad, odd)) + string(delimited(m)[:50]),
			strings.Replace(called2(), "2 spans = 1 call + 1 half", "5 spans = 1 call + 1 half + 3 malformed", 1),
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := readText(t, Options{}, c.in)
			if strings.Contains(name, "broken") {
				if len(r.bad) != 3 {
					t.Errorf("%d bad, expected 3: %s", len(r.bad), r.bad)
				}
				r.bad = nil
			}
			r.expect(t, c.want)
		})
	}
}

// Every way of writing one id is one id.
func TestBase64IDs(t *testing.T) {
	raw := id(t, "fb8efff798038103d269b633813fc6fc")
	for _, e := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		in := strings.Replace(strings.ReplaceAll(call, "5b8efff798038103d269b633813fc60c", hex.EncodeToString(raw)),
			"W47/95gDgQPSabYzgT/GDA==", e.EncodeToString(raw), 1)
		if r := readText(t, Options{}, in); r.stats.Account[join.Called] != 1 {
			t.Errorf("%s: %s", e.EncodeToString(raw), r)
		}
	}
}
