package accesslog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"penstock/schemas/event"
)

// ofYAML returns a parser of a format file.
func ofYAML(t testing.TB, file string) *Parser {
	t.Helper()
	f, err := Decode([]byte(file), "test")
	if err != nil {
		t.Fatal(err)
	}
	return newTestParser(t, f, 1)
}

// Each word of a mapping, by a line and what becomes of it.
func TestMapping(t *testing.T) {
	for _, c := range []struct{ about, file, line, want string }{
		{
			"any order, any literal",
			`{lines: [{text: '<{bytes}|"{request}"|{time}>'}], like: combined, columns: {client: {default: "-"}, status: {default: 0}}}`,
			`<17|"PUT /a/b HTTP/1.1"|01/Jan/2020:00:00:00 +0000>`,
			`2020-01-01T00:00:00Z write owner=a status=0 bytes=17`,
		}, {
			"what follows the end is no line of the format",
			`{lines: [{text: '<{bytes}|"{request}"|{time}>'}], like: combined, columns: {client: {default: "-"}, status: {default: 0}}}`,
			`<17|"PUT /a/b HTTP/1.1"|01/Jan/2020:00:00:00 +0000>x`,
			`malformed column 52, field time: got "x", expected the end of the line after time`,
		}, {
			"the prefix belongs to the format",
			`{lines: [{text: '<{bytes}|"{request}"|{time}>'}], like: combined, columns: {client: {default: "-"}, status: {default: 0}}}`,
			`17|"PUT /a/b HTTP/1.1"|01/Jan/2020:00:00:00 +0000>`,
			`malformed column 1, field bytes: got "17|\"PUT /a/b HTTP/1.1\"|01/Jan/2020:00:00:00 +0000>", expected "<"`,
		}, {
			"units and the first source that has a value",
			`{lines: [{json: true}], columns: {time: [{from: sec, unit: s}, {from: milli, unit: ms}], op: op, service_us: [{from: a, unit: ms}, {from: b, unit: min}]}}`,
			`{"milli": "1577836800001.5", "op": "write", "a": null, "b": 1.5}`,
			`2020-01-01T00:00:00.0015Z write bytes=0 service=90000000`,
		}, {
			"match joins its groups; what does not match has no value",
			`{lines: [{json: true}], columns: {time: t, op: op, to_server: [{from: url, match: '^a(b)c(d)'}, {from: url, match: 'x+'}]}}`,
			`{"t": 1577836800, "op": "read", "url": "zxxxz"}`,
			`2020-01-01T00:00:00Z read bytes=0 server=xxx`,
		}, {
			"lookup, with a star for all else",
			`{lines: [{json: true}], columns: {time: t, op: {from: kind, lookup: {put: write, "*": read}}, status: {from: s, lookup: {ok: 200, "": 0}}}}`,
			`{"t": 1577836800, "kind": "list", "s": "ok"}`,
			`2020-01-01T00:00:00Z read status=200 bytes=0`,
		}, {
			"an expression of the value",
			`{lines: [{json: true}], columns: {time: t, op: op, bytes: {from: kb, expr: 'number(value) * 1024'}}}`,
			`{"t": 1577836800, "op": "read", "kb": "3"}`,
			`2020-01-01T00:00:00Z read bytes=3072`,
		}, {
			"an expression of several fields; nil has no value",
			`{lines: [{json: true}], columns: {time: t, op: op, to_server: {expr: 'field("a") == nil ? nil : field("a") + ":" + field("b")'}, id: {expr: 'field("c") ?? nil'}}}`,
			`{"t": 1577836800, "op": "read", "a": "h", "b": "80"}`,
			`2020-01-01T00:00:00Z read bytes=0 server=h:80`,
		}, {
			"an expression that fails is a malformed line",
			`{lines: [{json: true}], columns: {time: t, op: op, bytes: {from: kb, expr: 'number(value) * 1024'}}}`,
			`{"t": 1577836800, "op": "read", "kb": "three"}`,
			`malformed column 1, field kb: got "\"three\" is no number (1:1)\n | number(value) * 1024\n | ^", expected a number of bytes or -`,
		}, {
			"values that mean there is none; sums of what is there; one less another",
			`{lines: [{json: true}], columns: {time: t, op: op, bytes: {sum: [a, b, c], missing: x}, wait_us: {from: d, minus: e, unit: ms}, service_us: {from: f, unit: ms, missing: [-1, none]}}}`,
			`{"t": 1577836800, "op": "read", "a": 5, "b": "x", "c": "7", "d": 9.5, "e": "2", "f": "none"}`,
			`2020-01-01T00:00:00Z read bytes=12 wait=7500`,
		}, {
			"negative differences are kept (P18)",
			`{lines: [{json: true}], columns: {time: t, op: op, wait_us: {from: d, minus: e, unit: ms}}}`,
			`{"t": 1577836800, "op": "read", "d": 2, "e": 3}`,
			`2020-01-01T00:00:00Z read bytes=0 wait=-1000`,
		}, {
			"a start gets the duration added",
			`{lines: [{json: true}], columns: {time: {from: t, at: start}, op: op, total_us: {from: d, unit: s}}}`,
			`{"t": 1577836800, "op": "read", "d": 1.25}`,
			`2020-01-01T00:00:01.25Z read bytes=0 service=1250000`,
		}, {
			"a start without a whole gets its parts",
			`{lines: [{json: true}], columns: {time: {from: t, at: start}, op: op, wait_us: {from: w, unit: s}, service_us: {from: d, unit: s}}}`,
			`{"t": 1577836800, "op": "read", "d": 1.25, "w": 2}`,
			`2020-01-01T00:00:03.25Z read bytes=0 wait=2000000 service=1250000`,
		}, {
			"a strftime time",
			`{lines: [{json: true}], columns: {time: {from: t, as: '%d.%m.%Y %H:%M'}, op: op}}`,
			`{"t": "01.02.2020 03:04", "op": "DELETE"}`,
			`2020-02-01T03:04:00Z write bytes=0`,
		}, {
			"a regular expression as the last resort",
			`{lines: [{regexp: '^(?P<t>\d+) (?:(?P<m>[A-Z]+) (?P<u>\S+))?(?P<rest>.*)$'}], columns: {time: t, method: m, target: u}}`,
			`1577836800 GET /a/b now`,
			`2020-01-01T00:00:00Z read owner=a bytes=0`,
		}, {
			"a group that took no part is no field",
			`{lines: [{regexp: '^(?P<t>\d+) (?:(?P<m>[A-Z]+) (?P<u>\S+))?(?P<rest>.*)$'}], columns: {time: t, method: m, target: u}}`,
			`1577836800 ?`,
			`2020-01-01T00:00:00Z read bytes=0 class=bad-request`,
		}, {
			"paths, names with dots, the first of a list",
			`{lines: [{json: true}], columns: {time: a.t, target: 'http.path', method: {default: GET}, id: 'h.X-Id'}}`,
			`{"a": {"t": 1577836800}, "http.path": "/a", "http": {"path": "/b"}, "h": {"X-Id": ["1", "2"]}}`,
			`2020-01-01T00:00:00Z read owner=a bytes=0 id=1`,
		}, {
			"fields by their place",
			`{lines: [{delimited: {separator: ";", names: [T, m, u]}}], columns: {time: t, method: m, target: U}}`,
			`1577836800;PUT;"/a;b""c"`,
			`2020-01-01T00:00:00Z write owner=a;b"c bytes=0`,
		}, {
			"a number of fields that is wrong",
			`{lines: [{delimited: {separator: ";", names: [t, m, u]}}], columns: {time: t, method: m, target: u}}`,
			`1577836800;PUT`,
			`malformed column 1, field record: got "2 fields", expected 3 fields`,
		}, {
			"more fields than that, where they may be",
			`{lines: [{delimited: {separator: ";", names: [t, m, u]}, more: true}], columns: {time: t, method: m, target: u}}`,
			`1577836800;PUT;/a;b;c`,
			`2020-01-01T00:00:00Z write owner=a bytes=0`,
		}, {
			"columns that a shape sets; the shape that comes furthest says what is wrong",
			`{lines: [{text: 'A {t} {m} {u}'}, {text: 'B {t}', set: {class: probe, op: read}}], columns: {time: t, method: m, target: u}}`,
			`B 1577836800`,
			`2020-01-01T00:00:00Z read bytes=0 class=probe`,
		}, {
			"no owner and no user, although there are a path and an address",
			`{lines: [{text: '{host} [{time}] "{request}"'}], like: combined, columns: {owner: {none: true}, user: {none: true}, status: {default: 0}, bytes: {default: 0}}}`,
			`192.0.2.1 [01/Jan/2020:00:00:00 +0000] "PUT /a/b HTTP/1.1"`,
			`2020-01-01T00:00:00Z write status=0 bytes=0`,
		}, {
			"an owner of its own, and else none",
			`{lines: [{json: true}], columns: {time: t, request: r, owner: [{from: x, match: '^t-(.+)'}, y, {none: true}]}}`,
			`{"t": 1577836800, "r": "PUT /a/b HTTP/1.1", "x": "a"}`,
			`2020-01-01T00:00:00Z write bytes=0`,
		}, {
			"the first that has a value goes before none",
			`{lines: [{json: true}], columns: {time: t, request: r, owner: [{from: x, match: '^t-(.+)', none: true}, y]}}`,
			`{"t": 1577836800, "r": "PUT /a/b HTTP/1.1", "x": "t-%41", "y": "c"}`,
			`2020-01-01T00:00:00Z write owner=%41 bytes=0`,
		}, {
			"escapes of a path; what is not escaped by the rules stays",
			`{lines: [{json: true}], columns: {time: t, op: op, owner: {from: x, expr: 'unescape(value)'}, id: {from: y, expr: 'unescape(value)'}}}`,
			`{"t": 1577836800, "op": "read", "x": "an%20%C3%A9+", "y": "50%"}`,
			`2020-01-01T00:00:00Z read owner=an é+ bytes=0 id=50%`,
		}, {
			"columns of DESIGN that logs seldom have",
			`{lines: [{json: true}], columns: {time: t, op: op, lat: a, lon: b, n: n, k: k, overdue_us: {from: o, unit: us}, outcome: x, from_site: f, to_site: s, owner: w, user: {from: u, hash: true}}}`,
			`{"t": 1577836800, "op": "read", "a": 47.5, "b": -8.25, "n": 12, "k": 6, "o": 5, "x": "done", "f": "eu", "s": "us", "w": "é/x", "u": "alice"}`,
			`2020-01-01T00:00:00Z read owner=é/x bytes=0`,
		}, {
			"what cannot be a latitude",
			`{lines: [{json: true}], columns: {time: t, op: op, lat: a, lon: b}}`,
			`{"t": 1577836800, "op": "read", "a": 97.5, "b": -8.25}`,
			`malformed column 1, field a: got "97.5", expected degrees`,
		}, {
			"a time that is missing",
			`{lines: [{json: true}], columns: {time: t, op: op}}`,
			`{"t": "-", "op": "read"}`,
			`malformed column 1, field t: got "-", expected a time between 1900 and 2200 (it may not be missing)`,
		}, {
			"an end that is beyond what a row may have",
			`{lines: [{json: true}], columns: {time: {from: t, at: start}, op: op, total_us: {from: d, unit: s}}}`,
			`{"t": 7258118399, "op": "read", "d": 3000}`,
			`malformed column 1, field time: got "{\"t\": 7258118399, \"op\": \"read\", \"d\": 3000}", expected a time between 1900 and 2200 at the request's end`,
		},
	} {
		if got := textOf(t, ofYAML(t, c.file), c.line); got != c.want {
			t.Errorf("%s\n%s\n%s\n got %s\nwant %s", c.about, c.file, c.line, got, c.want)
		}
	}
	r := parseOne(t, ofYAML(t, `{lines: [{json: true}], columns: {time: t, op: op, lat: a, lon: b, n: n, k: k, overdue_us: {from: o, unit: us}, outcome: x, from_site: f, to_site: s, from_component: c, user: {from: u, hash: true}}}`),
		`{"t": 1577836800, "op": "read", "a": 47.5, "b": -8.25, "n": 12, "k": 6, "o": 5, "x": "done", "f": "eu", "s": "us", "c": "web", "u": "alice"}`)
	if r.Lat != 47.5 || r.Lon != -8.25 || r.N != 12 || r.K != 6 || r.Overdue != 5 || r.Outcome != "done" || r.FromSite != "eu" || r.ToSite != "us" || r.FromComponent != "web" || len(r.User) != 32 {
		t.Errorf("%+v", r)
	}
}

