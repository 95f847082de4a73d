package serving

import (
	"fmt"

	"penstock/pipeline/experiment/sheet"
)

// file is the name of what is written, without its suffix.
const file = "experiment-servers"

// JSON is the result for machines.
func (r *Result) JSON() ([]byte, error) { return sheet.JSON(r) }

// Write writes experiment-servers.json and experiment-servers.html into a folder, which it
// makes if it must.
func (r *Result) Write(dir string) error {
	return sheet.Write(dir, file, r, &sheet.Page{
		Title: "Penstock: the servers experiment",
		About: fmt.Sprintf("The evaluation that the paper on request distribution with perceptrons announces, simulated over the live switch's own pool and the decider's own switching rule: "+
			"%d seeds, from %d on, and from %d on of what is held out. The paper gives no parameters: all of them are ours. Plots are of the first seed.", r.Seeds, r.FirstSeed, r.HeldOutSeed),
		Tables: r.Tables(), Plots: r.plots,
	})
}
