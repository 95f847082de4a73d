package topology

import (
	"context"
	"errors"
	"fmt"
	"time"

	"penstock/consumers/decider"
	"penstock/consumers/executor/locations"
	"penstock/infra/bus"
	"penstock/infra/clock"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// ErrUnsettled is returned when decisions or moves that a replay waits for at
// its end do not come. State and bus are as they are; the same command goes on.
var ErrUnsettled = errors.New("decisions or moves make no progress")

// settle brings a replay to rest before its stores are verified. In lockstep
// all windows of placement are answered already; without, decider and mover catch
// up here, and those of the other kinds, for whom nobody waits, do in any case. Then
// copies that moved away are deleted: a replay keeps none past its end.
func (r *running) settle(ctx context.Context) error {
	if r.NoWait {
		if err := r.catchUp(ctx); err != nil {
			return err
		}
	}
	if err := r.catchUpTables(ctx); err != nil {
		return err
	}
	if r.mover == nil || r.Apply {
		return nil
	}
	_, err := r.mover.Purge(ctx)
	return err
}

// catchUp waits until the last window is decided and, with a mover, until
// every move that was commanded is answered.
func (r *running) catchUp(ctx context.Context) error {
	client, err := r.bus.Client(ctx, "settle")
	if err != nil {
		return err
	}
	defer client.Close()
	if err := covered(ctx, client); err != nil {
		return err
	}
	end := r.collector.LastDecided()
	decisions := subject.Decisions(string(control.Placement))
	err = progress(ctx, "decision of the window ending "+end.Format(time.RFC3339), func() (uint64, bool, error) {
		m, err := client.Last(ctx, subject.CommandsStream, decisions)
		if errors.Is(err, bus.ErrNoMessage) {
			return 0, end.IsZero(), nil
		}
		if err != nil {
			return 0, false, err
		}
		d, err := control.DecodeDecision(m.Data)
		if err != nil {
			return 0, false, err
		}
		return m.Seq, !d.Window.End.Before(end), nil
	})
	if err != nil || r.mover == nil {
		return err
	}
	moves := uint64(0)
	err = client.Each(ctx, subject.CommandsStream, []string{decisions}, 0, func(m bus.Msg) error {
		if again(m) {
			return nil
		}
		d, err := control.DecodeDecision(m.Data)
		if err != nil || d.Mode != control.Act {
			return err
		}
		for _, c := range d.Commands {
			moves += uint64(c.Moves)
		}
		return nil
	})
	if err != nil {
		return err
	}
	// Between two runs of a replay its locations may have been imported.
	imported := uint64(0)
	err = client.Each(ctx, subject.OutcomesStream, []string{subject.OutcomesOf(string(control.Placement))}, 0, func(m bus.Msg) error {
		if locations.IsImport(m) {
			imported++
		}
		return nil
	})
	if err != nil {
		return err
	}
	return progress(ctx, fmt.Sprintf("outcomes of %d moves", moves), func() (uint64, bool, error) {
		st, err := client.State(ctx, subject.OutcomesStream)
		return st.LastSeq, st.LastSeq >= moves+imported, err
	})
}

// again reports whether a record was there before: a decision too large for
// one batch is sent in parts, each of which begins with the record.
func again(m bus.Msg) bool {
	part, _, err := decider.Part(m.Header)
	return err == nil && part > 1
}

// progress asks until the answer is true; it gives up when the number beside
// it has not changed for a minute.
func progress(ctx context.Context, what string, ask func() (uint64, bool, error)) error {
	clk := clock.System()
	since, was := clk.Now(), uint64(0)
	for {
		n, done, err := ask()
		if err != nil || done {
			return err
		}
		if n != was {
			was, since = n, clk.Now()
		}
		if clk.Now().Sub(since) > behindLimit {
			return fmt.Errorf("%s: nothing for %s: %w", what, behindLimit, ErrUnsettled)
		}
		if err := clk.Sleep(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
}
