package decider

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"penstock/consumers/panes"
	"penstock/infra/bus"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// maxPartBytes bounds a part beside the number of its messages: a server holds a
// batch back until its last message is there. 32 MiB.
const maxPartBytes = 32 << 20

// decide decides a closed window and publishes it.
func (d *Decider) decide(ctx context.Context, w *panes.Window) error {
	// The window is not in the assembler any more, and not yet decided.
	d.dirty = true
	if err := d.syncOutcomes(ctx); err != nil {
		return err
	}
	if err := d.retry(ctx, "operator's switches", d.operator.refresh); err != nil {
		return err
	}
	fellBack := d.state.Fallback != nil
	in := d.state.inputs(d.operator.switches, d.operator.revision, d.opts.Mode, len(w.Incomplete) > 0)
	if fellBack && in.fallback == nil {
		d.log.Warn().Time("window", w.Span().End).Str("mode", string(in.mode)).Msg("the operator has set the mode again: no longer fallen back to advise")
	}
	dec, err := d.ask(w, in)
	if err != nil {
		return err
	}
	start := d.opts.Clock.Now()
	parts := divide(dec.commands)
	for i := range parts {
		if err := d.send(ctx, dec, parts, i, w, in); err != nil {
			return err
		}
	}
	d.state.decided(dec, in, d.state.Record)
	if dec.broken != nil {
		d.log.Warn().Time("window", w.Span().End).Str("why", dec.broken.Text).Msg("outcomes contradict what was promised: from the next window on this kind only advises, until its mode is set again")
	}
	d.dirty = false
	d.at = d.opts.Clock.Now()
	d.since++
	d.history.record(d.state.Record)
	d.opts.Metrics.Published(d.kind, len(dec.commands)+len(parts), d.opts.Clock.Now().Sub(start))
	d.report(Deciding, nil)
	d.reportSetAside(dec)
	if d.since >= d.opts.SnapshotEvery {
		return d.snapshot(ctx)
	}
	return nil
}

// ask lets the policy decide.
func (d *Decider) ask(w *panes.Window, in inputs) (*decision, error) {
	start := d.opts.Clock.Now()
	ask := in.asks(w.Span(), w.Tables, w.Incomplete)
	out := d.policy.Decide(ask)
	f := frame{kind: d.kind, window: ask.Window, ttl: d.ttl, config: d.config}
	dec, err := compose(f, in, ask, out, d.policy.Digest(), d.state.Epochs)
	if err != nil {
		return nil, fmt.Errorf("window ending %s: %w", ask.Window.End.Format(time.RFC3339), err)
	}
	d.opts.Metrics.Decided(d.kind, dec.record, d.opts.Clock.Now().Sub(start))
	return dec, nil
}

// divide cuts commands into parts; there is always one.
func divide(commands []*command) [][]*command {
	var parts [][]*command
	size, from := 0, 0
	for i, c := range commands {
		if i > from && (i-from == bus.MaxBatch-1 || size+len(c.body) > maxPartBytes) {
			parts = append(parts, commands[from:i])
			size, from = 0, i
		}
		size += len(c.body)
	}
	return append(parts, commands[from:])
}

// send publishes part i of a decision under the record before it.
func (d *Decider) send(ctx context.Context, dec *decision, parts [][]*command, i int, w *panes.Window, in inputs) error {
	d.ids++
	id := d.instance + "-" + strconv.Itoa(d.ids)
	record := bus.Msg{
		Subject: subject.Decisions(string(d.kind)), Data: dec.body,
		Header: map[string][]string{
			control.HeaderSchema:     {control.DecisionSchema},
			control.HeaderDecision:   {id},
			control.HeaderWindowsSeq: {joinSequences(w.Sequences)},
			control.HeaderOutcomes:   {strconv.FormatUint(d.state.Outcomes, 10)},
			control.HeaderOperator:   {strconv.FormatUint(in.revision, 10)},
		},
	}
	if len(parts) > 1 {
		record.Header[control.HeaderPart] = []string{fmt.Sprintf("%d/%d", i+1, len(parts))}
	}
	msgs := append(make([]bus.Msg, 0, len(parts[i])+1), record)
	for _, c := range parts[i] {
		msgs = append(msgs, bus.Msg{
			Subject: subject.Commands(string(d.kind), c.Scope), Data: c.body,
			Header: map[string][]string{control.HeaderSchema: {control.CommandSchema}, control.HeaderDecision: {id}},
		})
	}
	seq, err := d.fenced(ctx, msgs, id)
	if err != nil {
		return fmt.Errorf("window ending %s: %w", dec.record.Window.End.Format(time.RFC3339), err)
	}
	d.sent(dec, parts[i], seq)
	return nil
}

// sent notes a part that is on the bus, its record at seq and its commands
// behind it.
func (d *Decider) sent(dec *decision, part []*command, seq uint64) {
	d.state.Record = seq
	for j, c := range part {
		at := seq + 1 + uint64(j)
		d.history.command(c.Scope, at)
		if dec.record.Mode == control.Act && c.Placement != nil {
			d.state.Answers.ask(dec.record.Window.End.UnixMicro(), c.Scope, at, c.Placement.Moves)
		}
	}
}

// fenced publishes messages whose first is a record, until it is known whether
// they are stored. It returns the record's sequence. A refusal is either by an
// earlier attempt of these same messages, whose answer was lost, or the end.
func (d *Decider) fenced(ctx context.Context, msgs []bus.Msg, id string) (seq uint64, err error) {
	err = d.retry(ctx, "publish decision", func(ctx context.Context) error {
		last, err := d.publish(ctx, msgs, d.state.Record)
		conflict := err
		switch {
		case err == nil:
			seq = last - uint64(len(msgs)-1)
			return nil
		case errors.Is(err, bus.ErrTooLarge):
			return fmt.Errorf("%w: %w", ErrTooLarge, err)
		case !errors.Is(err, bus.ErrConflict):
			return err
		}
		m, err := d.opts.Client.Last(ctx, subject.CommandsStream, msgs[0].Subject)
		if err != nil && !errors.Is(err, bus.ErrNoMessage) {
			return err
		}
		switch {
		case nats.Header(m.Header).Get(control.HeaderDecision) == id:
			seq = m.Seq
			return nil
		case m.Seq == d.state.Record:
			// Nobody has written: the refusal was of an attempt of ours that was
			// still under way.
			return conflict
		}
		return fmt.Errorf("its last record has sequence %d, ours %d: %w", m.Seq, d.state.Record, ErrFenced)
	})
	return seq, err
}

// reportSetAside counts what the window's reading and deciding left unused.
func (d *Decider) reportSetAside(dec *decision) {
	if dec.withheld > 0 {
		d.opts.Metrics.SetAside(d.kind, "commands-withheld", int64(dec.withheld))
	}
	now, was := d.asm.Stats(), d.setAside
	d.setAside = now
	for _, c := range []struct {
		reason   string
		now, was int64
	}{
		{"panes-abandoned", now.Abandoned, was.Abandoned},
		{"panes-cut", now.Cut, was.Cut},
		{"flushes-missed", now.Missed, was.Missed},
		{"rows-late", now.LateRows, was.LateRows},
		{"rows-too-late", now.TooLate, was.TooLate},
		{"intervals-too-late", now.IntervalsTooLate, was.IntervalsTooLate},
		{"rows-without-panes", now.CountsOnly, was.CountsOnly},
	} {
		if n := c.now - c.was; n > 0 {
			d.opts.Metrics.SetAside(d.kind, c.reason, n)
		}
	}
}
