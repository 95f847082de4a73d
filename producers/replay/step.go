package replay

import (
	"context"
	"fmt"
	"time"

	"penstock/schemas/control"
	"penstock/schemas/window"
)

// turn closes the open window, if any, and opens the one of time t.
func (r *run) turn(ctx context.Context, t int64) error {
	if err := r.closeWindow(ctx); err != nil {
		return err
	}
	r.windowEnd = window.Start(t, r.o.Width) + r.width
	r.open, r.expected = true, false
	return nil
}

// closeWindow is a window's step, see the package's description.
func (r *run) closeWindow(ctx context.Context) error {
	if !r.open {
		return nil
	}
	r.open = false
	end := r.windowEnd
	if r.o.NoWait {
		if err := r.answers.poll(ctx); err != nil {
			return err
		}
		r.applyAnswers(end)
	}
	for _, o := range r.table.Turn() {
		r.ledger.Touch(o)
	}
	if err := r.ledger.Flush(ctx, end); err != nil {
		return err
	}
	if err := r.publisher.Barrier(ctx, end); err != nil {
		return fmt.Errorf("barrier: %w", err)
	}
	r.sum.Windows++
	if !r.o.NoWait && r.expected {
		r.progress(true)
		if err := r.answers.await(ctx, end); err != nil {
			return err
		}
		r.applyAnswers(end)
	}
	r.progress(false)
	if end <= r.resumed {
		return nil
	}
	return r.note(end)
}

// applyAnswers takes in the answered windows up to end: routes, observer, sums.
func (r *run) applyAnswers(end int64) {
	for _, a := range r.answers.take(end) {
		r.sum.Decided++
		r.sum.Moves += int64(len(a.outcomes))
		for i := range a.outcomes {
			o := &a.outcomes[i]
			r.sum.Outcomes[o.Status]++
			if o.Status == control.Done {
				r.table.Apply(a.moves[i].Owner, a.moves[i].To, a.moves[i].Version)
			}
		}
		if r.o.Observer != nil {
			r.o.Observer.Window(a.end, a.decision, a.moves, a.outcomes)
		}
	}
}

// saveEvery is how often the cursor is written at most. One that lags behind
// costs a resumed run some duplicates and nothing else, while a sync a window
// would be most of the time of a recording of thousands of thin windows.
const saveEvery = 200 * time.Millisecond

// note moves the cursor behind an answered window.
func (r *run) note(end int64) error {
	r.cursor.Window = &end
	r.cursor.Acked = append(r.cursor.Acked[:0], r.publisher.Sequences()...)
	r.cursor.Rows, r.cursor.Rejected, r.cursor.Horizon = r.sum.Read, r.rejects.seen, r.buffer.Horizon()
	if now := r.o.Clock.Now(); now.Sub(r.saved) >= saveEvery {
		r.saved = now
		return r.cursor.write(r.o.StateDir)
	}
	return nil
}