// Faults of format files, all of a file at once, with where they are.
func TestFaultsOfFormatFiles(t *testing.T) {
	for file, says := range map[string]string{
		"":                                      "no lines",
		"lines: []":                             "no lines",
		"lines: [{}]":                           "0 ways to cut a line",
		"lines: [{text: '{time}', json: true}]": "2 ways to cut a line",
		"lines: [{json: true, wrong: 1}]":       `unknown field "wrong"`,
		"lines: [{json: true}]\nlike: nothing":  "like: format",
		"lines: [{regexp: '('}]":                "regexp: error parsing",
		"lines: [{json: true, only: {a: '('}}]": "only: a:",
		"lines: [{text: '{a}', only: {b: ''}}]\ncolumns: {time: a, op: a}":  "only: no field b",
		"lines: [{json: true, set: {speed: 1}}]":                            "set: speed is no column",
		"lines: [{delimited: {separator: '||'}}]":                           "expected one byte",
		"lines: [{delimited: {names: [a]}}]":                                "names, but no separator",
		"lines: [{json: true}]\ncolumns: {speed: a, weight: b}":             "columns: weight is none",
		"lines: [{json: true}]\ncolumns: {speed: a, height: b}":             "columns: speed is none",
		"lines: [{text: '{a} {b}'}]\ncolumns: {time: a, op: b, id: c}":      "columns: id: no line has a field c",
		"lines: [{json: true}]\ncolumns: {id: {}}":                          "expected one of from, sum, expr, default",
		"lines: [{json: true}]\ncolumns: {id: {from: a, sum: b}}":           "expected one of from, sum, expr, default",
		"lines: [{json: true}]\ncolumns: {id: {from: a, minus: b}}":         "minus and sum are for",
		"lines: [{json: true}]\ncolumns: {id: {from: a, unit: s}}":          "a unit is for",
		"lines: [{json: true}]\ncolumns: {total_us: {from: a, unit: d}}":    `unit "d", expected`,
		"lines: [{json: true}]\ncolumns: {id: {from: a, hash: true}}":       "hash is for user",
		"lines: [{json: true}]\ncolumns: {time: {from: a, at: noon}}":       "expected start or end",
		"lines: [{json: true}]\ncolumns: {id: {from: a, pick: middle}}":     "expected first or last",
		"lines: [{json: true}]\ncolumns: {time: {from: a, as: '%Q'}}":       "%Q in the time",
		"lines: [{json: true}]\ncolumns: {id: {from: a, match: '('}}":       "match: error parsing",
		"lines: [{json: true}]\ncolumns: {id: {from: a, expr: 'nothing'}}":  "unknown name nothing",
		"lines: [{json: true}]\ncolumns: {id: {from: a, expr: '1 +'}}":      "expr:",
		"lines: [{json: true}]\ncolumns: {bytes: {default: many}}":          `default "many", expected a number of bytes`,
		"lines: [{json: true}]\ncolumns: {id: {frm: a}}":                    `unknown field "frm"`,
		"lines: [{json: true}]\ncolumns: {class: {none: true}}":             "none is for owner and user",
		"lines: [{json: true}]\ncolumns: {owner: {none: true, default: a}}": "expected one of default and none",
		"lines: [{apache: '%t %r %>s %Q'}]":                                 "%Q is no directive of Apache's LogFormat",
		"lines: [{apache: '%Q'}]":                                           "%Q is no directive of Apache's LogFormat",
	} {
		_, err := Decode([]byte(file), "test")
		if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), ErrFormat.Error()) {
			t.Errorf("%s\n%v\nexpected %s", file, err, says)
		}
	}
}

