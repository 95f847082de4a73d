package accesslog

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"penstock/schemas/event"
)

// checkLine parses a line and holds what must be true of any.
func checkLine(t *testing.T, p *Parser, line []byte) {
	t.Helper()
	var r event.Request
	err := p.Parse(line, &r)
	var e *LineError
	switch {
	case errors.Is(err, ErrHeader):
		return
	case errors.As(err, &e):
		if e.Column < 1 || e.Column > len(line)+1 || len(e.Got) > maxGot || e.Expected == "" || e.Field == "" {
			t.Errorf("error without a place: %+v", e)
		}
		return
	case err != nil:
		t.Fatal(err)
	}
	// Ids of great length are the reader's to refuse. All else must be fit for a
	// batch.
	var fe *event.FieldError
	if err := r.Check(); errors.As(err, &fe) && len(fe.Value) <= event.MaxID {
		t.Errorf("%q became an invalid row: %v", line, err)
	}
	var again event.Request
	if err := p.Parse(line, &again); err != nil || fmt.Sprint(again) != fmt.Sprint(r) {
		t.Errorf("read again: %v\n%+v\n%+v", err, r, again)
	}
	if x := p.Explain(line); x.Fault != nil || x.Row == nil || fmt.Sprint(*x.Row) != fmt.Sprint(r) {
		t.Errorf("explained: %v\n%+v", x.Fault, x.Row)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`192.0.2.1 - - [17/May/2015:10:05:03 +0000] "GET /blog/x HTTP/1.1" 200 17 "-" "-"`), 1)
	f.Add([]byte(`::1 - a b [17/May/2015:10:05:03 -0100] "GET /\xe9\"/ HTTP/1.1" - - "\\" "\x"`), 2)
	f.Add([]byte(`a - - [17/May/2015:10:05:03 +0000] "" 000 1 "" ""`), 3)
	f.Add([]byte(`a - - [29/Feb/2015:10:05:03 +0000] "\"`), 1)
	f.Fuzz(func(t *testing.T, line []byte, depth int) {
		checkLine(t, newTestParser(t, named(t, "combined"), max(depth%8, 0)), line)
	})
}

// FuzzFormats gives any line to every format that Penstock knows.
func FuzzFormats(f *testing.F) {
	for _, line := range []string{
		`192.0.2.1:33317 [06/Feb/2009:12:14:14.655] http-in static/srv1 10/20/30/69/139 200 2750 - - ---- 1/1/1/1/0 0/0 {a|b} {c} "GET /index.html HTTP/1.1"`,
		`192.0.2.1:33317 [06/Feb/2009:12:14:14.655] a/b: SSL handshake failure`,
		`{"StartUTC":"2021-12-08T14:02:43.587782192Z","Duration":1,"RequestMethod":"GET","RequestPath":"/","DownstreamStatus":200,"ServiceURL":{"Host":"a"}}`,
		`{"ts":1.5e9,"logger":"http.log.access","request":{"method":"GET","uri":"/"},"duration":1e-6,"status":0}`,
		`{"start_time":"2026-01-24T01:36:00Z","response_flags":"-","bytes_sent":1,"method":"GET","path":"\u00e9","duration":"5"}{"a":[{}]}`,
		`[2016-04-15T20:17:00.310Z] "POST /a HTTP/2" 204 - 154 0 226 100 "10.0.35.28, b" "x" "id" "locations" "tcp://10.0.2.1:80"`,
		`h2 2023-04-26T12:23:14.9Z app/a/b [::1]:44740 - -1 0.002 1 200 - 5 257 "GET https://a:773/i HTTP/2.0" "c" - - arn "Root=1-58337281-1d84f3d73c47ec4e58577259" "-" "-" 1 t "r" "u" "-" "a" "2" "-" "-" x`,
		"time\tmethod\tpath\n1\tGET\t/", `a - b [x] "y" z`, ``, `{`, `"`, "\x00\xff",
	} {
		f.Add([]byte(line))
	}
	var parsers []*Parser
	for _, name := range Names() {
		parsers = append(parsers, newTestParser(f, named(f, name), 1))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		for _, p := range parsers {
			// Delimited formats keep the header that came first.
			p, err := NewParser(p.Format(), p.opts)
			if err != nil {
				t.Fatal(err)
			}
			for rest := line; len(rest) > 0; {
				record, behind := p.Cut(rest)
				if len(record) == 0 || len(behind) >= len(rest) {
					t.Fatalf("%q was cut into %q and %q", rest, record, behind)
				}
				checkLine(t, p, record)
				rest = behind
			}
		}
	})
}

