package accesslog

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"penstock/schemas/event"
)

func TestOwnerDepth(t *testing.T) {
	const line = `192.0.2.1 - - [01/Jan/2020:00:00:00 +0000] "GET %s HTTP/1.1" 200 1 "-" "-"`
	for _, test := range []struct {
		path  string
		depth int
		owner string
	}{
		{"/a/b/c", 1, "a"},
		{"/a/b/c", 2, "a/b"},
		{"/a/b/c", 3, "a/b/c"},
		{"/a/b/c", 9, "a/b/c"},
		{"/a//b/", 2, "a/b"},
		{"/a?b/c", 2, "a"},
		{"/", 2, ""},
		{"///", 1, ""},
		{"/~user@example.org/x", 1, "~user@example.org"},
		{"/2001:db8::1/x", 1, "2001:db8::1"},
	} {
		var r event.Request
		if err := newTestParser(t, named(t, "combined"), test.depth).Parse(fmt.Appendf(nil, line, test.path), &r); err != nil {
			t.Fatal(err)
		}
		if r.Owner != test.owner {
			t.Errorf("%s at depth %d: owner %q, expected %q", test.path, test.depth, r.Owner, test.owner)
		}
	}
}

func TestUserIsAKeyedHash(t *testing.T) {
	user := func(key, host string) string {
		p, err := NewParser(named(t, "combined"), Options{Key: []byte(key)})
		if err != nil {
			t.Fatal(err)
		}
		var r event.Request
		if err := p.Parse([]byte(host+` - - [01/Jan/2020:00:00:00 +0000] "GET / HTTP/1.1" 200 1 "-" "-"`), &r); err != nil {
			t.Fatal(err)
		}
		if r.HasPlace() {
			t.Error("a place without a locator")
		}
		return r.User
	}
	a := user("k", "192.0.2.1")
	if len(a) != 32 || strings.Contains(a, "192") {
		t.Errorf("user %q is no hash of 128 bits", a)
	}
	for _, same := range [][2]string{
		{"192.0.2.1", "::ffff:192.0.2.1"},
		{"2001:db8::1", "2001:DB8:0::0001"},
		{"fe80::1%eth0", "fe80::1"},
		{"Host.Example.ORG", "host.example.org"},
	} {
		if user("k", same[0]) != user("k", same[1]) {
			t.Errorf("%s and %s are one client", same[0], same[1])
		}
	}
	if a == user("k", "192.0.2.2") || a == user("l", "192.0.2.1") {
		t.Error("another client or another key gave the same user")
	}
}

