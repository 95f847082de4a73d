package experiment

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"penstock/consumers/aggregator/ledger"
	"penstock/consumers/aggregator/rollup"
	"penstock/pipeline/whatif"
	"penstock/producers/workload"
	"penstock/schemas/event"
	"penstock/schemas/window"
)

// batchRows is how many rows go to the rollups at a time, as on the bus.
const batchRows = 8192

// frames makes a day up and adds it up to windows: each hour is a frame. The
// plan of the day is what the generator says of it.
func frames(ctx context.Context, p workload.Params, o whatif.Options) ([]*whatif.Frame, workload.Plan, error) {
	g, err := workload.New(p)
	if err != nil {
		return nil, workload.Plan{}, err
	}
	state, err := rollup.New(window.Owners, window.Widths{})
	if err != nil {
		return nil, workload.Plan{}, err
	}
	var (
		out     []*whatif.Frame
		rec     = whatif.NewRecording(o)
		batch   event.Requests
		class   = make([]ledger.Class, batchRows) // all counted
		r       event.Request
		start   = window.Start(p.Start.UnixMicro(), window.Traffic.Width)
		width   = window.Traffic.Width.Microseconds()
		deliver = func() {
			if batch.Len() > 0 {
				state.Add(&batch, class[:batch.Len()])
				batch.Reset()
			}
		}
		cut = func() {
			deliver()
			w := whatif.Window{Start: start, End: start + width, Tables: map[string]*window.Table{}}
			for _, t := range state.Tables() {
				w.Tables[t.Rollup.Name] = t
			}
			if len(w.Tables) > 0 {
				out = append(out, rec.Frame(w))
			}
			start += width
		}
	)
	for {
		err := g.Next(&r)
		if errors.Is(err, io.EOF) {
			cut()
			return out, g.Plan(), ctx.Err()
		}
		if err != nil {
			return nil, workload.Plan{}, fmt.Errorf("workload: %w", err)
		}
		for r.Time >= start+width {
			cut()
		}
		if batch.Append(&r); batch.Len() == batchRows {
			deliver()
			if ctx.Err() != nil {
				return nil, workload.Plan{}, ctx.Err()
			}
		}
	}
}

// hourOf is the hour of the day, UTC, of a time in µs.
func hourOf(us int64) int { return time.UnixMicro(us).UTC().Hour() }
