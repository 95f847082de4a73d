package report

import (
	"bytes"
	"fmt"
	"html/template"
	"maps"
	"slices"

	_ "embed"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("report").Funcs(template.FuncMap{
	"bytes":   Bytes,
	"reasons": Reasons,
	"ms":      func(f Figure) string { return f.Text(2) },
	"share":   func(f Figure) string { return f.Text(4) },
}).Parse(pageText))

// pageRow is a strategy's line in the table of delays.
type pageRow struct {
	Name, Text string
	All, Reads Delay
	Execution  Execution
	Copies     int
	Egress     float64
}

// HTML returns the report as one page that loads nothing from elsewhere.
func (r *Report) HTML() ([]byte, error) {
	rows := []pageRow{{"this replay", "as decided and moved", r.Latency, r.LatencyR, r.Execution, 1, r.Moves.EgressUSD}}
	for _, name := range slices.Sorted(maps.Keys(r.Baselines)) {
		b := r.Baselines[name]
		rows = append(rows, pageRow{name, b.Text, b.Latency, b.LatencyR, b.Execution, b.Copies, b.EgressUSD})
	}
	plots, err := r.plots()
	if err != nil {
		return nil, fmt.Errorf("report: plots: %w", err)
	}
	var moved []WindowReport
	for _, w := range r.Windows {
		if w.Moves > 0 {
			moved = append(moved, w)
		}
	}
	var b bytes.Buffer
	err = page.Execute(&b, map[string]any{"R": r, "Rows": rows, "Plots": plots, "Moved": moved, "Holds": r.Account.Holds()})
	if err != nil {
		return nil, fmt.Errorf("report: page: %w", err)
	}
	return b.Bytes(), nil
}
