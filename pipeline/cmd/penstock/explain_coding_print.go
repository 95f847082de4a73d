package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"penstock/consumers/decider/coding"
	"penstock/pipeline/report"
	"penstock/pipeline/topology"
	"penstock/schemas/control"
)

// printExplainedCoding writes an explanation of coding for a person.
func printExplainedCoding(w io.Writer, e *topology.ExplainedCoding) error {
	var b strings.Builder
	layout := "any code can be read"
	if s := e.Spread; s != nil {
		layout = fmt.Sprintf("each object lies in %d stores, any %d of which are enough", s.N, s.K)
	}
	fmt.Fprintf(&b, "%s: policy %s, %s, as of the window %s to %s", e.Coder, e.Policy, layout, report.Instant(e.Window.Start), report.ClockTime(e.Window.End))
	if e.InForce == nil {
		b.WriteString("; no table: its codes are those of the configuration\n")
	} else {
		printTable(&b, control.Coding, e.InForce)
	}
	if e.Refused {
		b.WriteString("  the last table was refused: it is not sent again until it changes\n")
	}
	if e.Failed > 0 {
		fmt.Fprintf(&b, "  the last %d tables failed or were refused\n", e.Failed)
	}
	for _, x := range []struct {
		op    string
		v     *coding.OperationView
		used  []coding.CodeShare
		codes func(*control.CodingTable) control.CodingCodes
	}{
		{"reads", &e.Read, e.Used.Read, func(t *control.CodingTable) control.CodingCodes { return t.Read }},
		{"writes", &e.Write, e.Used.Write, func(t *control.CodingTable) control.CodingCodes { return t.Write }},
	} {
		printOperation(&b, x.op, x.v, x.used)
		if e.Table != nil {
			fmt.Fprintf(&b, "  the table: %s\n", report.LimitText(x.codes(e.Table)))
		}
	}
	printModels(&b, e)
	printPrice(&b, &e.Price)
	printWhyNot(&b, e)
	printCodingHistory(&b, e)
	printUnreadable(&b, e.Unreadable)
	_, err := io.WriteString(w, b.String())
	return err
}

// printOperation prints what codes are chosen from, and which were.
func printOperation(b *strings.Builder, op string, v *coding.OperationView, used []coding.CodeShare) {
	fmt.Fprintf(b, "\n%s of %s MB on average, over %d connections: an empty queue gets (%d,%d)\n", op, short(v.SizeMB), v.Limits.Connections, v.BestIdle.N, v.BestIdle.K)
	if v.Capacity.Least > 0 {
		least := max(1, v.Limits.KMin)
		fmt.Fprintf(b, "  capacity, by connections alone: %s a second with (%d,%d), %s with that\n", short(v.Capacity.Least), least, least, short(v.Capacity.Idle))
	}
	if len(used) == 0 {
		return
	}
	parts := make([]string, len(used))
	for i, c := range used {
		parts[i] = fmt.Sprintf("(%d,%d) %s %%", c.N, c.K, short(100*c.Share))
	}
	fmt.Fprintf(b, "  codes of the windows that count: %s\n", strings.Join(parts, ", "))
}

// printModels prints the delays of each store.
func printModels(b *strings.Builder, e *topology.ExplainedCoding) {
	b.WriteString("\na task of B MB takes Δ + Δ'·B, and an exponential of mean Ψ + Ψ'·B; between the 95 % limits\n")
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "store\top\tΔ ms\tΔ' ms/MB\tΨ ms\tΨ' ms/MB\tsamples\t \t\n")
	for i := range e.Members {
		m := &e.Members[i]
		for _, x := range []struct {
			op string
			v  *coding.ModelView
		}{{"read", &m.Read}, {"write", &m.Write}} {
			p := x.v.Model
			row := []string{m.Store, x.op}
			for j, v := range []float64{p.Delta, p.DeltaPerMB, p.Psi, p.PsiPerMB} {
				text := short(v)
				if len(x.v.Intervals) == 4 {
					text += fmt.Sprintf(" (%s to %s)", short(x.v.Intervals[j].Low), short(x.v.Intervals[j].High))
				}
				row = append(row, text)
			}
			row = append(row, fmt.Sprint(x.v.Samples), modelMark(x.v))
			fmt.Fprintln(t, strings.Join(row, "\t")+"\t")
		}
	}
	_ = t.Flush() // Into memory.
	if len(e.Members) > 1 {
		fmt.Fprintf(b, "the table goes by their mean, by samples: reads Δ %s + %s·B, Ψ %s + %s·B\n", short(e.Read.Model.Delta), short(e.Read.Model.DeltaPerMB), short(e.Read.Model.Psi), short(e.Read.Model.PsiPerMB))
	}
}

// modelMark says what a model rests on where that is not all samples.
func modelMark(v *coding.ModelView) string {
	switch {
	case !v.Fitted:
		return "not measured: as configured"
	case len(v.Untold) > 0:
		return "sizes too alike to tell " + strings.Join(v.Untold, ", ")
	}
	return ""
}

func printPrice(b *strings.Builder, p *coding.PriceView) {
	b.WriteString("\na million reads: ")
	if p.RequestsPerRead > 0 {
		fmt.Fprintf(b, "$%s as they were, at %s requests each; ", short(p.AsWere), short(p.RequestsPerRead))
	}
	fmt.Fprintf(b, "at most $%s, at %d requests each", short(p.Most), p.MostRequests)
	if p.Cap > 0 {
		fmt.Fprintf(b, "; the cap is $%s", short(p.Cap))
	}
	b.WriteString("\n")
}

// printWhyNot says what the last window's record says of the coder.
func printWhyNot(b *strings.Builder, e *topology.ExplainedCoding) {
	if e.Table != nil {
		fmt.Fprintf(b, "\nthe table that would be made now differs by %s %% from the one in force; beyond %s %% it is sent\n", short(100*e.Apart), short(100*e.Change))
	}
	if len(e.Reasons) == 0 {
		return
	}
	b.WriteString("the last window's reasons:\n")
	for _, r := range e.Reasons {
		store := ""
		if s, ok := r.Evidence["store"].(string); ok {
			store = " of " + s
		}
		fmt.Fprintf(b, "  %s%s: %s\n", r.Code, store, cmp.Or(r.Text, fmt.Sprint(r.Count)))
	}
}

// printCodingHistory lists the last tables that changed something.
func printCodingHistory(b *strings.Builder, e *topology.ExplainedCoding) {
	if len(e.History) == 0 {
		return
	}
	var changed []*topology.CodingChange
	for i := range e.History {
		if e.History[i].Reason.Code != coding.Renewed {
			changed = append(changed, &e.History[i])
		}
	}
	fmt.Fprintf(b, "\nits tables, as the bus has them: %d, %d of them new", len(e.History), len(changed))
	if n := len(changed); n > maxTables {
		changed = changed[n-maxTables:]
		fmt.Fprintf(b, "; the last %d of these", maxTables)
	}
	b.WriteString("\n")
	for _, x := range changed {
		fmt.Fprintf(b, "  window %s to %s: epoch %d, %s, %s\n", report.Instant(x.Window.Start), report.ClockTime(x.Window.End), x.Epoch, x.Mode, x.Reason.Code)
		fmt.Fprintf(b, "    reads: %s\n", report.LimitText(x.Table.Read))
		for _, a := range x.Answers {
			fmt.Fprintf(b, "    coder %s: %s\n", named(a.By, a.Target), strings.TrimSpace(string(a.Status)+" "+a.Reason))
		}
	}
}

// short is a number with at most two decimals.
func short(x float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", x), "0"), ".")
}
