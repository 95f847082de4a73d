package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"penstock/pipeline/report"
	"penstock/pipeline/topology"
	"penstock/schemas/control"
)

// printExplainedServers writes an explanation of servers for a person.
func printExplainedServers(w io.Writer, e *topology.ExplainedServers) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: policy %s, %d to %d servers, as of the window %s to %s", e.Site, e.Policy, e.Least, e.Most, report.Instant(e.Window.Start), report.ClockTime(e.Window.End))
	if e.InForce == nil {
		b.WriteString("; no table: all servers are on\n")
	} else {
		printTable(&b, control.Servers, e.InForce)
	}
	if e.Refused {
		b.WriteString("  the last table was refused: it is not sent again until it changes\n")
	}
	if e.Failed > 0 {
		fmt.Fprintf(&b, "  the last %d tables failed or were refused\n", e.Failed)
	}
	fmt.Fprintf(&b, "\nnow: %s: %s\n", e.Code, e.Text)
	printFigures(&b, e.By)
	printServerStates(&b, e)
	printSwitch(&b, e.Switch)
	if len(e.Reasons) > 0 {
		b.WriteString("\nthe last window's reasons:\n")
		for _, r := range e.Reasons {
			fmt.Fprintf(&b, "  %s: %s\n", r.Code, cmp.Or(r.Text, fmt.Sprint(r.Count)))
		}
	}
	printServersHistory(&b, e)
	printUnreadable(&b, e.Unreadable)
	_, err := io.WriteString(w, b.String())
	return err
}

// printFigures prints what a decision went by, by name.
func printFigures(b *strings.Builder, by map[string]any) {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(by)) {
		value := fmt.Sprint(by[name])
		if x, ok := by[name].(float64); ok {
			value = short(x)
		}
		parts = append(parts, strings.ReplaceAll(name, "_", " ")+" "+value)
	}
	if len(parts) > 0 {
		fmt.Fprintf(b, "  %s\n", strings.Join(parts, ", "))
	}
}

// printServerStates lists the servers with their queues: what they are by the decider, which
// goes by outcomes, beside what the switch found.
func printServerStates(b *strings.Builder, e *topology.ExplainedServers) {
	b.WriteString("\n")
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "zone\tweight\tserver\twanted\tfound\tplaces\tin service\twaiting\tpotential penalty\tcost/s\n")
	for _, z := range e.Zones {
		for _, s := range z.Servers {
			in, queued, potential := "?", "?", "?"
			if q := s.Queue; q != nil {
				in, queued, potential = short(q.InService), short(q.Queued), short(q.Potential)
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\n", z.Zone, short(z.Weight), s.Server, s.State, foundBy(e.Switch, s.Server), s.Slots, in, queued, potential, short(s.Cost))
		}
	}
	_ = t.Flush() // Into memory.
	if e.Dispatchers == 0 {
		b.WriteString("no gauges were recorded: what waits and is in service at servers is not known\n")
	}
}

// foundBy is what the server switch found a server to be; ? where it has not looked.
func foundBy(s *topology.SwitchStatus, server string) string {
	if s == nil {
		return "?"
	}
	for i := range s.State.Servers {
		if x := &s.State.Servers[i]; x.Server == server {
			if x.Failed {
				return "failed, " + string(x.Phase)
			}
			return string(x.Phase)
		}
	}
	return "?"
}

// printSwitch prints what the server switch says, wanted beside observed.
func printSwitch(b *strings.Builder, s *topology.SwitchStatus) {
	if s == nil {
		b.WriteString("\nno server switch acts: what is off gets no requests, and nobody stops it\n")
		return
	}
	fmt.Fprintf(b, "\nthe server switch %s, by epoch %d:\n", s.By, s.State.Epoch)
	if len(s.StandingBy) > 0 {
		fmt.Fprintf(b, "  standing by: %s\n", strings.Join(s.StandingBy, ", "))
	}
	for _, x := range s.State.Servers {
		fmt.Fprintf(b, "  %s: wanted %s, %s, observed %s", x.Server, cmp.Or(x.Wanted, "by nobody"), x.Phase, x.Observed)
		if x.Left != "" {
			fmt.Fprintf(b, "; waits for %s", x.Left)
		}
		if x.Fault != "" {
			fmt.Fprintf(b, "; failed %d times: %s", x.Tries, x.Fault)
		}
		b.WriteString("\n")
	}
}

// printServersHistory lists the last tables.
func printServersHistory(b *strings.Builder, e *topology.ExplainedServers) {
	if len(e.History) == 0 {
		return
	}
	fmt.Fprintf(b, "\nits tables, as the bus has them: %d", len(e.History))
	last := e.History
	if n := len(last); n > maxTables {
		last = last[n-maxTables:]
		fmt.Fprintf(b, "; the last %d of these", maxTables)
	}
	b.WriteString("\n")
	for i := range last {
		x := &last[i]
		fmt.Fprintf(b, "  window %s to %s: epoch %d, %s, %s\n", report.Instant(x.Window.Start), report.ClockTime(x.Window.End), x.Epoch, x.Mode, x.Reason.Code)
		fmt.Fprintf(b, "    %s\n", report.ServersText(x.Table))
		for _, a := range x.Answers {
			fmt.Fprintf(b, "    %s: %s\n", named(a.By, a.Target), strings.TrimSpace(string(a.Status)+" "+a.Reason))
		}
	}
}
