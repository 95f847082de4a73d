package coding

import (
	"fmt"

	"penstock/pipeline/experiment/sheet"
)

// file is the name of what is written, without its suffix.
const file = "experiment-coding"

// JSON is the result for machines.
func (r *Result) JSON() ([]byte, error) { return sheet.JSON(r) }

// Write writes experiment-coding.json and experiment-coding.html into a folder, which it
// makes if it must.
func (r *Result) Write(dir string) error {
	return sheet.Write(dir, file, r, &sheet.Page{
		Title: "Penstock: the coding experiment",
		About: fmt.Sprintf("The evaluation of TOFEC (adaptive erasure coding in front of an object store), simulated over the queue and the choosers of the live coder: "+
			"%d seeds from %d on, %d requests each that count. Loads are per cents of what (1,1) carries. Marks are those of PAPERS: [S] said by the paper, "+
			"[F] found elsewhere, [A] assumed, [A-r] assumed but recalled, [D] derived by us.", r.Seeds, r.FirstSeed, r.params.Requests),
		Tables: r.Tables(), Plots: r.plots,
	})
}