// P09: numbers in any spelling are one number, what is missing is never 0.
func TestJSONNumbers(t *testing.T) {
	p := ofYAML(t, `{lines: [{json: true}], columns: {time: t, method: m, target: u, status: s, bytes: b, service_us: {from: d, unit: ms}}}`)
	for _, five := range []string{`5`, `"5"`, `5.0`, `"5.0"`, `5e0`, `"5.000"`} {
		line := fmt.Sprintf(`{"t": 1577836800, "m": "GET", "u": "/a", "s": 200.0, "b": %s, "d": %s}`, five, five)
		if got, want := textOf(t, p, line), "2020-01-01T00:00:00Z read owner=a status=200 bytes=5 service=5000"; got != want {
			t.Errorf("%s: got %s", five, got)
		}
	}
	for _, none := range []string{`null`, `"-"`, `""`, `"null"`} {
		line := fmt.Sprintf(`{"t": 1577836800, "m": "GET", "u": "/a", "s": %s, "d": %s}`, none, none)
		if r := parseOne(t, p, line); r.Status != event.NullStatus || r.Service != event.NullInt {
			t.Errorf("%s is missing: %s", none, text(&r))
		}
	}
	for _, wrong := range []string{`5.5`, `"five"`, `-5`, `true`, `{}`, `1e30`} {
		line := fmt.Sprintf(`{"t": 1577836800, "m": "GET", "u": "/a", "b": %s}`, wrong)
		if r, fault := tryParse(p, line); fault == nil || fault.Field != "b" {
			t.Errorf("%s: %v, %s", wrong, fault, text(&r))
		}
	}
	// A member of any other kind is no line of the log.
	for _, line := range []string{`{}`, `[]`, `null`, `{"t": 1577836800, "m": "GET", "u": "/a"`, `{"t": 1577836800} x`, `{"t": 1577836800, "b": 1}`} {
		if r, fault := tryParse(p, line); fault == nil {
			t.Errorf("%s became %s", line, text(&r))
		}
	}
}

