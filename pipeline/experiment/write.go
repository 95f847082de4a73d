package experiment

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
		Title: "Penstock: the placement experiment",
		About: fmt.Sprintf("The paper's evaluation (adaptive data placement for social networks in a multicloud), played again on made-up days. "+
			"Standard friend model, named in advance: %s. alpha %v, beta %v.", r.Standard, r.Alpha, r.Beta),
		Tables: r.Tables(), Pictures: plots,
	}, nil
}

// Write writes experiment.json and experiment.html into a folder, which it makes
// if it must.
func (r *Result) Write(dir string) error {
	p, err := r.page()
	if err != nil {
		return err
	}
	return sheet.Write(dir, "experiment", r, p)
}
