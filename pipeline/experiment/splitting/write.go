package splitting

import (
	"fmt"

	"penstock/pipeline/experiment/sheet"
)

// JSON is the result for machines.
func (r *Result) JSON() ([]byte, error) { return sheet.JSON(r) }

// page is the result for people.
func (r *Result) page() (*sheet.Page, error) {
	plots, err := r.plots()
	if err != nil {
		return nil, fmt.Errorf("experiment: plots: %w", err)
	}
	return &sheet.Page{
		Title: "Penstock: the request-splitting experiment",
		About: fmt.Sprintf("The paper's evaluation (application-aware request splitting for interactive cloud applications), simulated: %d seeds from %d on; "+
			"windows of 10 s, tables in force %v after a window's end. Dashed: the fault's beginning and end. Plots are of the first seed.",
			r.Seeds, r.FirstSeed, r.params.Time.Feedback),
		Tables: r.Tables(), Pictures: plots,
	}, nil
}

// Write writes experiment-split.json and experiment-split.html into a folder, which
// it makes if it must.
func (r *Result) Write(dir string) error {
	p, err := r.page()
	if err != nil {
		return err
	}
	return sheet.Write(dir, "experiment-split", r, p)
}
