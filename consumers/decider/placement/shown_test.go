package placement

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"penstock/consumers/decider"
)

// printed is a decision as a script shows it.
func printed(o decider.Output) string {
	var b strings.Builder
	fmt.Fprintf(&b, "case %q\n", o.Case)
	for _, r := range o.Reasons {
		b.WriteString(r.Code)
		for _, part := range []string{r.Scope, r.Owner} {
			if part != "" {
				b.WriteString(" " + part)
			}
		}
		if r.Count != 0 {
			fmt.Fprintf(&b, " ×%d", r.Count)
		}
		for _, k := range sortedKeys(r.Evidence) {
			if k == "method" {
				continue // how the solver found it is the solver's own
			}
			fmt.Fprintf(&b, " %s=%v", k, r.Evidence[k])
		}
		fmt.Fprintf(&b, " (%s)\n", r.Text)
	}
	for _, c := range o.Commands {
		fmt.Fprintf(&b, "command %s: %s (%s)\n", c.Scope, c.Reason.Code, c.Reason.Text)
		for _, m := range c.Placement.Moves {
			fmt.Fprintf(&b, "  move %s %s → %s, version %d, %d B\n", m.Owner, m.From, m.To, m.Version, m.Bytes)
		}
	}
	return b.String()
}

func shownPlan(p Plan) string {
	return fmt.Sprintf("%d owners: weight %.6f + moving %.6f + overload %.6f = %.6f, bound %.6f, exact %v, gap %.6f; %d moves of %d B, $%.4f, %d B over\n",
		p.Owners, p.Weight, p.Moving, p.Overload, p.Total, p.Bound, p.Exact, p.Gap, p.Moves, p.MovedBytes, p.USD, p.OverBytes)
}

func (s *script) explain(owner string) string {
	s.start()
	v, ok := s.policy.Explain(owner)
	if !ok {
		return "unknown\n"
	}
	e := v.(Explanation)
	var b strings.Builder
	fmt.Fprintf(&b, "at %s (%s), version %d, L-match %s, traffic %d B, stored %d B", e.Site, e.Source, e.Version, e.LMatch, e.Traffic, e.Stored)
	if e.Pinned {
		b.WriteString(", pinned")
	}
	if e.Failures > 0 {
		fmt.Fprintf(&b, ", %d failures", e.Failures)
	}
	if e.HeldUntil != nil {
		fmt.Fprintf(&b, ", held until %s", e.HeldUntil.Format(time.RFC3339))
	}
	for _, part := range [][2]string{{"moving to", e.MovingTo}, {"stays:", e.Stays}} {
		if part[1] != "" {
			fmt.Fprintf(&b, ", %s %s", part[0], part[1])
		}
	}
	b.WriteString("\n")
	for _, v := range e.Sites {
		km := "no place"
		if v.DistanceKm != nil {
			km = fmt.Sprintf("%.0f km", *v.DistanceKm)
		}
		fmt.Fprintf(&b, "  %s: %s, NDW %.6f, SW %.0f, NSW %.6f, E %.6f, expected %d of %d", v.Site, km, v.NDW, v.SW, v.NSW, v.Weight, v.Expected, v.Limit)
		if o := v.Terms; o != nil {
			fmt.Fprintf(&b, ", moving %.6f", o.Moving)
		}
		if !v.Allowed {
			b.WriteString(", not allowed")
		}
		b.WriteString("\n")
	}
	if m := e.LastMove; m != nil {
		fmt.Fprintf(&b, "  last move: %s → %s, version %d, %s, %s\n", m.From, m.To, m.Version, m.Reason, m.Status)
	}
	if slices.ContainsFunc(e.Sites, func(v SiteView) bool { return v.Weight < 0 }) {
		s.t.Errorf("%s: a negative weight", owner)
	}
	return b.String()
}