func TestOptionsThatCannotBeUsed(t *testing.T) {
	for _, o := range []Options{{}, {Key: []byte("k"), OwnerDepth: -1}} {
		if _, err := NewParser(named(t, "combined"), o); !errors.Is(err, ErrOption) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func TestTimeAgreesWithTheStandardLibrary(t *testing.T) {
	const layout = "02/Jan/2006:15:04:05 -0700"
	rapid.Check(t, func(t *rapid.T) {
		// Years 0 to 9999, a day off each end, so that every zone has four digits.
		s := rapid.Int64Range(-62_167_219_200+86_400, 253_402_300_799-86_400).Draw(t, "s")
		zone := rapid.IntRange(-14*60, 14*60).Draw(t, "zone")
		at := time.Unix(s, 0).In(time.FixedZone("", zone*60))
		got, ok := parseTime([]byte(at.Format(layout)))
		if !ok || got != s*1_000_000 {
			t.Fatalf("%s: got %d, %v, expected %d s", at.Format(layout), got, ok, s)
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`[0-9]{2}/(Jan|Feb|Apr|Jun|Dec)/(2000|2015|2100)(:[0-9]{2}){3} [+-][01][0-9][0-5][0-9]`).Draw(t, "s")
		want, err := time.Parse(layout, s)
		got, ok := parseTime([]byte(s))
		// The standard library has no leap seconds.
		if leap := strings.Contains(s[17:21], ":60"); !leap && (ok != (err == nil) || ok && got != want.UnixMicro()) {
			t.Fatalf("%s: got %d, %v; the standard library %v, %v", s, got, ok, want, err)
		}
	})
}

// combinedRule is the format as a regular expression: the slow oracle.
var combinedRule = regexp.MustCompile(`^(\S+) (\S+) ([^ \[](?:[^ ]| +[^ \[])*) \[(\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4})\] ` +
	`"((?:[^"\\]|\\.)*)" (\d{1,3}|-) (\d{1,18}|-) "((?:[^"\\]|\\.)*)" "((?:[^"\\]|\\.)*)"$`)

func TestAgreesWithARegularExpression(t *testing.T) {
	part := rapid.SampledFrom([]string{
		"192.0.2.1", "host", "-", " ", "  ", "[", "]", `"`, `\"`, `\\`, `\x16`, "01/Jan/2020:00:00:00 +0000", "[01/Jan/2020:00:00:00 +0000]",
		"GET /a HTTP/1.1", "200", "17", "a", `"-"`, `"GET / HTTP/1.0"`, "bob", ",",
	})
	p := newTestParser(t, named(t, "combined"), 1)
	rapid.Check(t, func(t *rapid.T) {
		fields := []string{"192.0.2.1", "-", "bob", "[01/Jan/2020:00:00:00 +0000]", `"GET /a HTTP/1.1"`, "200", "17", `"-"`, `"x y"`}
		for range rapid.IntRange(0, 3).Draw(t, "changes") {
			i := rapid.IntRange(0, len(fields)-1).Draw(t, "field")
			if rapid.Bool().Draw(t, "replace") {
				fields[i] = part.Draw(t, "part")
			} else {
				fields[i] += part.Draw(t, "part")
			}
		}
		line := strings.Join(fields, " ")
		var r event.Request
		err := p.Parse([]byte(line), &r)
		m := combinedRule.FindStringSubmatch(line)
		if m == nil || strings.HasPrefix(m[3], "- ") || strings.ContainsAny(m[1], "[\"{") {
			if err == nil {
				t.Fatalf("%s: matched, the rule does not", line)
			}
			return
		}
		if err != nil {
			t.Fatalf("%s: %v, the rule matches", line, err)
		}
		if bytes, _ := strconv.ParseInt(m[7], 10, 64); r.Bytes != bytes {
			t.Fatalf("%s: bytes %d, expected %d", line, r.Bytes, bytes)
		}
	})
}

func TestParseAllocatesNothing(t *testing.T) {
	p := newTestParser(t, named(t, "combined"), 1)
	lines := [][]byte{
		[]byte(`192.0.2.1 - - [17/May/2015:10:05:03 +0000] "GET /blog/x HTTP/1.1" 200 17 "http://example.org/" "Mozilla/5.0 (\"X\")"`),
		[]byte(`192.0.2.1 - - [17/May/2015:10:05:03 +0000] "GET /caf\xc3\xa9 HTTP/1.1" 200 17 "-" "-"`),
		[]byte(`192.0.2.1 - - [17/May/2015:10:05:03 +0000] "\x16\x03" 400 17 "-" "-"`),
	}
	var r event.Request
	if n := testing.AllocsPerRun(100, func() {
		for _, line := range lines {
			if err := p.Parse(line, &r); err != nil {
				t.Fatal(err)
			}
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// The rule of a method is one, whether it stands in a log or in a column.
func TestMethodsOfAColumn(t *testing.T) {
	for method, want := range map[string]event.Op{
		"GET": event.Read, "HEAD": event.Read, "OPTIONS": event.Read, "PROPFIND": event.Read, "CONNECT": event.Read,
		"POST": event.Write, "PUT": event.Write, "PATCH": event.Write, "DELETE": event.Write, "VERSION-CONTROL": event.Write,
	} {
		if op, ok := MethodOp([]byte(method)); !ok || op != want || op != event.OpOf(method) {
			t.Errorf("%s: got %s, %v, expected %s", method, op, ok, want)
		}
	}
	for _, word := range []string{"", "READ", "get", "PEEK", "GET "} {
		if op, ok := MethodOp([]byte(word)); ok || op != event.Read {
			t.Errorf("%q: got %s, %v, expected none", word, op, ok)
		}
	}
}

func TestValuesBeyondTheLimits(t *testing.T) {
	const line = `192.0.2.1 - - [%s +0000] "GET /a HTTP/1.1" 200 %s "-" "-"`
	for _, test := range []struct{ time, bytes, want string }{
		{"01/Jan/2020:00:00:00", "137438953472", ""},
		{"01/Jan/2020:00:00:00", "137438953473", `column 66, field bytes: got "137438953473", expected at most 137438953472 bytes`},
		{"01/Jan/2020:00:00:00", "9223372036854775807", `column 66, field bytes: got "9223372036854775807", expected at most 137438953472 bytes`},
		{"01/Jan/1899:00:00:00", "1", `column 16, field time: got "01/Jan/1899:00:00:00 +0000", expected a time between 1900 and 2200`},
		{"01/Jan/2201:00:00:00", "1", `column 16, field time: got "01/Jan/2201:00:00:00 +0000", expected a time between 1900 and 2200`},
	} {
		var r event.Request
		err := newTestParser(t, named(t, "combined"), 1).Parse(fmt.Appendf(nil, line, test.time, test.bytes), &r)
		if got := fmt.Sprint(err); test.want == "" && err != nil || test.want != "" && got != test.want {
			t.Errorf("%s, %s: got %v, expected %s", test.time, test.bytes, err, test.want)
		}
	}
}
