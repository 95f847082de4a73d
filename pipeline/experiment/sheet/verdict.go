package sheet

import (
	"slices"

	"penstock/pipeline/report"
)

// Verdict is one figure of the paper beside ours.
type Verdict struct {
	Figure string `json:"figure"`
	Paper  string `json:"paper"`
	Ours   string `json:"ours"`
	// Reached is "yes", "no", or "" where there is nothing to reach.
	Reached string `json:"reached"`
	Note    string `json:"note,omitempty"`
}

// Spread is the median and the range of a figure over days.
type Spread struct{ Median, Least, Most report.Figure }

// SpreadOf sorts what is known.
func SpreadOf(values []report.Figure) Spread {
	known := make([]float64, 0, len(values))
	for _, v := range values {
		if v.Known() {
			known = append(known, float64(v))
		}
	}
	if len(known) == 0 {
		return Spread{report.Unknown(), report.Unknown(), report.Unknown()}
	}
	slices.Sort(known)
	n := len(known)
	return Spread{report.Figure((known[(n-1)/2] + known[n/2]) / 2), report.Figure(known[0]), report.Figure(known[n-1])}
}

// Text prints median (least–most).
func (s Spread) Text(digits int) string {
	if !s.Median.Known() {
		return "–"
	}
	return s.Median.Text(digits) + " (" + s.Least.Text(digits) + "–" + s.Most.Text(digits) + ")"
}

// Yes is the word for whether a figure is reached.
func Yes(ok bool) string {
	if ok {
		return "yes"
	}
	return "no"
}

// VerdictTable is a table of a paper's figures beside ours.
func VerdictTable(title string, verdicts []Verdict) Table {
	t := Table{Title: title, Head: []string{"figure", "paper", "ours", "reached", "note"}}
	for _, v := range verdicts {
		t.Rows = append(t.Rows, []string{v.Figure, v.Paper, v.Ours, v.Reached, v.Note})
	}
	return t
}
