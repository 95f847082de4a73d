package pool

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"penstock/infra/golden"
)

// script runs a golden script of a pool:
//
//	pool POLICY [limit=S] [penalty=UNITS] [queue=N] [ramp=D] [elapsed] [free-first] [near=TIMES]
//	servers NAME:M[:WEIGHT] …
//	teach NAME SERVICE [WAIT-PER-UNIT]   what a server takes for any request, and a wait
//	arrive ID [UNITS of 100 KB] [dynamic] [dear] [impact=N] [avoid=NAME] [entered=D]
//	done ID [D], cancel ID, usable NAME …, after D, show
type script struct {
	t    *testing.T
	pool *Pool
	now  int64
}

func (s *script) run(text string) string {
	f := strings.Fields(text)
	switch f[0] {
	case "pool":
		return s.make(f[1:])
	case "servers":
		return s.servers(f[1:])
	case "usable":
		return said(s.pool.SetUsable(s.now, f[1:], nil, nil))
	case "teach":
		return s.teach(f[1:])
	case "arrive":
		return s.arrive(f[1:])
	case "done":
		o := Outcome{OK: true}
		if len(f) > 2 {
			o.Service = s.duration(f[2]).Seconds()
		}
		return said(nil, s.pool.Done(s.now, uint64(s.number(f[1])), o, nil))
	case "cancel":
		return said(nil, s.pool.Cancel(s.now, uint64(s.number(f[1])), nil))
	case "after":
		s.now += int64(s.duration(f[1]))
		return ""
	case "show":
		return s.show()
	}
	s.t.Fatalf("what is %q?", text)
	return ""
}

func (s *script) number(text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return v
}

func (s *script) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

func (s *script) make(f []string) string {
	class := Class{Limit: 10, Penalty: 1}
	o := Options{Policy: Policy(f[0]), Ramp: -1}
	o.Perceptron.Start = 1
	for _, a := range f[1:] {
		key, value, _ := strings.Cut(a, "=")
		switch key {
		case "limit":
			class.Limit = s.number(value)
		case "penalty":
			class.Penalty = s.number(value)
		case "queue":
			o.Queue = int(s.number(value))
		case "elapsed":
			o.Elapsed = true
		case "free-first":
			o.FreeFirst = true
		case "near":
			o.Near = s.number(value)
		case "ramp":
			o.Ramp = s.duration(value)
		}
	}
	o.Classes = []Class{class, {Limit: class.Limit, Penalty: 10 * class.Penalty}}
	var err error
	if s.pool, err = New(o); err != nil {
		s.t.Fatal(err)
	}
	s.now = 1000 * second
	return ""
}

func (s *script) servers(f []string) string {
	list := make([]Server, len(f))
	for i, a := range f {
		parts := strings.Split(a, ":")
		list[i] = Server{Name: parts[0], M: int(s.number(parts[1]))}
		if len(parts) > 2 {
			list[i].Weight = s.number(parts[2])
		}
	}
	moved, starts, err := s.pool.SetServers(s.now, list, nil, nil)
	if err != nil {
		return err.Error() + "\n"
	}
	return said(moved, starts)
}

// teach a server's perceptrons until they have it.
func (s *script) teach(f []string) string {
	m := s.pool.known[f[0]].model
	service := s.duration(f[1]).Seconds()
	for i := range 1000 {
		size := float64(i%10*100_000 + 100_000)
		m.LearnService(size, i%2 == 1, service)
		if len(f) > 2 {
			m.LearnWait(size, float64(i%7*100_000), s.duration(f[2]).Seconds()*(size+float64(i%7*100_000))/100_000)
		}
	}
	return ""
}

func (s *script) arrive(f []string) string {
	r := Request{ID: uint64(s.number(f[0])), Size: 100_000}
	for _, a := range f[1:] {
		key, value, _ := strings.Cut(a, "=")
		switch key {
		case "dynamic":
			r.Dynamic = true
		case "dear":
			r.Class = 1
		case "impact":
			r.Impact = uint8(s.number(value))
		case "avoid":
			r.Avoid = append(r.Avoid, value)
		case "entered":
			r.Entered = s.now - int64(s.duration(value))
		default:
			r.Size = 100_000 * s.number(a)
		}
	}
	placed, starts, err := s.pool.Arrive(s.now, r, nil)
	if err != nil {
		return err.Error() + "\n"
	}
	if len(starts) > 0 {
		return said(nil, starts)
	}
	out := fmt.Sprintf("%d waits at %s, %.2f s for %.2f s", placed.ID, placed.Server, placed.Wait, placed.Service)
	if placed.Increase > 1e-6 {
		out += fmt.Sprintf(", costs %.2f", placed.Increase)
	}
	return out + "\n"
}

func said(moved []Placed, starts []Start) string {
	var out strings.Builder
	for _, m := range moved {
		fmt.Fprintf(&out, "%d goes to %s\n", m.ID, cmp.Or(m.Server, "nobody"))
	}
	for _, s := range starts {
		fmt.Fprintf(&out, "%d starts at %s", s.ID, s.Server)
		if s.Waited > 0 {
			fmt.Fprintf(&out, " after %v", time.Duration(s.Waited))
		}
		out.WriteString("\n")
	}
	return out.String()
}

func (s *script) show() string {
	var out strings.Builder
	for _, g := range gauges(s.pool, s.now) {
		fmt.Fprintf(&out, "%s: %d of %d in service, %d waiting, potential %.2f, late %.2f, slowdown %.1f", g.Server, g.InService, g.M, g.Queued, g.Potential, g.Late, g.Slowdown)
		for _, is := range []struct {
			so   bool
			name string
		}{{!g.Usable && !g.Leaving, "not usable"}, {g.Leaving, "leaving"}, {g.Ramping, "ramping"}} {
			if is.so {
				out.WriteString(", " + is.name)
			}
		}
		out.WriteString("\n")
	}
	return out.String()
}

func TestScripts(t *testing.T) {
	t.Parallel()
	golden.Scripts(t, "testdata/*.txt", func(t *testing.T) golden.Step {
		s := &script{t: t}
		return golden.EachLine(s.run)
	})
}
