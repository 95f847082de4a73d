package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"penstock/pipeline/report"
	"penstock/pipeline/topology"
	"penstock/schemas/control"
)

type explainCmd struct {
	busFlags
	Words []string `arg:"" name:"owner" help:"Whose data; a kind may stand before it: explain placement OWNER."`
}

// Run explains an owner.
func (c *explainCmd) Run(con *console) (err error) {
	owner := c.Words[len(c.Words)-1]
	if len(c.Words) > 2 || len(c.Words) == 2 && c.Words[0] != string(control.Placement) {
		return fmt.Errorf("%w: explain [placement] OWNER; this version decides placement only", errUsage)
	}
	b, client, err := c.open(con, "explain")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	e, err := topology.Explain(con.ctx, client, owner, con.logger())
	if err != nil {
		return err
	}
	if con.json {
		enc := json.NewEncoder(con.out)
		enc.SetEscapeHTML(false)
		return enc.Encode(e)
	}
	return printExplained(con.out, e)
}

func printExplained(w io.Writer, e *topology.Explained) error {
	var b strings.Builder
	where := e.Site
	if where == "" {
		where = "not known"
	}
	fmt.Fprintf(&b, "%s: data is at %s", e.Owner, where)
	switch e.Source {
	case "moved":
		fmt.Fprintf(&b, " (moved there, version %d)", e.Version)
	case "imported":
		b.WriteString(" (imported)")
	case "seen":
		b.WriteString(" (served most of its requests when it was first seen)")
	}
	if e.MovingTo != "" {
		fmt.Fprintf(&b, ", on its way to %s", e.MovingTo)
	}
	fmt.Fprintf(&b, "; %d bytes stored, %d bytes of traffic in the last window\n", e.Stored, e.Traffic)
	if e.Place != nil {
		fmt.Fprintf(&b, "its own %s place is %.4f, %.4f", e.Place.Kind, e.Place.Lat, e.Place.Lon)
	} else {
		b.WriteString("its own place is unknown")
	}
	fmt.Fprintf(&b, "; %d users asked for its data or are friends, %d of them located; case %s\n", e.Friends, e.Located, e.Case)
	if e.Stays != "" {
		fmt.Fprintf(&b, "the last window left it there: %s\n", e.Stays)
	}
	if e.CooldownUntil != nil {
		fmt.Fprintf(&b, "cooldown until %s\n", e.CooldownUntil.Format("2006-01-02 15:04"))
	}
	b.WriteString("\nThe lower E, the better the site. NDW: how far the owner's own place is; NSW: how far its users are; 0 nearest, 1 farthest.\n")
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
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
	if len(e.History) > 0 {
		b.WriteString("\nits moves, as the bus has them:\n")
	}
	for _, h := range e.History {
		outcome := string(h.Outcome)
		if outcome == "" {
			outcome = "unanswered"
		}
		fmt.Fprintf(&b, "  window %s: %s → %s, version %d, %d bytes, %s (%s): %s %s\n", h.Window.Start.Format("2006-01-02 15:04"),
			h.Move.From, h.Move.To, h.Move.Version, h.Move.Bytes, h.Reason.Code, h.Reason.Text, outcome, h.Why)
	}
	if e.Unreadable > 0 {
		fmt.Fprintf(&b, "\n%d commands or outcomes on the bus cannot be read; they are left out\n", e.Unreadable)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
