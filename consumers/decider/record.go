package decider

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

	"penstock/infra/bus"
	"penstock/schemas/control"
)

// recorded is a decision as it stands on COMMANDS, its parts joined.
type recorded struct {
	*control.Decision
	body     []byte
	of       int      // parts that it has
	seqs     []uint64 // of the records of the parts that are there
	windows  []uint64 // of WINDOWS, per partition
	outcomes uint64
	revision uint64
}

// nextRecord reads a record with all its parts; only the last record, at
// sequence last, may lack some.
func (d *Decider) nextRecord(ctx context.Context, in *bus.Reader, last uint64) (*recorded, error) {
	var rec *recorded
	for {
		var m bus.Msg
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case x, ok := <-in.C():
			if !ok {
				return nil, fmt.Errorf("records: %w", cmp.Or(in.Err(), ctx.Err(), bus.ErrClosed))
			}
			m = x
		}
		next, part, err := parseRecord(m)
		if err != nil {
			return nil, err
		}
		switch {
		case rec == nil && part == 1:
			rec = next
		case rec == nil || part != len(rec.seqs)+1 || next.of != rec.of || !next.Window.End.Equal(rec.Window.End):
			return nil, fmt.Errorf("record %d is part %d of %d out of its turn: %w", m.Seq, part, next.of, ErrDiverged)
		default:
			rec.seqs = append(rec.seqs, m.Seq)
		}
		if len(rec.seqs) == rec.of || m.Seq >= last {
			return rec, nil
		}
	}
}

func parseRecord(m bus.Msg) (rec *recorded, part int, err error) {
	r := &recorded{body: m.Data, seqs: []uint64{m.Seq}}
	if r.Decision, err = control.DecodeDecision(m.Data); err != nil {
		return nil, 0, fmt.Errorf("record %d: %w", m.Seq, err)
	}
	if part, r.of, err = Part(m.Header); err != nil {
		return nil, 0, fmt.Errorf("record %d: %w", m.Seq, err)
	}
	if r.windows, err = splitSequences(nats.Header(m.Header).Get(control.HeaderWindowsSeq)); err != nil {
		return nil, 0, fmt.Errorf("record %d: %w: %w", m.Seq, control.ErrUndecodable, err)
	}
	for name, to := range map[string]*uint64{control.HeaderOutcomes: &r.outcomes, control.HeaderOperator: &r.revision} {
		if *to, err = strconv.ParseUint(nats.Header(m.Header).Get(name), 10, 64); err != nil {
			return nil, 0, fmt.Errorf("record %d: header %s: %w: %w", m.Seq, name, control.ErrUndecodable, err)
		}
	}
	return r, part, nil
}

// Part says which part of how many a record on COMMANDS is: 1 of 1 without the
// header. All parts of a decision have the same body; a reader of decisions
// counts the window as decided at the last part and passes over the others.
func Part(h map[string][]string) (part, of int, err error) {
	s := nats.Header(h).Get(control.HeaderPart)
	if s == "" {
		return 1, 1, nil
	}
	a, b, _ := strings.Cut(s, "/")
	part, err1 := strconv.Atoi(a)
	of, err2 := strconv.Atoi(b)
	if err1 != nil || err2 != nil || part < 1 || part > of {
		return 0, 0, fmt.Errorf("header %s: got %.40q, expected i/n: %w", control.HeaderPart, s, control.ErrUndecodable)
	}
	return part, of, nil
}

// compare checks that a window that was decided again came out as recorded.
func (r *recorded) compare(dec *decision, parts int) error {
	switch {
	case dec.record.State != r.State:
		return fmt.Errorf("state %s recorded, %s decided again: %w", r.State, dec.record.State, ErrDiverged)
	case !slices.Equal(dec.record.Commands, r.Commands):
		return fmt.Errorf("%d commands recorded, %d decided again, or of other scopes or epochs (state %s): %w",
			len(r.Commands), len(dec.record.Commands), r.State, ErrDiverged)
	case parts != r.of:
		return fmt.Errorf("%d parts recorded, %d decided again: %w", r.of, parts, ErrDiverged)
	}
	return nil
}
