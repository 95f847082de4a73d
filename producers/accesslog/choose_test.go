package accesslog

import (
	"errors"
	"strings"
	"testing"
)

func TestChoice(t *testing.T) {
	const common = `192.0.2.1 - - [01/Jan/2020:00:00:00 +0000] "GET / HTTP/1.1" 200 1`
	const combined = common + ` "-" "-"`
	const object = `{"time": 1577836800, "method": "GET", "path": "/"}`
	const caddy = `{"ts":1577836800.5,"logger":"http.log.access","request":{"method":"GET","uri":"/"},"status":200}`
	for _, test := range []struct {
		lines  []string
		format string
		says   string
	}{
		{nil, "combined", "format combined (confidence 0.00: 0 of the first 0 lines)"},
		{[]string{"nonsense"}, "combined", "format combined (confidence 0.00: 0 of the first 1 lines)"},
		{[]string{combined}, "combined", "format combined (confidence 1.00: 1 of the first 1 lines)"},
		{[]string{common}, "common", "format common (confidence 1.00: 1 of the first 1 lines)"},
		{[]string{common, combined}, "combined", "format combined (confidence 0.50: 1 of the first 2 lines; also tried common 1)"},
		{[]string{"cut " + common, common, common + "\r", combined}, "common", "format common (confidence 0.50: 2 of the first 4 lines; also tried combined 1)"},
		{[]string{combined + ` "more" "x"`, common, combined[:len(combined)-1]}, "common", "format common (confidence 0.33: 1 of the first 3 lines)"},
		{[]string{object, object, "x"}, "json", "format json (confidence 0.67: 2 of the first 3 lines)"},
		// What a server's own format fits is not guessed at.
		{[]string{object, object, caddy}, "caddy", "format caddy (confidence 0.33: 1 of the first 3 lines)"},
		{[]string{"time,method,path", "1577836800,GET,/"}, "table", "format table (confidence 1.00: 2 of the first 2 lines)"},
		{[]string{"#x", "time,method,path"}, "combined", "format combined (confidence 0.00: 0 of the first 2 lines)"},
	} {
		p, choice, err := Open(ChoiceOptions{Sample: []byte(strings.Join(test.lines, "\n"))}, Options{Key: []byte("k")})
		if err != nil {
			t.Fatal(err)
		}
		if choice.Format != test.format || p.Format().Name() != test.format || choice.String() != test.says {
			t.Errorf("%q\n got %s\nwant %s", test.lines, choice, test.says)
		}
	}
}

// A named format holds, whatever the lines look like; its confidence says how
// many of them fit.
func TestNamedFormat(t *testing.T) {
	const common = `192.0.2.1 - - [01/Jan/2020:00:00:00 +0000] "GET / HTTP/1.1" 200 1`
	_, choice, err := Open(ChoiceOptions{Name: "common", Sample: []byte(common + "\nx\n")}, Options{Key: []byte("k")})
	if err != nil || choice.String() != "format common (named)" || choice.Confidence != 0.5 || choice.Matched != 1 {
		t.Errorf("%+v, %v", choice, err)
	}
	for _, o := range []Options{{}, {Key: []byte("k"), OwnerDepth: -1}} {
		for _, name := range []string{"", "common"} {
			if _, _, err := Open(ChoiceOptions{Name: name}, o); !errors.Is(err, ErrOption) {
				t.Errorf("%+v: %v", o, err)
			}
		}
	}
}

// The last line of a long sample may be torn by the sample, and says nothing.
func TestTornSample(t *testing.T) {
	const line = `192.0.2.1 - - [01/Jan/2020:00:00:00 +0000] "GET / HTTP/1.1" 200 1 "-" "-"`
	long := strings.Repeat("x", minTorn)
	_, choice, err := Open(ChoiceOptions{Sample: []byte(line + "\n" + long)}, Options{Key: []byte("k")})
	if err != nil || choice.Lines != 1 || choice.Confidence != 1 {
		t.Errorf("%+v, %v", choice, err)
	}
	_, choice, err = Open(ChoiceOptions{Sample: []byte(long)}, Options{Key: []byte("k")})
	if err != nil || choice.Lines != 1 || choice.Confidence != 0 {
		t.Errorf("%+v, %v", choice, err)
	}
	// Objects without line ends between them: the sample cuts the last one.
	objects := strings.Repeat(`{"time":1577836800,"method":"GET","path":"/a"}`, 2000)[:64<<10]
	if _, choice, err := Open(ChoiceOptions{Sample: []byte(objects)}, Options{Key: []byte("k")}); err != nil || choice.Format != "json" || choice.Matched != 1 {
		t.Errorf("%s, %v", choice, err)
	}
}

