package accesslog

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// unwrapAll writes out what an unwrapper makes of lines.
func unwrapAll(u *Unwrapper, lines ...string) string {
	var out []string
	for _, line := range lines {
		inner, whole, err := u.Unwrap([]byte(line))
		switch {
		case errors.Is(err, ErrTooLong):
			out = append(out, "too long")
		case err != nil:
			out = append(out, "bad")
		case !whole:
			out = append(out, "part")
		default:
			out = append(out, string(inner))
		}
	}
	if u.Pending() {
		out = append(out, "pending")
	}
	for _, rest := range u.Rest() {
		out = append(out, "rest "+string(rest))
	}
	return strings.Join(out, "|")
}

func TestUnwrap(t *testing.T) {
	const at = "2026-01-24T01:37:00.000000000+00:00 "
	const utc = "2026-01-24T01:37:00.123Z "
	long := strings.Repeat("x", MaxLine/2)
	for _, c := range []struct {
		about    string
		wrapping Wrapping
		lines    []string
		want     string
	}{
		{"nothing", WrapNone, []string{"a b", ""}, "a b|"},
		{"not told", WrapUnknown, []string{"a b"}, "a b"},
		{"CRI", WrapCRI, []string{at + "stdout F a b", utc + "stderr F c", at + "stdout F ", at + "stdout F"}, "a b|c||"},
		{"CRI in parts", WrapCRI, []string{at + "stdout P a ", at + "stdout P b", at + "stdout F c", at + "stdout F d"}, "part|part|a bc|d"},
		{"parts of two streams between each other", WrapCRI, []string{at + "stdout P a", at + "stderr P x", at + "stdout F b", at + "stderr F y"}, "part|part|ab|xy"},
		{"parts with tags to come", WrapCRI, []string{at + "stdout P:x a", at + "stdout F:y b"}, "part|ab"},
		{"a part whose rest never came", WrapCRI, []string{at + "stdout P a", at + "stderr F b"}, "part|b|pending|rest a"},
		{"what is no CRI line", WrapCRI, []string{"stdout F a", at + "stdin F a", at + "stdout X a", "now stdout F a", ""}, "bad|bad|bad|bad|bad"},
		{"parts too long", WrapCRI, []string{at + "stdout P " + long, at + "stdout P " + long, at + "stdout P x", at + "stdout F x", at + "stdout F y"}, "part|part|part|too long|y"},
		{
			"Docker", WrapDocker,
			[]string{
				`{"log":"a \"b\"\n","stream":"stdout","time":"2026-01-24T01:37:00Z"}`, `{"log":"c\r\n","stream":"stderr","attrs":{"x":"y"},"time":"2026-01-24T01:37:00Z"}`,
				`{"log":"a","stream":"stdout","time":""}`, `{"log":"b\n","stream":"stdout","time":""}`, `{"log":"","stream":"stdout","time":""}`,
			},
			`a "b"|c|part|ab|part|pending|rest `,
		},
		{"what is no line of Docker", WrapDocker, []string{"x", `{"log":1,"stream":"stdout","time":""}`, `{"log":"a","stream":"x","time":""}`, `{"log":"a","stream":"stdout"}`, `{"log"`}, "bad|bad|bad|bad|bad"},
		{
			"syslog", WrapSyslog,
			[]string{
				"<134>Nov 30 09:00:00 host haproxy[12]: a b", "Nov  3 09:00:00 host haproxy: c", "Nov  3 2026 09:00:00 host haproxy: d", "<134>Nov 30 09:00:00 haproxy[12]: e",
				"2026-11-30T09:00:00.123456+00:00 host nginx: f", "<190>1 2026-11-30T09:00:00Z host nginx 7 - - g", `<190>1 - - nginx - ID [a b="c]\"" d="e"][f] ` + "\xef\xbb\xbfh", "<190>1 2026-11-30T09:00:00Z host nginx 7 - -",
			},
			"a b|c|d|e|f|g|h|",
		},
		{
			"what is no syslog", WrapSyslog,
			[]string{"x", "<1>", "<x>Nov 30 09:00:00 h p: a", "Nov 30 09:00:00 h p a", "Nev 30 09:00:00 h p: a", "<1>1 then h p - - - a", "<1>1 - h p - - [a", "Nov 30 09:00:00 h : a", "2026-11-30T09:00:00 a b"},
			"bad|bad|bad|bad|bad|bad|bad|bad|bad",
		},
	} {
		if got := unwrapAll(NewUnwrapper(c.wrapping), c.lines...); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.about, clipped(got), c.want)
		}
	}
}

// TestWrappingsAreRecognised: the format behind each is told, too.
func TestWrappingsAreRecognised(t *testing.T) {
	const line = `192.0.2.1 - - [01/Jan/2020:00:00:00 +0000] "GET /a HTTP/1.1" 200 1 "-" "x"`
	quoted := strings.ReplaceAll(line, `"`, `\"`)
	for want, form := range map[Wrapping]string{
		WrapNone:   "%s",
		WrapCRI:    "2026-01-24T01:37:00.000000000+00:00 stdout F %s",
		WrapDocker: `{"log":"%s\n","stream":"stdout","time":"2026-01-24T01:37:00Z"}`,
		WrapSyslog: "<134>Nov 30 09:00:00 host nginx[12]: %s",
	} {
		inner := line
		if want == WrapDocker {
			inner = quoted
		}
		log := strings.Repeat(fmt.Sprintf(form, inner)+"\n", 3)
		got := parseLog(t, []byte(log), ChoiceOptions{Sample: []byte(log)})
		if got.choice.Wrapping != want || got.choice.Format != "combined" || got.choice.Matched != 3 || len(got.rows) != 3 {
			t.Errorf("%s: %s, %d rows", want, got.choice, len(got.rows))
		}
		if w := DetectWrapping([]byte(log)); w != want {
			t.Errorf("%s was taken for %s", want, w)
		}
		if says := got.choice.String(); want != WrapNone && !strings.HasSuffix(says, ", behind "+want.String()) {
			t.Errorf("%s", says)
		}
	}
}

// However a line is cut into parts, and whatever the other stream says in
// between, it is the same line.
func TestPartsAreJoined(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		streams := [2][]byte{}
		u := NewUnwrapper(WrapCRI)
		names := [...]string{"stdout", "stderr"}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			i := rapid.IntRange(0, 1).Draw(t, "stream")
			part := rapid.StringMatching(`[a-c ]{0,5}`).Draw(t, "part")
			streams[i] = append(streams[i], part...)
			last := rapid.Bool().Draw(t, "last")
			tag := "P"
			if last {
				tag = "F"
			}
			inner, whole, err := u.Unwrap(fmt.Appendf(nil, "2026-01-24T01:37:00.5Z %s %s %s", names[i], tag, part))
			if err != nil || whole != last {
				t.Fatalf("whole %v, %v", whole, err)
			}
			if last {
				if !bytes.Equal(inner, streams[i]) {
					t.Fatalf("got %q, expected %q", inner, streams[i])
				}
				streams[i] = nil
			}
		}
	})
}