// P09: objects one behind the other on a line are rows each, what is between
// them and half an object at the end are counted.
func TestJSONObjectsOnOneLine(t *testing.T) {
	const a = `{"time": 1577836800, "method": "GET", "path": "/a}\"{", "bytes": 1}`
	const b = `{"time": 1577836801, "method": "GET", "path": "/b", "bytes": {"nested": ["}"]}, "size": 2}`
	for log, want := range map[string]string{
		a + b + a:           "3 rows",
		a + "  " + b + "\t": "2 rows",
		a + "x" + b:         "1 rows, object 1",
		a + b[:40]:          "1 rows, object 1",
		a + "\n" + b[:40]:   "1 rows, object 1",
		b[:40] + "\n" + a:   "1 rows, object 1",
		"{" + a:             "0 rows, object 1",
		"}" + a:             "0 rows, object 1",
	} {
		log = strings.ReplaceAll(log, `"bytes": {"nested": ["}"]}, "size"`, `"x": {"nested": ["}"]}, "size"`)
		got := parseLog(t, []byte(log), ChoiceOptions{Name: "json", Wrapping: WrapNone})
		says := fmt.Sprintf("%d rows", len(got.rows))
		if m := got.malformed(); m != "" {
			says += ", " + m
		}
		if says != want {
			t.Errorf("%s\n got %s\nwant %s", log, says, want)
		}
	}
}

