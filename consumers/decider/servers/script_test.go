package servers_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"penstock/consumers/decider"
	"penstock/consumers/decider/servers"
	"penstock/infra/golden"
	"penstock/schemas/control"
	"penstock/schemas/window"
)

// script runs the commands of one golden script (package golden).
//
//	config JSON                               fields of the configuration
//	requests SITE SERVER CLASS NAME=N …       a row of each window from here on, by columns of
//	                                          the rollup service; - for no name
//	gauge SITE SERVER QUEUED IN_SERVICE MS    a dispatcher's gauge in each window from here on
//	quiet                                     no rows from here on
//	decide [×N] [MODE] [freeze] [incomplete] [rollback=WINDOW]
//	outcome SITE EPOCH STATUS [TARGET] [failed=SERVER,…]   TARGET is serverswitch or another
//	explain NAME
//	restart                                   by a snapshot
type script struct {
	t      *testing.T
	config servers.Config
	policy *servers.Policy
	rows   rows
	window int
}

func TestScripts(t *testing.T) {
	golden.Scripts(t, "testdata/*.txt", func(t *testing.T) golden.Step {
		return golden.EachLine((&script{t: t, rows: rows{}}).do)
	})
}

func (s *script) number(text string) int64 {
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return v
}

func (s *script) do(line string) string {
	f := strings.Fields(line)
	for i := range f {
		if f[i] == "-" {
			f[i] = ""
		}
	}
	switch f[0] {
	case "config":
		sites := s.config.Sites
		s.config.Sites = nil // the policy of before has these
		if err := json.Unmarshal([]byte(strings.TrimPrefix(line, "config ")), &s.config); err != nil {
			s.t.Fatal(err)
		}
		if s.config.Sites == nil {
			s.config.Sites = sites
		}
		before := s.policy
		var err error
		if s.policy, err = servers.New(s.config); err != nil {
			s.t.Fatal(err)
		}
		if before != nil {
			moved(s.t, before, s.policy)
		}
	case "requests":
		values := map[string]int64{}
		for _, x := range f[4:] {
			name, v, _ := strings.Cut(x, "=")
			values[name] = s.number(v)
		}
		s.rows.set(f[1], f[2], f[3], values)
	case "gauge":
		s.rows.set(f[1], f[2], "", map[string]int64{
			"gauges": 1, "queued": s.number(f[3]), "queued_most": s.number(f[3]), "in_service": s.number(f[4]), "in_service_most": s.number(f[4]),
			"potential_us": 1000 * s.number(f[5]), "potential_most": 1000 * s.number(f[5]),
		})
	case "quiet":
		s.rows = rows{}
	case "decide":
		return s.decide(f[1:])
	case "outcome":
		o := &control.Outcome{Version: 1, Kind: control.Servers, Scope: f[1], Epoch: uint64(s.number(f[2])), Status: control.Status(f[3])}
		for _, x := range f[4:] {
			if names, ok := strings.CutPrefix(x, "failed="); ok {
				o.Failed = strings.Split(names, ",")
			} else {
				o.Target = x
			}
		}
		s.policy.Apply(o)
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

func (s *script) decide(options []string) string {
	op, times := act(), 1
	incomplete := false
	for _, o := range options {
		name, value, _ := strings.Cut(o, "=")
		switch {
		case name == "freeze":
			op.Frozen = true
		case name == "incomplete":
			incomplete = true
		case name == "rollback":
			at := epoch.Add(time.Duration(s.number(value)) * s.policy.Width())
			op.Rollback, op.Frozen = &at, true
		case strings.HasPrefix(name, "×"):
			times = int(s.number(strings.TrimPrefix(name, "×")))
		default:
			op.Mode = control.Mode(name)
		}
	}
	var out strings.Builder
	last := ""
	for range times {
		w := windowOf(s.window, s.policy.Width())
		in := decider.Input{Window: w, Operator: op, Tables: s.rows.tables(w)}
		if incomplete {
			in.Incomplete = []window.Interval{{From: w.Start.UnixMicro(), To: w.End.UnixMicro(), Reason: "lost"}}
		}
		s.window++
		o := s.policy.Decide(in)
		for i := range o.Commands {
			check(s.t, s.policy, &o.Commands[i])
		}
		// A window that says what the one before it said is not shown again.
		text := printed(s.window, o)
		if _, rest, _ := strings.Cut(text, "\n"); rest != last {
			out.WriteString(text)
			last = rest
		}
	}
	return out.String()
}
