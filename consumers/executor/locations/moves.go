package locations

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"penstock/infra/bus"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

type moveKey struct {
	owner   string
	version uint64
}

// UnderWay returns the moves that were sent to be applied and have no outcome on
// the bus, by owner. Messages that can't be read are nobody's move.
func UnderWay(ctx context.Context, c *bus.Client) (map[string]control.Move, error) {
	kind := string(control.Placement)
	open := map[moveKey]control.Move{}
	// Outcomes of a command come after those that its decision knew of.
	knew := map[int64]uint64{}
	from, all := ^uint64(0), false
	err := c.Each(ctx, subject.CommandsStream, []string{subject.Decisions(kind), subject.CommandsOf(kind)}, 0, func(m bus.Msg) error {
		if m.Subject == subject.Decisions(kind) {
			if d, err := control.DecodeDecision(m.Data); err == nil {
				knew[d.Window.End.UnixMicro()], _ = strconv.ParseUint(strings.Join(m.Header[control.HeaderOutcomes], ""), 10, 64)
			}
			return nil
		}
		k, err := control.DecodeCommand(m.Data)
		if err != nil || k.Mode != control.Act || k.Placement == nil {
			return nil //nolint:nilerr // It moves nothing: no mover reads it either.
		}
		seq, known := knew[k.Window.End.UnixMicro()]
		from, all = min(from, seq+1), all || !known
		for _, mv := range k.Placement.Moves {
			open[moveKey{mv.Owner, mv.Version}] = mv
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("moves under way: %w", err)
	}
	if all {
		from = 0
	}
	if len(open) > 0 {
		err = c.Each(ctx, subject.OutcomesStream, []string{subject.OutcomesOf(kind)}, from, func(m bus.Msg) error {
			if o, err := control.DecodeOutcome(m.Data); err == nil && o.Status != control.Advised && o.Status != control.Imported {
				delete(open, moveKey{o.Owner, o.Move})
			}
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("moves under way: %w", err)
	}
	out := make(map[string]control.Move, len(open))
	for _, mv := range open {
		if mv.Version >= out[mv.Owner].Version {
			out[mv.Owner] = mv
		}
	}
	return out, nil
}

// Told returns the owners of whom the bus holds an imported location. A decider
// that reads OUTCOMES hears of them there.
func Told(ctx context.Context, c *bus.Client) (map[string]struct{}, error) {
	out := map[string]struct{}{}
	err := c.Each(ctx, subject.OutcomesStream, []string{subject.OutcomesOf(string(control.Placement))}, 0, func(m bus.Msg) error {
		if o, err := control.DecodeOutcome(m.Data); err == nil && o.Status == control.Imported {
			out[o.Owner] = struct{}{}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("imported locations: %w", err)
	}
	return out, nil
}

// Failing is an owner whose last moves came to nothing.
type Failing struct {
	Owner  string         `json:"owner"`
	To     string         `json:"to"`
	Count  int            `json:"count"` // of moves running
	Status control.Status `json:"status"`
	Reason string         `json:"reason,omitempty"`
	Move   uint64         `json:"move"` // version of the last one
	At     time.Time      `json:"at"`
}

// FailingMoves reads the newest outcomes, at most last of them, and returns the
// owners whose last move failed, was refused or expired, by owner. An import
// clears an owner until its next move fails: that is one more in a row, for none
// was done in between.
func FailingMoves(ctx context.Context, c *bus.Client, last uint64) ([]Failing, error) {
	st, err := c.State(ctx, subject.OutcomesStream)
	if err != nil {
		return nil, fmt.Errorf("failing moves: %w", err)
	}
	from := uint64(0)
	if st.LastSeq > last {
		from = max(st.FirstSeq, st.LastSeq-last+1)
	}
	by, cleared := map[string]Failing{}, map[string]bool{}
	err = c.Each(ctx, subject.OutcomesStream, []string{subject.OutcomesOf(string(control.Placement))}, from, func(m bus.Msg) error {
		o, err := control.DecodeOutcome(m.Data)
		if err != nil {
			return nil //nolint:nilerr // It is nobody's.
		}
		switch o.Status {
		case control.Done:
			delete(by, o.Owner)
		case control.Imported:
			cleared[o.Owner] = true
		case control.Failed, control.Refused, control.Expired:
			delete(cleared, o.Owner)
			by[o.Owner] = Failing{
				Owner: o.Owner, To: o.Scope, Count: by[o.Owner].Count + 1, Status: o.Status, Reason: o.Reason, Move: o.Move, At: o.At.UTC(),
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("failing moves: %w", err)
	}
	out := make([]Failing, 0, len(by))
	for _, f := range by {
		if !cleared[f.Owner] {
			out = append(out, f)
		}
	}
	slices.SortFunc(out, func(a, b Failing) int { return strings.Compare(a.Owner, b.Owner) })
	return out, nil
}