// A user's file has the syntax of ours, and may be like one of them.
func TestFormatFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ours.yaml")
	file := "about: our edge\nlines: [{nginx: '$remote_addr $time_iso8601 \"$request\" $status $body_bytes_sent $http_x_tenant'}]\n" +
		"columns: {owner: {from: http_x_tenant, match: '^t-(.+)$'}}\n"
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	p, choice, err := Open(ChoiceOptions{Name: path}, Options{Key: []byte("k")})
	if err != nil {
		t.Fatal(err)
	}
	if choice.Format != "ours" || !choice.Named || choice.Confidence != 1 || p.Format().About() != "our edge" {
		t.Errorf("%+v", choice)
	}
	if got, want := textOf(t, p, `192.0.2.1 2020-01-01T00:00:00Z "PUT /a HTTP/1.1" 200 5 t-acme`), "2020-01-01T00:00:00Z write owner=acme status=200 bytes=5"; got != want {
		t.Errorf("got %s, expected %s", got, want)
	}
	if got, want := textOf(t, p, `192.0.2.1 2020-01-01T00:00:00Z "PUT /a HTTP/1.1" 200 5 -`), "2020-01-01T00:00:00Z write owner=a status=200 bytes=5"; got != want {
		t.Errorf("got %s, expected %s", got, want)
	}
}

// All formats that Penstock knows compile, and say what they are for.
func TestAllFormats(t *testing.T) {
	for _, name := range Names() {
		if f := named(t, name); f.Name() != name || f.About() == "" {
			t.Errorf("%s is called %q, about %q", name, f.Name(), f.About())
		}
	}
}
