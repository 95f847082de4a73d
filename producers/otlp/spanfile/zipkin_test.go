package spanfile

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"penstock/infra/shareddata"
	"penstock/producers/otlp/join"
)

func zipkinFile(t *testing.T, name string) result {
	t.Helper()
	return read(Options{}, filepath.Join(shareddata.Dir(t, "traces-zipkin"), name))
}

// A server's clock is 65 ms behind its client's: the delay comes from durations,
// each of one clock, and is not negative.
func TestZipkinSkew(t *testing.T) {
	r := zipkinFile(t, "skew.json")
	r.expect(t, `
		1470150004168741 servicea@→serviceb@/192.0.0.0 service=93577 network=962 status=-1 read
		1470150004170479 @→servicea@/127.0.0.0 service=99411 network=? status=-1 read
		4 spans = 2 call + 1 half + 1 inside`)
	if r.stats.Skewed != 1 || r.stats.Negative != 0 {
		t.Errorf("%d skewed, %d negative; expected 1 and 0", r.stats.Skewed, r.stats.Negative)
	}
}

// Client and server halves under one id are one call, not one that is lost.
func TestZipkinSharedIDs(t *testing.T) {
	zipkinFile(t, "ascend.json").expect(t, `
		1531282088547911 mobile-gateway@→auth-service@/172.17.0.9 service=4157 network=9920 status=-1 read
		1531282088568645 mobile-gateway@→content-service@/172.17.0.10 service=15888 network=4445 status=-1 read
		1531282088571828 @→mobile-gateway@/172.17.0.13 service=38793 network=? status=-1 read
		8 spans = 3 call + 2 half + 2 inside + 1 unnamed`)
	r := zipkinFile(t, "yelp.json")
	r.expect(t, `
		1571896375269008 yelp-main@→memcache@/ service=993 network=? status=-1 read
		1571896375270177 yelp-main@→mysql@/ service=445 network=? status=-1 read
		1571896375271506 yelp-main@→memcache@/ service=1068 network=? status=-1 read
		1571896375272358 yelp-main@→memcache@/ service=233 network=? status=-1 read
		1571896375272978 yelp-main@→mysql@/ service=374 network=? status=-1 read
		1571896375301708 mobile_api@→memcache@/ service=1066 network=? status=-1 read
		1571896375303056 mobile_api@→memcache@/ service=1026 network=? status=-1 read
		1571896375313000 mobile_api@→spectre@/ service=1490 network=1510 status=200 read
		1571896375336000 mobile_api@→blt@/ service=14000 network=? status=200 read
		1571896375343000 yelp-main@→mobile_api@/ service=41740 network=14260 status=200 read /location/update/v4
		1571896375364000 unknown@→yelp_main/api_proxy@/ service=88935 network=36065 status=200 read /*path
		1571896375369202 @→routing@/ service=131848 network=? status=200 read
		16 spans = 12 call + 3 half + 1 inside`)
}

// A proxy's half of a trace that nobody else wrote: its component has no name.
func TestZipkinAlone(t *testing.T) {
	zipkinFile(t, "envoy.json").expect(t, "1 spans = 1 unnamed")
}

// What takes a message from a queue is not called: none of the hops is a delay.
func TestZipkinMessages(t *testing.T) {
	r := zipkinFile(t, "messaging-kafka.json")
	r.expect(t, "28 spans = 12 inside + 16 message")
	if len(r.rows) != 0 {
		t.Errorf("%d calls", len(r.rows))
	}
}

// Shared ids in bulk, in an order that goes back: each pair is one call.
func TestZipkinBulk(t *testing.T) {
	const pairs = 3000
	var b strings.Builder
	b.WriteString("[")
	half := func(i int, kind string, shared bool) {
		if b.Len() > 1 {
			b.WriteString(",\n")
		}
		service, at, took := "shop", 1_600_000_000_000_000-int64(i)*1000, 500
		if kind == "SERVER" {
			service, at, took = "cart", at+100, 300
		}
		fmt.Fprintf(&b, `{"traceId":"%032x","id":"%016x","kind":%q,"timestamp":%d,"duration":%d,"localEndpoint":{"serviceName":%q},"shared":%v}`,
			7+i/100, i+1, kind, at, took, service, shared)
	}
	for i := range pairs {
		half(i, "CLIENT", false)
	}
	for i := range pairs {
		half(pairs-1-i, "SERVER", true)
	}
	b.WriteString("]")
	r := readText(t, Options{}, b.String())
	a := r.stats.Account
	if r.err != nil || a[join.Called] != pairs || a[join.Half] != pairs || a.Sum() != 2*pairs {
		t.Fatalf("%v, %s", r.err, &a)
	}
	last := int64(0)
	for i := range r.rows {
		if r.rows[i].Service != 300 || r.rows[i].Network != 200 {
			t.Fatalf("service %d, network %d; expected 300 and 200", r.rows[i].Service, r.rows[i].Network)
		}
		if r.rows[i].Time < last {
			t.Fatalf("row %d goes back", i)
		}
		last = r.rows[i].Time
	}
}

