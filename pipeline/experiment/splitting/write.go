package splitting

import (
	"fmt"

	"penstock/pipeline/experiment/sheet"
)

// JSON is the result for machines.
func (r *Result) JSON() ([]byte, error) { return sheet.JSON(r) }

// Write writes experiment-split.json and experiment-split.html into a folder, which
// it makes if it must.
func (r *Result) Write(dir string) error {
	return sheet.Write(dir, "experiment-split", r, &sheet.Page{
		Title: "Penstock: the request-splitting experiment",
		About: fmt.Sprintf("The paper's evaluation (application-aware request splitting for interactive cloud applications), simulated: %d seeds from %d on; "+
			"windows of 10 s, tables in force %v after a window's end. Dashed: the fault's beginning and end. Plots are of the first seed.",
			r.Seeds, r.FirstSeed, r.params.Time.Feedback),
		Tables: r.Tables(), Plots: r.plots,
	})
}
