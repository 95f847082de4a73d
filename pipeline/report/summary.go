package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// Summary prints what the report says for a person at a terminal.
func (r *Report) Summary(w io.Writer) error {
	var b strings.Builder
	r.summaryWindows(&b)
	fmt.Fprintf(&b, "\nmoves    %d commanded, %d done, %s in %d windows", r.Moves.Count, r.Moves.Done, Bytes(r.Moves.Bytes), r.Moves.Windows)
	if r.Moves.EgressUSD > 0 {
		fmt.Fprintf(&b, ", egress %s", usdText(r.Moves.EgressUSD))
	}
	b.WriteString("\n")
	fmt.Fprintf(&b, "reasons  %s\n", Reasons(r.Reasons))
	r.summaryCompared(&b)
	if r.Split != nil {
		r.Split.summary(&b)
	}
	if r.Coding != nil {
		r.Coding.summary(&b)
	}
	if r.Servers != nil {
		r.Servers.summary(&b)
	}
	if s := r.Stores; s != nil && s.Owners > 0 {
		fmt.Fprintf(&b, "stores   %d owners, %d records, %s, each with one live copy whose digest is that of what was written",
			s.Owners, s.Records, Bytes(s.Bytes))
		if len(s.Faults) > 0 {
			fmt.Fprintf(&b, "; NOT so for %d: %s", len(s.Faults), s.Faults[0])
		}
		b.WriteString("\n")
	}
	if s := r.Schedule; s != nil {
		fmt.Fprintf(&b, "schedule speed %s, lag at most %.1f ms, p99 %.1f ms\n", s.Speed, s.MaxLagMS, s.P99LagMS)
	}
	r.summaryAccount(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// summaryAccount prints whether every event is accounted for. Closed windows
// alone do not say.
func (r *Report) summaryAccount(b *strings.Builder) {
	if r.Kind == KindShadow {
		return
	}
	a := r.Account
	verdict := "holds"
	if !a.Holds() {
		verdict = "DOES NOT HOLD"
	}
	fmt.Fprintf(b, "account  received %d = counted %d + late %d + duplicate %d + malformed %d + quarantined %d; lost batches %d; %s\n",
		a.Received, a.Counted, a.Late, a.Duplicate, a.Malformed, a.Quarantined, a.LostBatches, verdict)
}

// maxPrinted bounds the windows of the summary; report.json has them all.
const maxPrinted = 30

func (r *Report) summaryWindows(b *strings.Builder) {
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "window (UTC)\tcase\t")
	for _, s := range r.Sites {
		fmt.Fprintf(t, "%s\t", s.Name)
	}
	fmt.Fprint(t, "moves\tmoved\t\n")
	shown := r.Windows
	if len(shown) > maxPrinted {
		shown = slices.Clone(shown)
		slices.SortStableFunc(shown, func(a, b WindowReport) int { return b.Moves - a.Moves })
		shown = shown[:maxPrinted]
		slices.SortFunc(shown, func(a, b WindowReport) int { return a.Start.Compare(b.Start) })
	}
	for _, w := range shown {
		fmt.Fprintf(t, "%s\t%s\t", Instant(w.Start), w.Case)
		for _, s := range r.Sites {
			mark := ""
			if s.Capacity > 0 && w.Traffic[s.Name] > s.Capacity {
				mark = "!"
			}
			fmt.Fprintf(t, "%s%s\t", mark, Bytes(w.Traffic[s.Name]))
		}
		fmt.Fprintf(t, "%d\t%s\t\n", w.Moves, Bytes(w.Bytes))
	}
	_ = t.Flush() // Into memory.
	if len(r.Windows) > maxPrinted {
		fmt.Fprintf(b, "(the %d windows with most moves of %d; report.json has all)\n", maxPrinted, len(r.Windows))
	}
	b.WriteString("(traffic by site as served, of requests with an owner; ! is over capacity)\n")
}

// summaryCompared prints what each strategy would have brought.
func (r *Report) summaryCompared(b *strings.Builder) {
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "strategy\tlatency ms\tp50\tp99\treads\texecution\tsites over\twindows over\tmoves\tmoved\tegress\trequests\tserving\t\n")
	for _, c := range r.compared() {
		over := "–"
		if c.SitesOver.Known() {
			over = fmt.Sprint(c.Execution.OverWindows)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", c.Name,
			c.Latency.Mean.Text(2), c.Latency.P50.Text(2), c.Latency.P99.Text(2), c.LatencyR.Mean.Text(2), c.Execution.Mean.Text(4),
			c.SitesOver.Text(0), over, c.Moved.Text(0), sizeText(c.BytesMoved), usdText(c.EgressUSD), c.Requests.Text(0), usdText(c.ServingUSD))
	}
	_ = t.Flush() // Into memory.
	for _, n := range r.notes() {
		fmt.Fprintf(b, "  %s\n", n)
	}
}

// Bytes prints a number of bytes; 1 MB = 10⁶ B.
func Bytes(n int64) string {
	f := float64(n)
	for _, u := range []string{"B", "KB", "MB", "GB"} {
		if f < 1000 {
			if u == "B" {
				return fmt.Sprintf("%d B", n)
			}
			return fmt.Sprintf("%.1f %s", f, u)
		}
		f /= 1000
	}
	return fmt.Sprintf("%.1f TB", f)
}

// Reasons prints reasons with their counts, in order of codes.
func Reasons(m map[string]int64) string {
	if len(m) == 0 {
		return "none"
	}
	var parts []string
	for _, code := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%s %d", code, m[code]))
	}
	return strings.Join(parts, ", ")
}
