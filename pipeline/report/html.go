package report

import (
	"bytes"
	"fmt"
	"html/template"
	"strconv"
	"strings"

	_ "embed"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("report").Funcs(template.FuncMap{
	"bytes":    Bytes,
	"reasons":  Reasons,
	"figure":   func(digits int, f Figure) string { return f.Text(digits) },
	"count":    func(f Figure) string { return grouped(f.Text(0)) },
	"size":     sizeText,
	"usd":      usdText,
	"percent":  func(x float64) string { return strconv.FormatFloat(100*x, 'f', 1, 64) },
	"instant":  Instant,
	"limits":   LimitText,
	"ks":       kText,
	"trimmed":  trimmed,
	"change":   changeText,
	"amount":   amount,
	"shifts":   func(x SiteServers) []ServersShift { return x.Changes[:min(len(x.Changes), maxListed)] },
	"names":    someOf,
	"percents": func(f Figure) string { return (100 * f).Text(1) },
	"colour": func(i int) template.CSS {
		c := palette[i%len(palette)]
		return template.CSS(fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B)) //nolint:gosec // Our own colour.
	},
}).Parse(pageText))

// maxListed bounds the windows with moves that the page lists; report.json has
// all.
const maxListed = 200

// HTML returns the report as one page that loads nothing from elsewhere.
func (r *Report) HTML() ([]byte, error) {
	plots, err := r.plots()
	if err != nil {
		return nil, fmt.Errorf("report: plots: %w", err)
	}
	var splits []picture
	var links []SplitLink
	if r.Split != nil {
		links = r.Split.listed()
		if splits, err = r.Split.plots(); err != nil {
			return nil, fmt.Errorf("report: plots of split: %w", err)
		}
	}
	var codes []picture
	if r.Coding != nil {
		if codes, err = r.Coding.plots(); err != nil {
			return nil, fmt.Errorf("report: plots of coding: %w", err)
		}
	}
	var machines []picture
	if r.Servers != nil {
		if machines, err = r.Servers.plots(); err != nil {
			return nil, fmt.Errorf("report: plots of servers: %w", err)
		}
	}
	var moved []WindowReport
	more := 0
	for _, w := range r.Windows {
		switch {
		case w.Moves == 0:
		case len(moved) < maxListed:
			moved = append(moved, w)
		default:
			more++
		}
	}
	var b bytes.Buffer
	err = page.Execute(&b, map[string]any{
		"R": r, "Rows": r.compared(), "Plots": plots, "Moved": moved, "More": more, "Holds": r.Account.Holds(),
		"Replay": r.Kind != KindShadow, "Notes": r.notes(), "SplitPlots": splits, "SplitLinks": links,
		"CodePlots": codes, "ServerPlots": machines, "NotSaid": notSaid,
	})
	if err != nil {
		return nil, fmt.Errorf("report: page: %w", err)
	}
	return b.Bytes(), nil
}

// notes say what figures rest on, and what is not in them.
func (r *Report) notes() []string {
	l := r.LatencySource
	out := []string{"Latency delays follow from distance by the formula 0.02 ms a km + 5 ms, which is assumed, not measured."}
	if l.File != "" {
		out[0] = fmt.Sprintf("Latency delays are those of the table %s: %d pairs of a site and one of %d regions; a user belongs to the nearest region.", l.File, l.Pairs, l.Regions)
		if len(l.Missing) > 0 {
			note := fmt.Sprintf("%d pairs are missing in it (%s): there the formula of distance, which is assumed, stands in", len(l.Missing), some(l.Missing, 5))
			if r.Kind != KindShadow { // Windows of a shadow report are not counted by pair.
				note += fmt.Sprintf(", for %s requests of %s", grouped(fmt.Sprint(l.Requests)), r.compared()[0].Name)
			}
			out = append(out, note+".")
		}
		if len(l.Foreign) > 0 {
			out = append(out, fmt.Sprintf("It has rows of sites that the configuration lacks: %s.", some(l.Foreign, 5)))
		}
	}
	if r.Latency.Unlocated > 0 {
		out = append(out, fmt.Sprintf("%s requests have no place and are in no latency delay.", grouped(fmt.Sprint(r.Latency.Unlocated))))
	}
	if r.Unserved > 0 {
		out = append(out, fmt.Sprintf("%s requests have a place, but no owner or no known site, and are in no latency delay.", grouped(fmt.Sprint(r.Unserved))))
	}
	if r.AsRecorded {
		out = append(out, "Each request was served where the recording says: what was decided shows in the moves, not in how this replay served (--route follow plays that).")
	}
	if !r.ServingUSD.Known() {
		out = append(out, "Nothing has a price (prices.egress, prices.requests), so that money is unknown.")
	}
	if r.Requests == 0 && len(r.Windows) > 0 {
		out = append(out, fmt.Sprintf("%s has a known site for no request: does the configuration name the sites that served?", r.compared()[0].Name))
	}
	for _, c := range r.compared() {
		switch {
		case c.Unknown != "":
			out = append(out, fmt.Sprintf("%s is unknown: %s.", c.Name, c.Unknown))
		case c.Requests != r.Requests:
			out = append(out, fmt.Sprintf("%s has a known site for %s requests, %s for %s: all its figures are over these.", c.Name,
				grouped(c.Requests.Text(0)), r.compared()[0].Name, grouped(r.Requests.Text(0))))
		}
	}
	return out
}

// some names the first few.
func some(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:most], ", ") + ", …"
}

// changeText prints a reduction in percent as the change that it is.
func changeText(f Figure) string {
	switch {
	case !f.Known():
		return f.Text(0)
	case f > 0:
		return "−" + f.Text(1)
	case f < 0:
		return "+" + (-f).Text(1)
	}
	return "0"
}

// sizeText prints bytes that may be unknown.
func sizeText(f Figure) string {
	if !f.Known() {
		return f.Text(0)
	}
	return Bytes(int64(f))
}

// usdText prints money that may be unknown, with four digits below a dollar.
func usdText(f Figure) string {
	switch {
	case !f.Known():
		return f.Text(0)
	case f > 0 && f < 0.0001:
		return "< $0.0001"
	case f != 0 && f < 1:
		return "$" + f.Text(4)
	}
	return "$" + grouped(f.Text(2))
}

// grouped puts a thin space between thousands.
func grouped(digits string) string {
	whole, rest, dot := strings.Cut(digits, ".")
	for i := len(whole) - 3; i > 0 && whole[i-1] != '-'; i -= 3 {
		whole = whole[:i] + "\u202f" + whole[i:]
	}
	if dot {
		whole += "." + rest
	}
	return whole
}
