package accesslog

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"penstock/schemas/event"
)

// combinedByRegexp is the combined format cut by a regular expression.
const combinedByRegexp = `
like: combined
lines:
  - escape: c
    regexp: '^(?P<host>[^ "\[{]+) (?P<ident>[^ ]+) (?P<login>[^ \[](?:[^ ]| +[^ \[])*) \[(?P<time>[^\]]*)\] "(?P<request>(?:[^"\\]|\\.)*)" (?P<status>[^ ]*) (?P<bytes>[^ ]*) "(?P<referer>(?:[^"\\]|\\.)*)" "(?P<agent>(?:[^"\\]|\\.)*)"$'
`

// slow returns the same format with each value taken the long way: its layout as
// a regular expression, its mapping through expressions that change nothing.
func slow(t testing.TB, f *Format) *Format {
	t.Helper()
	out := &Format{name: f.name, columns: make(map[string]Sources)}
	for _, s := range f.shapes {
		if s.text == nil {
			t.Fatal("only text has a slow way")
		}
		var b strings.Builder
		b.WriteString("^" + regexp.QuoteMeta(s.text.prefix))
		names := make([]string, len(s.names))
		for i, e := range s.text.elements {
			names[i] = fmt.Sprintf("f%d", i)
			part := `.*?`
			switch {
			case e.quoted:
				part = `(?:[^"\\]|\\.)*`
			case e.kind == kindTime:
				part = `.{26}`
			case e.last:
				part = `[^ ]*`
			case e.kind == kindList:
				part = `[^ ,]*(?:(?:, | : )[^ ,]+)*`
			}
			b.WriteString(`(?P<` + names[i] + `>` + part + `)` + regexp.QuoteMeta(e.until))
		}
		rule, err := regexp.Compile(b.String() + "$")
		if err != nil {
			t.Fatal(err)
		}
		out.shapes = append(out.shapes, &shape{kind: shapeRegexp, rule: rule, names: s.names, set: s.set, escape: s.text.elements[0].escape})
	}
	for column, sources := range f.columns {
		for _, source := range sources {
			if source.Minus == "" && len(source.Sum) == 0 && len(source.From) > 0 && source.Expr == "" {
				source.Expr = "value"
			}
			out.columns[column] = append(out.columns[column], source)
		}
	}
	return out
}

// A line of any text format is the same row, whichever way it is read.
func TestFastWayIsTheSlowWay(t *testing.T) {
	word := rapid.SampledFrom([]string{"192.0.2.1", "2001:db8::1", "-", "host.example.org", "a", "10.0.0.1:80", "bob"})
	number := rapid.SampledFrom([]string{"0", "-", "17", "200", "0.123", "12", "1e3", "404", "2147483648", "x", "-1"})
	list := rapid.SampledFrom([]string{"-", "0.1", "0.1, 0.2", "10.0.0.1:80 : 10.0.0.2:80", "0.1, - : 0.3", "a, b"})
	when := rapid.SampledFrom([]string{"17/May/2015:10:05:03 +0000", "17/May/2015:10:05:03 -0700", "31/Apr/2015:10:05:03 +0000"})
	iso := rapid.SampledFrom([]string{"2015-05-17T10:05:03Z", "2015-05-17T10:05:03.25+02:00", "never"})
	quoted := rapid.SampledFrom([]string{"GET /a HTTP/1.1", "-", "", `\x16\x03`, `PUT /a\"b/c?d HTTP/2.0`, "x y z", "GET /a b HTTP/1.1", "http://a/b"})
	value := func(e *element) *rapid.Generator[string] {
		switch {
		case e.quoted, e.kind == kindRequest:
			return quoted
		case e.kind == kindTime:
			return when
		case e.kind == kindList:
			return list
		case e.kind == kindHost, e.kind == kindIdent, e.kind == kindLogin:
			return word
		case strings.Contains(e.name, "iso8601"):
			return iso
		}
		return number
	}
	for _, format := range []string{
		"combined", "common", "vhost",
		`nginx:$remote_addr:$remote_port $time_iso8601 "$request" $status $body_bytes_sent $request_length $upstream_addr $upstream_header_time $upstream_connect_time $request_time "$http_referer"`,
		`nginx:[$time_local] $remote_addr "$request_method" "$request_uri" $status ($bytes_sent) <$upstream_response_time>|$upstream_queue_time`,
		`apache:%v:%p %h %l %u %t "%r" %>s %O "%{Referer}i" %I %D "%{BALANCER_WORKER_NAME}e"`,
	} {
		fast := open(t, format)
		f := fast.Format()
		oracle := newTestParser(t, slow(t, f), 1)
		matched := 0
		rapid.Check(t, func(t *rapid.T) {
			l := f.shapes[0].text
			line := l.prefix
			for i := range l.elements {
				e := &l.elements[i]
				line += value(e).Draw(t, e.name) + e.until
			}
			a, err := tryParse(fast, line)
			if err != nil {
				return
			}
			matched++
			b, err := tryParse(oracle, line)
			if err != nil {
				t.Fatalf("%s\n%s\nthe slow way: %v", format, line, err)
			}
			if fmt.Sprint(a) != fmt.Sprint(b) {
				t.Fatalf("%s\n%s\nfast %+v\nslow %+v", format, line, a, b)
			}
		})
		if matched == 0 {
			t.Errorf("%s: no line was of the format: nothing was compared", format)
		}
	}
}

// The combined format as NGINX and Apache write it down gives the same rows, and
// the same lines are refused.
func TestCombinedInThreeSpellings(t *testing.T) {
	parsers := []*Parser{
		open(t, "combined"), ofYAML(t, combinedByRegexp),
		open(t, `nginx:$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent"`),
		open(t, `apache:%h %l %u %t \"%r\" %>s %b \"%{Referer}i\" \"%{User-Agent}i\"`),
	}
	part := rapid.SampledFrom([]string{"192.0.2.1", "-", " ", "[", `"`, `\"`, `\x16`, "[01/Jan/2020:00:00:00 +0000]", "GET /a HTTP/1.1", "200", "17", "bob", ","})
	rapid.Check(t, func(t *rapid.T) {
		fields := []string{"192.0.2.1", "-", "bob", "[01/Jan/2020:00:00:00 +0000]", `"GET /a HTTP/1.1"`, "200", "17", `"-"`, `"x y"`}
		for range rapid.IntRange(0, 2).Draw(t, "changes") {
			i := rapid.IntRange(0, len(fields)-1).Draw(t, "field")
			if i == 1 {
				continue // NGINX has a literal there
			}
			change := part.Draw(t, "part")
			if i == 0 {
				change = strings.ReplaceAll(change, " ", "") // another word would be the identity
			}
			if rapid.Bool().Draw(t, "replace") {
				fields[i] = change
			} else {
				fields[i] += change
			}
		}
		line := strings.Join(fields, " ")
		var first event.Request
		var refused bool
		for i, p := range parsers {
			r, err := tryParse(p, line)
			if i == 0 {
				first, refused = r, err != nil
				continue
			}
			if refused != (err != nil) || err == nil && fmt.Sprint(r) != fmt.Sprint(first) {
				t.Fatalf("%s\n%s: %v, %+v\nfirst: refused %v, %+v", line, p.Format().Name(), err, r, refused, first)
			}
		}
	})
}
