package spanfile

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"penstock/producers/otlp/join"
	"penstock/producers/otlp/span"
	"penstock/producers/recording"
	"penstock/schemas/event"
)

const csvHead = "TraceID,SpanID,ParentID,PodName,OperationName,StartTimeUnixNano,EndTimeUnixNano,Duration\n"

func TestCSV(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"kinds and regions in columns, in any order and case": {
			"kind,cloud.region,servicename,SPANID,traceid,parentid,starttimeunixnano,duration\n" +
				"client,eu,shop,2,1,root,1640000000000000000,500\n" +
				"server,us,cart,3,1,2,1640000000000100000,300\n",
			`1640000000000500 shop@eu→cart@us/ service=300 network=200 status=-1 read
			2 spans = 1 call + 1 half`,
		},
		"bad lines": {
			csvHead + "1,2,root,a-579b9bff58-t2dbm,op,1640000000000000000,1640000000000500000,500\n1,3,root\n" +
				"x,4,root,a,op,1,2,3\n1,5,y,a,op,1,2,3\n1,6,root,a,op,soon,2,3\n1,\"7,root,a\n",
			`6 spans = 1 root + 5 malformed
			bad: line 3: 3 fields, expected 8: malformed span
			bad: line 4: TraceID: id "x", expected hexadecimal digits: malformed span
			bad: line 5: ParentID: id "y", expected hexadecimal digits: malformed span
			bad: line 6: StartTimeUnixNano: "soon", expected a number: malformed span
			bad: line 7: 2 fields, expected 8: malformed span`,
		},
		"nothing below the header": {csvHead, "0 spans"},
		"nothing":                  {"", "0 spans"},
	} {
		t.Run(name, func(t *testing.T) { readText(t, Options{}, c.in).expect(t, c.want) })
	}
}

// Rules name components, sites and servers by whatever a file has.
func TestRules(t *testing.T) {
	sources := func(texts ...string) []span.Source {
		out, err := span.ParseSources(texts)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	in := csvHead + "1,2,root,eu-shop-1,op,1640000000000000000,1640000000000500000,500\n" +
		"1,3,2,us-cart-2,Cart/Get,1640000000000100000,1640000000000400000,300\n"
	r := readText(t, Options{Entries: join.EntryAll, Rules: span.Rules{
		Component: sources(`k8s.pod.name=^[a-z]+-([a-z]+)-\d+$`),
		Site:      sources("cloud.region", "k8s.pod.name=^([a-z]+)-", "=nowhere"),
		Class:     sources("span.name"),
		Sites:     map[string]string{"us": "us-east"},
	}}, in)
	r.expect(t, `
		1640000000000400 shop@eu→cart@us-east/us-cart-2 service=300 network=? status=-1 read Cart/Get
		1640000000000500 @eu→shop@eu/eu-shop-1 service=500 network=? status=-1 read op
		2 spans = 2 call`)
	for _, bad := range []string{"", "=", "a=("} {
		if _, err := span.ParseSource(bad); !errors.Is(err, span.ErrRule) {
			t.Errorf("%q: %v, expected ErrRule", bad, err)
		}
	}
}

func TestFormatsThatAreNone(t *testing.T) {
	for name, c := range map[string]struct {
		o    Options
		in   string
		want error
	}{
		"no such format":         {Options{Format: "xml"}, "", ErrFormat},
		"a picture":              {Options{}, "\x89PNG\r\n", ErrFormat},
		"JSON of something else": {Options{}, `{"a":1}`, ErrFormat},
		"a list of other things": {Options{Format: Zipkin}, `[1,2,3]`, ErrNothing},
		"CSV without ids":        {Options{Format: CSV}, "a,b\n1,2\n", ErrFormat},
		"a length beyond reason": {Options{Format: Proto}, "\x7f\xff\xff\xff....", ErrFormat},
		"breaks off":             {Options{}, "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x01", recording.ErrDamaged},
		"a rule without a value": {Options{Rules: span.Rules{Site: []span.Source{{}}}}, "", span.ErrRule},
	} {
		t.Run(name, func(t *testing.T) {
			if r := readText(t, c.o, c.in); !errors.Is(r.err, c.want) {
				t.Errorf("%v, expected %v", r.err, c.want)
			}
		})
	}
	if r := read(Options{}, filepath.Join(t.TempDir(), "gone")); !errors.Is(r.err, os.ErrNotExist) {
		t.Errorf("%v, expected that there is no such file", r.err)
	}
}

// An error of emit ends reading and is returned as it is; so does the context's.
func TestReadingEnds(t *testing.T) {
	var b strings.Builder
	b.WriteString(csvHead)
	for i := range 20_000 {
		b.WriteString(strings.ReplaceAll("T,2,root,shop-579b9bff58-t2dbm,op,1640000000000000000,1640000000000500000,500\n", "T", strings.Repeat("a", i%31+1)))
	}
	path := filepath.Join(t.TempDir(), "s.csv")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	o := Options{Entries: join.EntryAll, Order: 1, Window: 5}
	stop := errors.New("full")
	n := 0
	st, err := Read(context.Background(), []string{path}, o, func(*event.Request) error { n++; return stop })
	if !errors.Is(err, stop) || n != 1 || st.Read >= 20_000 || st.Account.Sum() != st.Read {
		t.Errorf("%v after %d requests, %d read, %s", err, n, st.Read, &st.Account)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Read(ctx, []string{path}, o, func(*event.Request) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, expected the context's", err)
	}
}

// Little room: the order holds as far as it reaches, and nothing is lost.
func TestOrderIsBounded(t *testing.T) {
	var times []int64
	o := order{limit: 3, emit: func(r *event.Request) error { times = append(times, r.Time); return nil }}
	for _, at := range []int64{5, 3, 4, 9, 1, 2, 8} {
		r := event.NewRequest(at)
		o.add(&r)
	}
	if err := o.flush(); err != nil {
		t.Fatal(err)
	}
	want := []int64{3, 1, 2, 4, 5, 8, 9}
	for i := range want {
		if len(times) != len(want) || times[i] != want[i] {
			t.Fatalf("%v, expected %v", times, want)
		}
	}
}
