package experiment

import (
	"fmt"

	"penstock/pipeline/experiment/sheet"
)

// JSON is the result for machines.
func (r *Result) JSON() ([]byte, error) { return sheet.JSON(r) }

// Write writes experiment.json and experiment.html into a folder, which it makes
// if it must.
func (r *Result) Write(dir string) error {
	return sheet.Write(dir, "experiment", r, &sheet.Page{
		Title: "Penstock: the placement experiment",
		About: fmt.Sprintf("The paper's evaluation (adaptive data placement for social networks in a multicloud), played again on made-up days. "+
			"Standard friend model, named in advance: %s. alpha %v, beta %v.", r.Standard, r.Alpha, r.Beta),
		Tables: r.Tables(), Plots: r.plots,
	})
}