// What the recorded files don't hold: halves without durations or times, ids of 64
// and of 128 bits in one trace, fragments of one half, lists in lists.
func TestZipkinHandMade(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{
			"no duration", `[
			{"traceId":"1","id":"2","kind":"CLIENT","timestamp":1600000000000000,"localEndpoint":{"serviceName":"shop"}},
			{"traceId":"1","id":"2","kind":"SERVER","timestamp":1600000000000100,"shared":true,"localEndpoint":{"serviceName":"cart"}},
			{"traceId":"1","id":"3","kind":"CLIENT","timestamp":1600000000000000,"duration":0,"localEndpoint":{"serviceName":"shop"},"remoteEndpoint":{"serviceName":"db"}}]`,
			`1600000000000000 shop@→cart@/ service=? network=? status=-1 read
			1600000000000000 shop@→db@/ service=? network=? status=-1 read
			3 spans = 2 call + 1 half`,
		},
		{
			"no times", `[
			{"traceId":"1","id":"2","kind":"CLIENT","localEndpoint":{"serviceName":"shop"}},
			{"traceId":"1","id":"2","kind":"SERVER","shared":true,"localEndpoint":{"serviceName":"cart"}}]`,
			`2 spans = 2 timeless`,
		},
		{
			"64 and 128 bits", `[
			{"traceId":"463ac35c9f6413ad48485a3953bb6124","id":"2","kind":"CLIENT","timestamp":1600000000000000,"duration":500,"localEndpoint":{"serviceName":"shop"}},
			{"traceId":"48485a3953bb6124","id":"2","kind":"SERVER","timestamp":1600000000000100,"duration":"300","shared":true,"localEndpoint":{"serviceName":"cart"}}]`,
			`1600000000000500 shop@→cart@/ service=300 network=200 status=-1 read
			2 spans = 1 call + 1 half`,
		},
		{
			"fragments, and a list of lists", `[[
			{"traceId":"1","id":"2","kind":"SERVER","timestamp":1600000000000000,"localEndpoint":{"serviceName":"cart"}}],[
			{"traceId":"1","id":"2","timestamp":1600000000000000,"duration":300,"localEndpoint":{"serviceName":"cart"},"tags":{"http.status_code":"503"}}]]`,
			`1600000000000300 @→cart@/ service=300 network=? status=503 read
			2 spans = 1 call + 1 duplicate`,
		},
		{
			"numbers, texts and null are read alike", `[
			{"traceId":"1","id":"2","kind":"server","timestamp":"1600000000000000","duration":300.0,"localEndpoint":{"serviceName":"cart"},"tags":{"http.method":"POST","http.status_code":204,"x":null}},
			{"traceId":"1","id":"3","kind":"SERVER","timestamp":1600000000000000,"duration":null,"parentId":null,"localEndpoint":null}]`,
			`1600000000000300 @→cart@/ service=300 network=? status=204 write
			2 spans = 1 call + 1 unnamed`,
		},
		{
			"each fault costs its span alone", `[{"traceId":"xyz","id":"2"},
			{"traceId":"1","id":"12345678901234567"},
			{"traceId":"1"},
			{"traceId":"1","id":"2","timestamp":"soon"},
			7,
			{"traceId":"1","id":"2","kind":"SERVER","timestamp":1600000000000000,"duration":1,"localEndpoint":{"serviceName":"cart"}},
			{"traceId":"1","id":"2"`,
			`1600000000000001 @→cart@/ service=1 network=? status=-1 read
			7 spans = 1 call + 6 malformed
			bad: line 1: traceId: id "xyz", expected hexadecimal digits: malformed span
			bad: line 2: id: id "12345678901234567", expected at most 16 hexadecimal digits: malformed span
			bad: line 3: no span id: malformed span
			bad: line 4: span of Zipkin: "soon", expected a whole number: malformed span: malformed span
			bad: line 5: a JSON object
			bad: line 7: a whole JSON object`,
		},
	} {
		t.Run(c.name, func(t *testing.T) { readText(t, Options{Format: Zipkin}, c.in).expect(t, c.want) })
	}
}
