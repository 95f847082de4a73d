package spanfile

import (
	"path/filepath"
	"testing"

	"penstock/infra/shareddata"
	"penstock/producers/otlp/join"
	"penstock/producers/otlp/span"
)

func jaegerFile(t *testing.T, o Options, name string) result {
	t.Helper()
	return read(o, filepath.Join(shareddata.Dir(t, "traces-jaeger"), name))
}

// One trace as OTLP (ns, numbers as texts) and as Jaeger wrote the same (µs,
// numbers, the parents again within references) say the same.
func TestJaegerAndOTLPOfOneTrace(t *testing.T) {
	// Roots are taken as entries, so that there is something to compare.
	o := Options{Entries: join.EntryAll, Rules: span.Rules{}}
	jaeger := jaegerFile(t, o, "oltp2jaeger-multi-out.json")
	jaeger.expect(t, "4 spans = 3 inside + 1 root")
	otlp := jaegerFile(t, o, "otlp2jaeger-multi-in-combined.json")
	if jaeger.String() != otlp.String() {
		t.Errorf("Jaeger:\n%sOTLP:\n%s", jaeger, otlp)
	}
}

// A server whose client is elsewhere, twice in the file: one call, by the name
// that the server has for its peer.
func TestJaegerTwice(t *testing.T) {
	r := jaegerFile(t, Options{}, "otlp2jaeger-out.json")
	r.expect(t, `
		1706678909209835 telemetrygen-client@→telemetrygen@/ service=123 network=? status=-1 read
		2 spans = 1 call + 1 duplicate`)
}

func TestJaegerHandMade(t *testing.T) {
	const shop, cart = `"p1":{"serviceName":"shop","tags":[{"key":"cloud.region","value":"eu"},{"key":"ip","value":"10.0.0.1"}]}`,
		`"p2":{"serviceName":"cart","tags":[{"key":"hostname","value":"c-1"},{"key":"cloud.region","value":"us"}]}`
	for _, c := range []struct{ name, in, want string }{
		{
			"kinds, statuses and processes by tags", `{"data":[{"traceID":"a","spans":[
			{"traceID":"a","spanID":"1","operationName":"GET","references":[],"startTime":1600000000000000,"duration":900,"processID":"p1","tags":[{"key":"span.kind","type":"string","value":"server"},{"key":"http.status_code","type":"int64","value":200}]},
			{"traceID":"a","spanID":"2","references":[{"refType":"CHILD_OF","traceID":"a","spanID":"1"}],"startTime":1600000000000100,"duration":500,"processID":"p1","tags":[{"key":"span.kind","value":"client"},{"key":"error","type":"bool","value":true}]},
			{"traceID":"a","spanID":"3","references":[{"refType":"CHILD_OF","traceID":"a","spanID":"2"}],"startTime":1600000000000200,"duration":300,"processID":"p2","tags":[{"key":"span.kind","value":"server"}]}
			],"processes":{` + shop + `,` + cart + `}}]}`,
			`1600000000000600 shop@eu→cart@us/c-1 service=300 network=200 status=500 read
			1600000000000900 @eu→shop@eu/10.0.0.1 service=400 network=? status=200 read
			3 spans = 2 call + 1 half`,
		},
		{
			"CHILD_OF before FOLLOWS_FROM; one of another trace is no parent", `{"traceID":"a","spans":[
			{"traceID":"a","spanID":"1","startTime":1600000000000000,"duration":900,"processID":"p1","tags":[{"key":"span.kind","value":"server"}]},
			{"traceID":"a","spanID":"2","references":[{"refType":"FOLLOWS_FROM","traceID":"a","spanID":"9"},{"refType":"CHILD_OF","traceID":"a","spanID":"1"}],"startTime":1600000000000200,"duration":100,"processID":"p2","tags":[{"key":"span.kind","value":"server"}]},
			{"traceID":"a","spanID":"3","references":[{"refType":"FOLLOWS_FROM","traceID":"a","spanID":"1"}],"startTime":1600000000000300,"duration":100,"processID":"p2","tags":[{"key":"span.kind","value":"server"}]},
			{"traceID":"a","spanID":"4","references":[{"refType":"CHILD_OF","traceID":"b","spanID":"1"}],"startTime":1600000000000400,"duration":100,"processID":"p2","tags":[{"key":"span.kind","value":"server"}]}
			],"processes":{` + shop + `,` + cart + `}}`,
			// Own: the first is waited for, the second follows.
			`1600000000000300 shop@eu→cart@us/c-1 service=100 network=? status=-1 read
			1600000000000400 shop@eu→cart@us/c-1 service=100 network=? status=-1 read
			1600000000000500 @us→cart@us/c-1 service=100 network=? status=-1 read
			1600000000000900 @eu→shop@eu/10.0.0.1 service=800 network=? status=-1 read
			4 spans = 4 call`,
		},
		{
			"spans on lines with their process, as a store keeps them", `{"traceID":"a","spanID":"1","startTime":1600000000000000,"duration":900,"tags":[{"key":"span.kind","value":"server"}],"process":{"serviceName":"shop"}}
			{"traceID":"a","spanID":"2","parentSpanID":"1","startTime":1600000000000100,"duration":-5,"tags":[{"key":"span.kind","value":"client"},{"key":"peer.service","value":"db"}],"process":{"serviceName":"shop"}}
			{"traceID":"a","spanID":"3","startTime":
			{"traceID":"a","spanID":"3","operationName":7,"startTime":"1600000000000000","duration":"9","process":{"serviceName":"shop"}}`,
			`1600000000000100 shop@→db@/ service=? network=? status=-1 read
			1600000000000900 @→shop@/ service=900 network=? status=-1 read
			4 spans = 2 call + 1 root + 1 malformed
			bad: line 3: a whole JSON object`,
		},
		{
			"no document of Jaeger, and a bad span among good ones", `{"errors":[]}
			{"data":[{"spans":[{"traceID":"a","spanID":"g"},{"traceID":"a","spanID":"1","startTime":1600000000000000,"duration":1}],"processes":{}}]}`,
			`2 spans = 1 root + 1 malformed`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := readText(t, Options{Format: Jaeger, Service: join.Own}, c.in)
			if c.name[:2] == "no" {
				if r.stats.Account[join.Malformed] != 2 || r.stats.Account[join.Root] != 1 || len(r.bad) != 2 {
					t.Errorf("got %s", r)
				}
				return
			}
			r.expect(t, c.want)
		})
	}
}
