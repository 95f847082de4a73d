package join

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"penstock/producers/otlp/span"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// text is a call as tests compare it.
func text(c *Call) string {
	ns := func(v int64) string {
		if v == span.Unknown {
			return "?"
		}
		return fmt.Sprint(v)
	}
	var flags []string
	for _, f := range [...]struct {
		is   bool
		name string
	}{
		{c.Entry, "entry"},
		{c.OneSided, "one-sided"},
		{c.Skewed, "skewed"},
		{c.Negative, "negative"},
		{c.Fanout, "fanout"},
		{c.Follows, "follows"},
		{c.NoDuration, "no-duration"},
	} {
		if f.is {
			flags = append(flags, f.name)
		}
	}
	return strings.TrimSpace(fmt.Sprintf("%x %s→%s at %s client=%s server=%s own=%s network=%s %s",
		c.Trace[15], party(c.From), party(c.To), ns(c.Time), ns(c.Client), ns(c.Server), ns(c.Own), ns(c.Network()), strings.Join(flags, " ")))
}

func party(p Party) string {
	s := p.Component
	if s == "" {
		s = "·"
	}
	if p.Server != "" {
		s += "/" + p.Server
	}
	if p.Site != "" {
		s += "@" + p.Site
	}
	return s
}

// run joins spans in the order given, each a moment after the one before.
func run(o Options, spans []span.Span) (calls []string, st Stats) {
	j := New(o, func(c *Call) { calls = append(calls, text(c)) })
	for i := range spans {
		j.Add(int64(i+1), &spans[i])
	}
	j.Flush()
	slices.Sort(calls)
	return calls, j.Stats()
}

// sp makes a span: "trace.id<parent kind component/server@site start+duration",
// where parent, kind, server, site and times may be missing. Options follow:
// shared, follows, callee=, caller=.
func sp(t testing.TB, line string) span.Span {
	t.Helper()
	var s span.Span
	s.Reset()
	for i, f := range strings.Fields(line) {
		key, val, _ := strings.Cut(f, "=")
		switch {
		case i == 0:
			ids, parent, _ := strings.Cut(f, "<")
			tr, id, _ := strings.Cut(ids, ".")
			var err error
			if s.Trace, err = span.ParseTrace(tr); err != nil {
				t.Fatal(err)
			}
			if s.ID, err = span.ParseID(id); err != nil {
				t.Fatal(err)
			}
			if s.Parent, err = span.ParseID(parent); err != nil {
				t.Fatal(err)
			}
		case f == "shared":
			s.Shared = true
		case f == "follows":
			s.Follows = true
		case key == "callee":
			s.Callee = val
		case key == "caller":
			s.Caller = val
		case key == "start":
			fmt.Sscan(val, &s.Start)
		case key == "dur":
			fmt.Sscan(val, &s.Duration)
		case strings.Contains(f, "+"):
			if _, err := fmt.Sscanf(f, "%d+%d", &s.Start, &s.Duration); err != nil {
				t.Fatalf("%q: %v", f, err)
			}
		case span.ParseKind(f) != span.Unspecified:
			s.Kind = span.ParseKind(f)
		default:
			f, s.Site, _ = strings.Cut(f, "@")
			s.Component, s.Server, _ = strings.Cut(f, "/")
		}
	}
	return s
}
