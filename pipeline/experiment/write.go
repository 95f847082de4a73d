package experiment

import (
	"fmt"

	"penstock/pipeline/experiment/sheet"
)

// JSON is the result for machines.
func (r *Result) JSON() ([]byte, error) { return sheet.JSON(r) }

// HTML is the result as one page that loads nothing from elsewhere.
func (r *Result) HTML() ([]byte, error) {
	plots, err := r.plots()
	if err != nil {
		return nil, fmt.Errorf("experiment: plots: %w", err)
	}
	p := sheet.Page{
		Title: "Penstock: the placement experiment",
		About: fmt.Sprintf("The paper's evaluation (adaptive data placement for social networks in a multicloud), played again on made-up days. "+
			"Standard friend model, named in advance: %s. alpha %v, beta %v.", r.Standard, r.Alpha, r.Beta),
		Tables: r.Tables(), Pictures: plots,
	}
	return p.HTML()
}

// Write writes experiment.json and experiment.html into a folder, which it makes
// if it must.
func (r *Result) Write(dir string) error {
	body, err := r.JSON()
	if err != nil {
		return err
	}
	html, err := r.HTML()
	if err != nil {
		return err
	}
	return sheet.Write(dir, "experiment", body, html)
}