// FuzzCompile gives any string to the compilers of formats, and any line to what
// they make of it.
func FuzzCompile(f *testing.F) {
	for _, format := range []string{
		`text:{host} {ident} [{time}] "{request}" {bytes}`, `nginx:$remote_addr:$remote_port [$time_local] "$request" $upstream_addr $request_time`,
		`nginx:log_format a escape=json '{"t":"$msec"' ',"r":"$request"}';`, `apache:%h %l %u %t \"%r\" %>s %b \"%{Referer}i\" %{ms}T`,
		`apache:LogFormat "%{%d/%b/%Y %T}t.%{msec_frac}t %{%z}t %!200r" x`, `haproxy:%{+Q}o %ci:%cp [%tr] %ft %b/%s %Ta %hr %hs %{-Q}r`,
		`haproxy:%[capture.req.hdr(0)]%t%r`, `envoy:[%START_TIME(%s.%3f)%] "%REQ(:METHOD)% %REQ(X?:PATH):10%" %DURATION%`,
	} {
		f.Add(format, []byte(`192.0.2.1:1 [06/Feb/2009:12:14:14.655] "GET / HTTP/1.1" 10.0.0.1:80, 10.0.0.2:80 : - 0.1`))
	}
	f.Fuzz(func(t *testing.T, format string, line []byte) {
		compiled, ok, err := ofString(format)
		if err != nil && !errors.Is(err, ErrFormat) {
			t.Fatal(err)
		}
		if !ok || err != nil {
			return
		}
		checkLine(t, newTestParser(t, compiled, 1), line)
	})
}

// FuzzDecode gives any bytes to the decoder of format files.
func FuzzDecode(f *testing.F) {
	for _, name := range Names() {
		b, err := formatFiles.ReadFile("formats/" + name + ".yaml")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, []byte(`{"time":1577836800,"method":"GET"}`))
	}
	f.Add([]byte(`{lines: [{regexp: '(?P<t>\d+)(?P<m>.*)'}], columns: {time: {from: t, expr: 'number(value)+1'}, method: m}}`), []byte("1577836800GET"))
	f.Fuzz(func(t *testing.T, file, line []byte) {
		format, err := Decode(file, "fuzz")
		if err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Fatal(err)
			}
			return
		}
		checkLine(t, newTestParser(t, format, 1), line)
	})
}

// FuzzUnwrap: what is unwrapped is a part of the line, or of its parts.
func FuzzUnwrap(f *testing.F) {
	f.Add([]byte("2026-01-24T01:37:00.0Z stdout P a\n2026-01-24T01:37:00.0Z stdout F b"))
	f.Add([]byte(`{"log":"a\n","stream":"stdout","time":"2026-01-24T01:37:00Z"}`))
	f.Add([]byte("<134>Nov 30 09:00:00 host haproxy[12]: a\n<190>1 - - nginx - ID [a b=\"c]\\\"\"] h"))
	f.Fuzz(func(t *testing.T, log []byte) {
		for w := WrapNone; w <= WrapSyslog; w++ {
			u := NewUnwrapper(w)
			size := 0
			for line := range strings.SplitSeq(string(log), "\n") {
				inner, whole, err := u.Unwrap([]byte(line))
				size += len(line)
				var e *LineError
				if err != nil && !errors.As(err, &e) && !errors.Is(err, ErrTooLong) {
					t.Fatal(err)
				}
				if len(inner) > 3*size || whole && err == nil && w == WrapNone && string(inner) != line {
					t.Fatalf("%s: %q became %q", w, line, inner)
				}
			}
			if u.Pending() != (len(u.Rest()) > 0) {
				t.Fatal("pending, but no rest")
			}
		}
	})
}

// FuzzTimes: a time that a pattern reads is the same once it is written out.
func FuzzTimes(f *testing.F) {
	f.Add("%Y-%m-%dT%H:%M:%S.%3f%z", []byte("2020-02-29T23:59:60.123+0100"))
	f.Add("%d/%b/%Y %I:%M %p", []byte("01/Jan/2020 12:00 AM"))
	f.Add("%s.%6f", []byte("1577836800.000001"))
	f.Fuzz(func(t *testing.T, pattern string, b []byte) {
		format, err := compileTime(pattern)
		if err != nil {
			return
		}
		us, ok := format.parse(b, nil)
		if n := format.length(b); ok && n != len(b) || n > len(b) {
			t.Errorf("%q: a time of %d bytes, %d are there", pattern, n, len(b))
		}
		if again, ok2 := format.parse(b, nil); again != us || ok != ok2 {
			t.Error("read again, it is another")
		}
		parseAnyTime(b, unitNone, nil)
		parseSpan(b, unitMillis)
		if text := unescape(nil, b, escapeJSON); utf8.Valid(b) && !utf8.Valid(text) {
			t.Errorf("%q became %q", b, text)
		}
	})
}
