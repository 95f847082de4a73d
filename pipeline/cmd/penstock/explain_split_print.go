package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"penstock/consumers/decider/split"
	"penstock/pipeline/report"
	"penstock/pipeline/topology"
	"penstock/schemas/control"
)

// maxTables bounds the tables of a history that are printed; --json has all.
const maxTables = 20

// printExplainedSplit writes an explanation of split for a person.
func printExplainedSplit(w io.Writer, e *topology.ExplainedSplit) error {
	var b strings.Builder
	printScope(&b, e)
	for i := range e.Calls {
		printRow(&b, e, &e.Calls[i])
	}
	printReplicas(&b, e)
	printTablesOf(&b, e)
	printUnreadable(&b, e.Unreadable)
	_, err := io.WriteString(w, b.String())
	return err
}

func printScope(b *strings.Builder, e *topology.ExplainedSplit) {
	at := ""
	if e.Site != "" {
		at = " at " + e.Site
	}
	fmt.Fprintf(b, "%s%s: policy %s, as of the window %s to %s", e.Component, at, e.Policy, report.Instant(e.Window.Start), report.ClockTime(e.Window.End))
	if e.Table == nil {
		b.WriteString("; no table: its calls go as routers send them without one\n")
	} else {
		printTable(b, control.Split, e.Table)
	}
	if e.Refused {
		b.WriteString("  the last table was refused: it is not sent again until it changes\n")
	}
	if e.Failed > 0 {
		fmt.Fprintf(b, "  the last %d tables failed or were refused\n", e.Failed)
	}
	if len(e.Calls) == 0 && len(e.Replicas) == 0 {
		b.WriteString("it has neither calls nor replicas yet\n")
	}
}

// printTable says which table is the last one and who follows it.
func printTable(b *strings.Builder, k control.Kind, t *report.TableStatus) {
	fmt.Fprintf(b, "; table epoch %d in mode %s, of the window to %s", t.Epoch, t.Mode, report.Instant(t.Window.End))
	if t.LeftS != nil && *t.LeftS < 0 {
		fmt.Fprintf(b, ", its ttl of %s is OVER", t.TTL)
	}
	b.WriteString("\n")
	for _, r := range t.Routers {
		fmt.Fprintf(b, "  %s %s: %s\n", report.Follower(k), named(r.By, r.Target), r.Answer())
	}
	if len(t.Routers) == 0 {
		fmt.Fprintf(b, "  no %s has answered\n", report.Follower(k))
	}
}

// printRow prints a row of the table with what it rests on.
func printRow(b *strings.Builder, e *topology.ExplainedSplit, r *split.RowView) {
	fmt.Fprintf(b, "\n%s → %s: %.2f calls a second, %d calls in the windows that count\n", r.FromSite, r.To, r.Rate, r.Samples)
	switch {
	case r.Expired:
		b.WriteString("  EXPIRED: too few samples for too long, it went back to its default\n")
	case r.Thin:
		b.WriteString("  too few samples, or none in the last window: it stays as it is\n")
	case r.Fast:
		b.WriteString("  on its way, fast: it leaves what got worse\n")
	}
	if r.WritesAt != "" {
		fmt.Fprintf(b, "  writes go to %s, whatever the shares\n", r.WritesAt)
	}
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "site\tshare %\ttarget %\tnetwork ms\tservice and errors ms\twith further calls by targets ms\tof link\tof callee\tcalls/s\tcapacity/s\terrors %\tprobes %\t \t\n")
	for i := range r.Sites {
		s := &r.Sites[i]
		network := millis(s.NetworkUS)
		if !s.Measured {
			network = "~" + network
		}
		row := []string{s.Site, percent(s.Share), percent(s.Target), network, "?", "?", fmt.Sprint(s.Samples), "0", "?", "?", "?", percent(s.Probe), held(s)}
		if s.CostUS > 0 {
			row[5] = millis(s.CostUS)
		}
		if k := slices.IndexFunc(e.Callees[r.To], func(v split.ReplicaView) bool { return v.Site == s.Site }); k >= 0 {
			v := &e.Callees[r.To][k]
			row[4], row[7], row[8], row[9], row[10] = serviceText(v), fmt.Sprint(v.Samples), fmt.Sprintf("%.2f", v.Load), capacityText(v), percent(v.Errors)
			if !v.Allowed {
				row[12] = strings.TrimSpace("not allowed " + row[12])
			}
		}
		fmt.Fprintln(t, strings.Join(row, "\t")+"\t")
	}
	_ = t.Flush() // Into memory.
}

