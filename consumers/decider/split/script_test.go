package split_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"penstock/consumers/decider"
	"penstock/consumers/decider/split"
	"penstock/infra/golden"
	"penstock/schemas/control"
	"penstock/schemas/window"
)

// script runs the commands of one golden script (package golden).
//
//	site NAME [LON]
//	config JSON                   fields of the configuration
//	call FROM@SITE TO@SITE N SERVICE NETWORK [errors=N] [unsampled]   ms; FROM - is nobody
//	same                          the calls of the window before
//	decide [act|advise|observe] [freeze] [incomplete] [evacuate=SITE] [rollback=N] [×N]
//	outcome SCOPE EPOCH STATUS
//	explain COMPONENT
//	restart
type script struct {
	t      *testing.T
	config split.Config
	policy *split.Policy
	calls  []call
	before []call
	window int
}

func TestGoldenScripts(t *testing.T) {
	golden.Scripts(t, "testdata/*.txt", func(t *testing.T) golden.Step {
		return golden.EachLine((&script{t: t}).do)
	})
}

func (s *script) number(text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return v
}

func (s *script) do(line string) string {
	f := strings.Fields(line)
	switch f[0] {
	case "site":
		x := split.Site{Name: f[1]}
		if len(f) > 2 {
			x.Lon = s.number(f[2])
		}
		s.config.Sites = append(s.config.Sites, x)
	case "config":
		if err := json.Unmarshal([]byte(strings.TrimPrefix(line, "config ")), &s.config); err != nil {
			s.t.Fatal(err)
		}
	case "call":
		s.call(f[1:])
	case "same":
		s.calls = append(s.calls, s.before...)
	case "decide":
		return s.decide(f[1:])
	case "outcome":
		s.policy.Apply(&control.Outcome{Version: 1, Kind: control.Split, Scope: f[1], Epoch: uint64(s.number(f[2])), Status: control.Status(f[3])})
	case "explain":
		e, ok := s.policy.Explain(f[1])
		if !ok {
			return "unknown\n"
		}
		b, err := json.MarshalIndent(e, "", " ")
		if err != nil {
			s.t.Fatal(err)
		}
		return string(b) + "\n"
	case "restart":
		s.policy = restarted(s.t, s.policy)
	default:
		s.t.Fatalf("command %q", f[0])
	}
	return ""
}

func restarted(t testing.TB, p *split.Policy) *split.Policy {
	t.Helper()
	var b bytes.Buffer
	if err := p.Snapshot(&b); err != nil {
		t.Fatal(err)
	}
	again, err := split.Parse(p.Config())
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Restore(bytes.NewReader(b.Bytes())); err != nil {
		t.Fatal(err)
	}
	if x, y := p.Digest(), again.Digest(); x != y {
		t.Fatalf("digest %s became %s", x, y)
	}
	return again
}

func (s *script) call(f []string) {
	end := func(text string) (string, string) {
		c, site, _ := strings.Cut(text, "@")
		if c == "-" {
			c = ""
		}
		return c, site
	}
	var c call
	c.from, c.fromSite = end(f[0])
	c.to, c.toSite = end(f[1])
	c.requests, c.service, c.network = int64(s.number(f[2])), 1000*s.number(f[3]), 1000*s.number(f[4])
	for _, o := range f[5:] {
		if n, ok := strings.CutPrefix(o, "errors="); ok {
			c.errors = int64(s.number(n))
		} else {
			c.unsampled = true
		}
	}
	s.calls = append(s.calls, c)
}

func (s *script) decide(options []string) string {
	if s.policy == nil {
		p, err := split.New(s.config)
		if err != nil {
			s.t.Fatal(err)
		}
		s.policy = p
	}
	op, times := act(), 1
	incomplete := false
	for _, o := range options {
		key, value, _ := strings.Cut(o, "=")
		switch {
		case key == "freeze":
			op.Frozen = true
		case key == "incomplete":
			incomplete = true
		case key == "evacuate":
			op.Evacuate = append(op.Evacuate, value)
		case key == "rollback":
			at := epoch.Add(time.Duration(s.number(value)) * s.policy.Width())
			op.Rollback = &at
		case strings.HasPrefix(key, "×"):
			times = int(s.number(strings.TrimPrefix(key, "×")))
		default:
			op.Mode = control.Mode(key)
		}
	}
	var out strings.Builder
	for range times {
		in := decider.Input{Window: windowOf(s.window, s.policy.Width()), Operator: op, Tables: tableOf(s.window, s.policy.Width(), s.calls)}
		if incomplete {
			in.Incomplete = []window.Interval{{From: in.Window.Start.UnixMicro(), To: in.Window.End.UnixMicro(), Reason: "lost"}}
		}
		s.window++
		o := s.policy.Decide(in)
		for _, c := range o.Commands {
			check(s.t, c)
		}
		out.WriteString(printed(s.window, o))
	}
	s.before, s.calls = s.calls, nil
	return out.String()
}

// printed is what a window's output says, one line each.
func printed(n int, o decider.Output) string {
	var b strings.Builder
	fmt.Fprintf(&b, "window %d\n", n)
	for _, r := range o.Reasons {
		fmt.Fprintf(&b, "  %s", r.Code)
		if r.Scope != "" {
			fmt.Fprintf(&b, " %s", r.Scope)
		}
		if r.Count > 1 {
			fmt.Fprintf(&b, " ×%d", r.Count)
		}
		fmt.Fprintf(&b, ": %s%s\n", r.Text, evidence(r.Evidence))
	}
	for _, c := range o.Commands {
		fmt.Fprintf(&b, "  command %s: %s%s\n", c.Scope, c.Reason.Code, evidence(c.Reason.Evidence))
		for _, r := range c.Split.Table {
			fmt.Fprintf(&b, "    %s → %s:", r.FromSite, r.To)
			for _, x := range r.Ratios {
				fmt.Fprintf(&b, " %s %.4g", x.Site, x.Share)
			}
			if r.WritesAt != "" {
				fmt.Fprintf(&b, " writes at %s", r.WritesAt)
			}
			b.WriteString("\n")
		}
		for _, p := range c.Split.Probes {
			fmt.Fprintf(&b, "    probe %s → %s at %s: %.4g\n", p.FromSite, p.To, p.Site, p.Share)
		}
	}
	if o.Broken != nil {
		fmt.Fprintf(&b, "  broken %s: %s\n", o.Broken.Scope, o.Broken.Text)
	}
	return b.String()
}

func evidence(e map[string]any) string {
	if len(e) == 0 {
		return ""
	}
	keys := make([]string, 0, len(e))
	for k := range e {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	out := " ("
	for i, k := range keys {
		if i > 0 {
			out += " "
		}
		out += fmt.Sprintf("%s=%v", k, e[k])
	}
	return out + ")"
}