// Explain says of each field what became of it, and of a malformed line why.
func TestExplain(t *testing.T) {
	for _, c := range []struct{ format, line, want string }{
		{"combined", `192.0.2.1 - bob [01/Jan/2020:00:00:00 +0000] "GET /a HTTP/1.1" - - "-" "x"`, `host "192.0.2.1" client: user=96d4f1ac
ident "-": no column takes it
login "bob": no column takes it
time "01/Jan/2020:00:00:00 +0000" time: time=2020-01-01T00:00:00Z
request "GET /a HTTP/1.1" request: op=read owner=a
status "-": no value for status
bytes "-": no value for bytes
referer "-": no column takes it
agent "x": no column takes it
 "" bytes: bytes=0 (the mapping's default)
`},
		{"combined", `192.0.2.1 - bob [01/Jan/2020:00:00:00 +0000] "GET /a HTTP/1.1" 2x 1 "-" "x"`, `host "192.0.2.1" client: user=96d4f1ac
ident "-": no column takes it
login "bob": no column takes it
time "01/Jan/2020:00:00:00 +0000" time: time=2020-01-01T00:00:00Z
request "GET /a HTTP/1.1" request: op=read owner=a
status "2x": "2x" cannot be status: expected a status of up to three digits or -
bytes "1" bytes: bytes=1
referer "-": no column takes it
agent "x": no column takes it
malformed column 64, field status: got "2x", expected a status of up to three digits or -
`},
		{"nginx:$time_iso8601 $request_uri $upstream_header_time $upstream_connect_time $request_time", `2020-01-01T00:00:00Z /a 0.2 0.1 0.3`, `time_iso8601 "2020-01-01T00:00:00Z" time: time=2020-01-01T00:00:00Z
request_uri "/a" target: op=read owner=a
upstream_header_time - upstream_connect_time "0.2 - 0.1" service_us: service_us=100000
request_time "0.3" total_us: service_us=100000 network_us=200000
`},
		{"json", `{"time": 1577836800, "code": 200, "url": "/a", "deep": {"x": [1]}, "host": null}`, `time "1577836800" time: time=2020-01-01T00:00:00Z
 "" method: op=read owner=a (the mapping's default)
url "/a" target: op=read owner=a
code "200" status: status=200
deep.x "[1]": no column takes it
host "null": no column takes it
`},
		{"json", `{"time"`, "malformed column 1, field object: got \"{\\\"time\\\"\", expected a JSON object (cannot parse JSON: cannot parse object: missing ':' after object key)\n"},
		{"table", `time,method,path`, "header\n"},
	} {
		p := open(t, c.format)
		x := p.Explain([]byte(c.line))
		var b strings.Builder
		for _, f := range x.Fields {
			b.WriteString(f.Field + ` "` + f.Value + `"`)
			if f.Column != "" {
				b.WriteString(" " + f.Column)
			}
			b.WriteString(": ")
			if f.Result != "" {
				b.WriteString(shortUser(f.Result))
				if f.Why != "" {
					b.WriteString(" (" + f.Why + ")")
				}
			} else {
				b.WriteString(f.Why)
			}
			b.WriteByte('\n')
		}
		switch {
		case errors.Is(x.Fault, ErrHeader):
			b.WriteString("header\n")
		case x.Fault != nil:
			b.WriteString("malformed " + x.Fault.Error() + "\n")
		case x.Row == nil:
			t.Error("neither a row nor a fault")
		}
		if b.String() != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.line, b.String(), c.want)
		}
	}
}

func shortUser(s string) string {
	if rest, ok := strings.CutPrefix(s, "user="); ok {
		return "user=" + rest[:8]
	}
	return s
}
