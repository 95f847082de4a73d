package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"penstock/consumers/decider/placement"
	"penstock/schemas/control"
)

// printFailing lists the moves that came to nothing.
func (s *Status) printFailing(b *strings.Builder) {
	if s.FailingOwners == 0 {
		return
	}
	fmt.Fprintf(b, "%d owners' last moves came to nothing:\n", s.FailingOwners)
	for i, f := range s.Failing {
		if i == shownFailing {
			fmt.Fprintf(b, "  and %d more; --json lists %d\n", s.FailingOwners-i, len(s.Failing))
			break
		}
		fmt.Fprintf(b, "  %q to %s: %s, %s; %d in a row\n", f.Owner, f.To, f.Status, cmp.Or(f.Reason, "no reason given"), f.Count)
	}
}

// printPlan says what the last plan of policy optimal is worth, of a decision
// that has one.
func printPlan(b *strings.Builder, d *control.Decision) {
	if d == nil {
		return
	}
	for _, r := range d.Reasons {
		if r.Code != placement.Optimised.String() {
			continue
		}
		number := func(of string) float64 { v, _ := r.Evidence[of].(float64); return v } // as JSON has numbers; 0 of none
		how := fmt.Sprintf("at most %.3g %% above the least, which is %.6g or more", 100*number("gap"), number("bound"))
		switch exact, _ := r.Evidence["exact"].(bool); {
		case exact:
			how = "the least there is"
		case r.Evidence["bound"] == nil: // Some stay at sites that are being emptied.
			how = r.Text
		}
		fmt.Fprintf(b, "  plan of %d owners: total %.6g, %s (method %v)\n", r.Count, number("total"), how, r.Evidence["method"])
	}
}

// done is what becomes of a kind's commands.
func done(k control.Kind) string {
	if k == control.Placement {
		return "moved"
	}
	return "applied"
}

// Print writes the status for a person.
func (s *Status) Print(w io.Writer) error {
	var b strings.Builder
	for _, k := range s.Kinds {
		if !k.Decided && k.Mode == "" && !k.Frozen && k.Rollback == nil {
			continue
		}
		fmt.Fprintf(&b, "%s: ", k.Kind)
		if d := k.Decision; d != nil {
			moves := 0
			for _, c := range d.Commands {
				moves += c.Moves
			}
			fmt.Fprintf(&b, "mode %s, last decided window %s to %s, ", d.Mode, Instant(d.Window.Start), ClockTime(d.Window.End))
			if k.Kind == control.Placement {
				fmt.Fprintf(&b, "case %s, %d moves; ", d.Case, moves)
			} else {
				fmt.Fprintf(&b, "%d tables; ", len(d.Commands))
			}
			counts := map[string]int64{}
			for _, r := range d.Reasons {
				counts[r.Code] += max(r.Count, 1)
			}
			fmt.Fprintf(&b, "reasons: %s", Reasons(counts))
		} else {
			b.WriteString("nothing decided yet")
		}
		if k.Mode != "" {
			fmt.Fprintf(&b, "; operator: mode %s", k.Mode)
			if d := k.Decision; d != nil && d.Operator.Mode != k.Mode {
				b.WriteString(", from the next window on")
			}
		}
		if k.Frozen {
			b.WriteString("; FROZEN")
		}
		if k.Stale {
			fmt.Fprintf(&b, "; STALE: nothing decided since %s (windows without traffic decide nothing)", Instant(k.At))
		}
		if k.BackingOff > 0 {
			fmt.Fprintf(&b, "; %d owners are held after moves that failed", k.BackingOff)
		}
		if k.Rollback != nil {
			fmt.Fprintf(&b, "; a rollback to %s waits for the next complete window in mode act", k.Rollback.Format(time.RFC3339))
		}
		b.WriteString("\n")
		printPlan(&b, k.Decision)
		printTables(&b, k.Kind, k.Tables)
		if k.FellBack != "" {
			fmt.Fprintf(&b, "%s FELL BACK TO ADVISE: %s\n  nothing is %s until: penstock mode %s act\n", strings.ToUpper(string(k.Kind)), k.FellBack, done(k.Kind), k.Kind)
		}
	}
	if b.Len() == 0 {
		b.WriteString("nothing decided yet\n")
	}
	if len(s.Evacuate) > 0 {
		fmt.Fprintf(&b, "being emptied: %s\n", strings.Join(s.Evacuate, ", "))
	}
	for _, e := range s.Evacuations {
		switch {
		case e.Counted:
			fmt.Fprintf(&b, "  %s: %d owners there at the last decision, which moves %d of them; penstock evacuate counts anew\n", e.Site, e.Remaining, e.Moving)
		case e.Decided:
			fmt.Fprintf(&b, "  %s: the last decision knew of it and did not plan for it; penstock evacuate counts\n", e.Site)
		default:
			fmt.Fprintf(&b, "  %s: no window has been decided since it was asked for\n", e.Site)
		}
	}
	s.printFailing(&b)
	for _, p := range s.Progress {
		mark := "none yet"
		if !p.Watermark.IsZero() {
			mark = p.Watermark.Format(time.RFC3339)
		}
		fmt.Fprintf(&b, "%s: watermark %s, %d messages of EVENTS behind\n", p.Group, mark, p.Behind)
	}
	fmt.Fprintf(&b, "locations: %d owners were moved, imported or pinned; the others are where they were first seen\n\n", s.Owners)
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "stream\tmessages\tbytes\tfirst\tlast\t\n")
	for _, st := range s.Streams {
		fmt.Fprintf(t, "%s\t%d\t%s\t%d\t%d\t\n", st.Name, st.Messages, Bytes(int64(st.Bytes)), st.First, st.Last)
	}
	_ = t.Flush() // Into memory.
	for _, f := range s.Faults {
		fmt.Fprintf(&b, "FAULT: %s\n", f)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
