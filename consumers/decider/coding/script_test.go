package coding_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"penstock/consumers/decider"
	"penstock/consumers/decider/coding"
	"penstock/consumers/decider/coding/fit"
	"penstock/consumers/decider/coding/threshold"
	"penstock/infra/golden"
	"penstock/schemas/control"
	"penstock/schemas/window"
)

// script runs the commands of one golden script (package golden).
//
//	config JSON                          fields of the configuration
//	truth STORE OP DELTA /MB PSI /MB     what a store's tasks take, from here on
//	traffic STORE,… OP N,K MB COUNT [failed=N]   requests of each window, from here on
//	quiet                                no traffic from here on
//	bad STORE OP N K BITS OUTCOME        a row of one task in the next window
//	queue CODER BACKLOG …                its queue in the next window, a gauge each
//	decide [act|advise|observe] [freeze] [incomplete] [rollback=N] [×N]
//	outcome STORE EPOCH STATUS
//	explain STORE
//	restart
type script struct {
	t       *testing.T
	config  coding.Config
	policy  *coding.Policy
	world   *world
	traffic []traffic
	bad     [][]string
	queues  map[string][]int64
	window  int
}

func TestGoldenScripts(t *testing.T) {
	golden.Scripts(t, "testdata/*.txt", func(t *testing.T) golden.Step {
		return golden.EachLine((&script{t: t, world: newWorld(1)}).do)
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
	case "config":
		coders := s.config.Coders
		s.config.Coders = nil // the policy of before has these
		if err := json.Unmarshal([]byte(strings.TrimPrefix(line, "config ")), &s.config); err != nil {
			s.t.Fatal(err)
		}
		if s.config.Coders == nil {
			s.config.Coders = coders
		}
		s.policy = s.again(s.policy)
	case "truth":
		s.world.models[[2]string{f[1], f[2]}] = threshold.Model{Delta: s.number(f[3]), DeltaPerMB: s.number(f[4]), Psi: s.number(f[5]), PsiPerMB: s.number(f[6])}
	case "traffic":
		n, k, _ := strings.Cut(f[3], ",")
		x := traffic{store: f[1], op: f[2], n: int(s.number(n)), k: int(s.number(k)), mb: s.number(f[4]), count: int(s.number(f[5]))}
		if len(f) > 6 {
			x.failed = int(s.number(strings.TrimPrefix(f[6], "failed=")))
		}
		s.traffic = append(s.traffic, x)
	case "quiet":
		s.traffic = nil
	case "bad":
		s.bad = append(s.bad, f[1:])
	case "queue":
		if s.queues == nil {
			s.queues = map[string][]int64{}
		}
		for _, q := range f[2:] {
			s.queues[f[1]] = append(s.queues[f[1]], int64(s.number(q)))
		}
	case "decide":
		return s.decide(f[1:])
	case "outcome":
		s.policy.Apply(&control.Outcome{Version: 1, Kind: control.Coding, Scope: f[1], Epoch: uint64(s.number(f[2])), Status: control.Status(f[3])})
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

// again makes the policy under the script's configuration, with the state that it had.
func (s *script) again(before *coding.Policy) *coding.Policy {
	p, err := coding.New(s.config)
	if err != nil {
		s.t.Fatal(err)
	}
	if before != nil {
		moved(s.t, before, p)
	}
	return p
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
	for range times {
		for _, x := range s.traffic {
			s.world.serve(x)
		}
		in := decider.Input{Window: windowOf(s.window, s.policy.Width()), Operator: op, Tables: s.world.table(s.window, s.policy.Width())}
		if len(s.bad)+len(s.queues) > 0 {
			if in.Tables == nil {
				in.Tables = map[string]*window.Table{window.Storage.Name: window.NewTable(window.Storage)}
			}
			for coder, q := range s.queues {
				for _, v := range q {
					in.Tables[window.Storage.Name].Append(in.Window.Start.UnixMicro(), []string{coder, "", "", "", "", ""},
						[]int64{0, 0, window.NullInt, 0, window.NullInt, 0, 1, v, v}, window.Bins{})
				}
			}
			s.queues = nil
			for _, keys := range s.bad {
				for i := range keys {
					keys[i] = strings.TrimPrefix(keys[i], "-")
				}
				in.Tables[window.Storage.Name].Append(in.Window.Start.UnixMicro(), keys, []int64{1, 1, 1, 1, 1, 0, 0, 0, 0}, window.Bins{Index: []uint16{1}, Counts: []int64{1}})
			}
			in.Tables[window.Storage.Name].Sort()
			s.bad = nil
		}
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
		fmt.Fprintf(&b, "  command %s: %s %s\n", c.Scope, c.Reason.Code, c.Coding.Policy)
		for i, x := range []control.CodingCodes{c.Coding.Read, c.Coding.Write} {
			fmt.Fprintf(&b, "    %s: k %.3g n %.3g r_max %.3g", []string{"read", "write"}[i], x.K, x.N, x.RMax)
			if x.HedgeUS > 0 {
				fmt.Fprintf(&b, " hedge after %d µs", x.HedgeUS)
			}
			b.WriteString("\n")
		}
	}
	if o.Broken != nil {
		fmt.Fprintf(&b, "  broken %s: %s\n", o.Broken.Scope, o.Broken.Text)
	}
	return b.String()
}

func evidence(e map[string]any) string {
	keys := make([]string, 0, len(e))
	for k := range e {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	var out []string
	for _, k := range keys {
		switch v := e[k].(type) {
		case float64:
			out = append(out, fmt.Sprintf("%s=%.4g", k, v))
		case [4]fit.Interval:
			for _, x := range v {
				out = append(out, fmt.Sprintf("%.3g..%.3g", x.Low, x.High))
			}
		default:
			out = append(out, fmt.Sprintf("%s=%v", k, v))
		}
	}
	if len(out) == 0 {
		return ""
	}
	return " (" + strings.Join(out, " ") + ")"
}
