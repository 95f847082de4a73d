package servers_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"penstock/consumers/decider"
	"penstock/consumers/decider/servers"
	"penstock/schemas/control"
	"penstock/schemas/window"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func windowOf(n int, width time.Duration) control.Window {
	start := epoch.Add(time.Duration(n) * width)
	return control.Window{Start: start, End: start.Add(width)}
}

func act() control.Operator { return control.Operator{Mode: control.Act} }

// key is that of a row of service.
type key struct{ site, server, class string }

// rows are those of a window: values by the names of columns.
type rows map[key]map[string]int64

func (r rows) add(site, server, class string, values map[string]int64) {
	k := key{site, server, class}
	if r[k] == nil {
		r[k] = map[string]int64{}
	}
	for name, v := range values {
		r[k][name] += v
	}
}

// set puts values in place of those of the names.
func (r rows) set(site, server, class string, values map[string]int64) {
	r.add(site, server, class, nil)
	maps.Copy(r[key{site, server, class}], values)
}

// tables are the rows as a window has them.
func (r rows) tables(w control.Window) map[string]*window.Table {
	if len(r) == 0 {
		return nil
	}
	t := window.NewTable(window.Service)
	for k, values := range r {
		ints := make([]int64, len(window.Service.Values))
		for i, v := range window.Service.Values {
			ints[i] = values[v.Name]
		}
		t.Append(w.Start.UnixMicro(), []string{k.site, k.server, k.class}, ints)
	}
	t.Sort()
	return map[string]*window.Table{window.Service.Name: t}
}

func step(t testing.TB, p *servers.Policy, n int, r rows, op control.Operator) decider.Output {
	t.Helper()
	w := windowOf(n, p.Width())
	o := p.Decide(decider.Input{Window: w, Operator: op, Tables: r.tables(w)})
	for i := range o.Commands {
		check(t, p, &o.Commands[i])
	}
	return o
}

// check holds a command to what a decoder wants of it.
func check(t testing.TB, p *servers.Policy, c *control.Command) {
	t.Helper()
	whole := *c
	whole.Version, whole.Kind, whole.Epoch, whole.Mode, whole.TTL = 1, control.Servers, 1, control.Act, p.TTL().String()
	whole.Window = windowOf(0, time.Second)
	body, err := control.Encode(whole)
	if err != nil {
		t.Fatal(err)
	}
	m, err := control.DecodeCommandOf(control.Servers, body)
	if err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	sum := 0.0
	for _, w := range m.Servers.ZoneWeights {
		sum += w
	}
	if sum < 1-1e-9 || sum > 1+1e-9 {
		t.Errorf("weights %v add up to %v", m.Servers.ZoneWeights, sum)
	}
}

func restarted(t testing.TB, p *servers.Policy) *servers.Policy {
	t.Helper()
	again, err := servers.Parse(p.Config())
	if err != nil {
		t.Fatal(err)
	}
	moved(t, p, again)
	if p.Digest() != again.Digest() {
		t.Error("another digest after a restart")
	}
	return again
}

// moved takes the state of one policy over to another.
func moved(t testing.TB, from, to *servers.Policy) {
	t.Helper()
	var b bytes.Buffer
	if err := from.Snapshot(&b); err != nil {
		t.Fatal(err)
	}
	if err := to.Restore(&b); err != nil {
		t.Fatal(err)
	}
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
		fmt.Fprintf(&b, "  command %s: %s on %v off %v weights", c.Scope, c.Reason.Code, c.Servers.On, c.Servers.Off)
		for _, z := range slices.Sorted(maps.Keys(c.Servers.ZoneWeights)) {
			fmt.Fprintf(&b, " %s=%.3f", z, c.Servers.ZoneWeights[z])
		}
		b.WriteString("\n")
	}
	if o.Broken != nil {
		fmt.Fprintf(&b, "  broken %s: %s\n", o.Broken.Scope, o.Broken.Text)
	}
	return b.String()
}

func evidence(e map[string]any) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(e)) {
		if v, ok := e[k].(float64); ok {
			out = append(out, fmt.Sprintf("%s=%.4g", k, v))
			continue
		}
		out = append(out, fmt.Sprintf("%s=%v", k, e[k]))
	}
	if len(out) == 0 {
		return ""
	}
	return " (" + strings.Join(out, " ") + ")"
}