// held says what a cooldown keeps a share from.
func held(s *split.ShareView) string {
	if s.HeldUntil == nil {
		return ""
	}
	rose := s.Rose != nil && (s.Fell == nil || s.Rose.After(*s.Fell))
	return fmt.Sprintf("does not %s until %s", map[bool]string{true: "fall", false: "rise"}[rose], report.ClockTime(*s.HeldUntil))
}

// printReplicas prints the component as others call it.
func printReplicas(b *strings.Builder, e *topology.ExplainedSplit) {
	if len(e.Replicas) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s as a callee:\n", e.Component)
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "site\tservice and errors ms\tsamples\tcalls/s\tcapacity/s\terrors %\t \t\n")
	for i := range e.Replicas {
		v := &e.Replicas[i]
		mark := ""
		if !v.Allowed {
			mark = "not allowed"
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%.2f\t%s\t%s\t%s\t\n", v.Site, serviceText(v), v.Samples, v.Load, capacityText(v), percent(v.Errors), mark)
	}
	_ = t.Flush() // Into memory.
}

// printTablesOf lists the last tables that changed a share, and counts the others.
func printTablesOf(b *strings.Builder, e *topology.ExplainedSplit) {
	var changed []*topology.TableChange
	others := 0 // as a report of a replay counts them
	for i := range e.History {
		x := &e.History[i]
		if len(x.Changes) > 0 {
			changed = append(changed, x)
		}
		if slices.ContainsFunc(x.Changes, func(r topology.RowChange) bool { return len(r.Was) > 0 }) {
			others++
		}
	}
	if len(e.History) == 0 {
		return
	}
	fmt.Fprintf(b, "\nits tables, as the bus has them: %d, %d of them with other shares than the one before", len(e.History), others)
	if first := len(changed) - others; first > 0 {
		fmt.Fprintf(b, ", %d the first of their calls", first)
	}
	if n := len(changed); n > maxTables {
		changed = changed[n-maxTables:]
		fmt.Fprintf(b, "; the last %d of all these", maxTables)
	}
	b.WriteString("\n")
	for _, x := range changed {
		fmt.Fprintf(b, "  window %s to %s: epoch %d, %s, %s%s\n", report.Instant(x.Window.Start), report.ClockTime(x.Window.End), x.Epoch, x.Mode, x.Reason.Code, because(&x.Reason))
		for _, r := range x.Changes {
			was := report.SharesText(r.Was)
			if was == "" {
				was = "no table"
			}
			fmt.Fprintf(b, "    %s → %s: %s; before: %s\n", r.FromSite, r.To, report.SharesText(r.Is), was)
		}
		for _, a := range x.Answers {
			fmt.Fprintf(b, "    router %s: %s\n", named(a.By, a.Target), strings.TrimSpace(string(a.Status)+" "+a.Reason))
		}
	}
}

// because says the delays that a change was decided by.
func because(r *control.Reason) string {
	number := func(of string) (int64, bool) { v, ok := r.Evidence[of].(float64); return int64(v), ok } // as JSON has numbers
	from, ok := number("from_path_us")
	into, ok2 := number("into_path_us")
	if !ok || !ok2 {
		return ""
	}
	return fmt.Sprintf(": %v %s ms, %v %s ms", r.Evidence["from"], millis(from), r.Evidence["into"], millis(into))
}

func named(by, target string) string {
	if target == "" {
		return by
	}
	return by + " (" + target + ")"
}

// serviceText marks what is a guess or long ago.
func serviceText(v *split.ReplicaView) string {
	if !v.Known {
		return "~" + millis(v.ServiceUS)
	}
	return millis(v.ServiceUS)
}

func capacityText(v *split.ReplicaView) string {
	if v.Capacity == nil {
		return "none seen"
	}
	return fmt.Sprintf("%.2f", *v.Capacity)
}

func millis(us int64) string {
	return fmt.Sprintf("%.2f", float64(us)*float64(time.Microsecond)/float64(time.Millisecond))
}

func percent(share float64) string { return fmt.Sprintf("%.2f", 100*share) }
