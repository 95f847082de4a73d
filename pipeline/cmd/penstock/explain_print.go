package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"penstock/pipeline/report"
	"penstock/pipeline/topology"
)

// printExplained writes an explanation for a person.
func printExplained(w io.Writer, e *topology.Explained) error {
	var b strings.Builder
	printWhere(&b, e)
	printHeld(&b, e)
	printSites(&b, e)
	printTerms(&b, e)
	printMoves(&b, e)
	printUnreadable(&b, e.Unreadable)
	_, err := io.WriteString(w, b.String())
	return err
}

// printUnreadable says how much of the bus's history an explanation lacks.
func printUnreadable(b *strings.Builder, n int) {
	if n > 0 {
		fmt.Fprintf(b, "\n%d commands or outcomes on the bus cannot be read; they are left out\n", n)
	}
}

func printWhere(b *strings.Builder, e *topology.Explained) {
	where := e.Site
	if where == "" {
		where = "not known"
	}
	fmt.Fprintf(b, "%s: data is at %s", e.Owner, where)
	switch e.Source {
	case "moved":
		fmt.Fprintf(b, " (moved there, version %d)", e.Version)
	case "imported":
		b.WriteString(" (imported)")
	case "seen":
		b.WriteString(" (served most of its requests when it was first seen)")
	}
	if e.Pinned {
		b.WriteString(", pinned")
	}
	if e.MovingTo != "" {
		fmt.Fprintf(b, ", on its way to %s", e.MovingTo)
	}
	fmt.Fprintf(b, "; %s stored, %s of traffic in the last window\n", report.Bytes(e.Stored), report.Bytes(e.Traffic))
	if e.Place != nil {
		fmt.Fprintf(b, "its own %s place is %.4f, %.4f", e.Place.Kind, e.Place.Lat, e.Place.Lon)
	} else {
		b.WriteString("its own place is unknown")
	}
	fmt.Fprintf(b, "; %d users asked for its data or are friends, %d of them located; case %s\n", e.Friends, e.Located, e.Case)
}

// printHeld says why the last plan left the data where it is, and until when.
func printHeld(b *strings.Builder, e *topology.Explained) {
	if e.Stays != "" {
		fmt.Fprintf(b, "the last window left it there: %s\n", e.Stays)
	}
	if e.CooldownUntil != nil {
		fmt.Fprintf(b, "cooldown until %s\n", report.Instant(*e.CooldownUntil))
	}
	if e.Failures > 0 {
		fmt.Fprintf(b, "its last %d moves failed or expired", e.Failures)
		if e.HeldUntil != nil {
			fmt.Fprintf(b, "; no window up to the one that ends at %s moves it", report.Instant(*e.HeldUntil))
		}
		b.WriteString("\n")
	}
}

func printSites(b *strings.Builder, e *topology.Explained) {
	b.WriteString("\nThe lower E, the better the site. NDW: how far the owner's own place is; NSW: how far its users are; 0 nearest, 1 farthest.\n")
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "site\tdistance km\tNDW\tsocial weight\tNSW\tE = α·NDW + β·NSW\tcapacity\texpected\tobserved\t \t\n")
	for _, s := range e.Sites {
		km := "?"
		if s.DistanceKm != nil {
			km = fmt.Sprintf("%.0f", *s.DistanceKm)
		}
		mark := ""
		switch {
		case s.Site == e.LMatch:
			mark = "L-match"
		case !s.Allowed:
			mark = "not allowed"
		}
		fmt.Fprintf(t, "%s\t%s\t%.4f\t%.0f\t%.4f\t%.4f\t%s\t%s\t%s\t%s\t\n",
			s.Site, km, s.NDW, s.SW, s.NSW, s.Weight, report.Bytes(s.Capacity), report.Bytes(s.Expected), report.Bytes(s.Observed), mark)
	}
	_ = t.Flush() // Into memory.
}

// printTerms prints the objective's terms, which policy optimal has.
func printTerms(b *strings.Builder, e *topology.Explained) {
	if len(e.Sites) == 0 || e.Sites[0].Terms == nil {
		return
	}
	b.WriteString("\nPolicy optimal makes the sum of all owners' costs least, in units of weight. Moving: margin, bytes and egress to bring the data there;\n" +
		"capacity: what the last plan's price of the site's capacity makes of this owner's traffic, 0 where there is room for all.\n")
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "site\tE\t+ moving\t+ capacity\t= cost\t \t\n")
	best := -1
	for i, s := range e.Sites {
		if s.Allowed && s.Terms != nil && (best < 0 || s.Terms.Cost < e.Sites[best].Terms.Cost) {
			best = i
		}
	}
	for i, s := range e.Sites {
		if s.Terms == nil {
			continue
		}
		mark := ""
		switch {
		case i == best:
			mark = "least"
		case !s.Allowed:
			mark = "not allowed"
		}
		fmt.Fprintf(t, "%s\t%.4f\t%.4f\t%.4f\t%.4f\t%s\t\n", s.Site, s.Weight, s.Terms.Moving, s.Terms.Price, s.Terms.Cost, mark)
	}
	_ = t.Flush() // Into memory.
}

// printMoves lists the owner's moves. A command has one reason for all its moves:
// only of the last move is it known what it was decided for.
func printMoves(b *strings.Builder, e *topology.Explained) {
	if len(e.History) > 0 {
		b.WriteString("\nits moves, as the bus has them:\n")
	}
	for _, h := range e.History {
		outcome := string(h.Outcome)
		if outcome == "" {
			outcome = "unanswered"
		}
		why := "with others: " + h.Reason.Text
		switch last := e.LastMove; {
		case h.Reason.Count <= 1:
			why = h.Reason.Code
		case last != nil && last.Version == h.Move.Version && last.Window.Equal(h.Window.End):
			why = last.Reason
		}
		fmt.Fprintf(b, "  window %s to %s: %s → %s, version %d, %s, %s: %s\n", report.Instant(h.Window.Start), report.ClockTime(h.Window.End),
			h.Move.From, h.Move.To, h.Move.Version, report.Bytes(h.Move.Bytes), why, strings.TrimSpace(outcome+" "+h.Why))
	}
}
