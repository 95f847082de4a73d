package decider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"penstock/infra/bus"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// outcomes reads the kind's outcomes; one message may be put back.
type outcomes struct {
	*bus.Reader
	back *bus.Msg
}

// openOutcomes reads on behind the last outcome that was taken in. Outcomes that
// have aged out of the stream meanwhile are counted as one gap: nobody knows how
// many of this kind they were.
func (d *Decider) openOutcomes(ctx context.Context, from uint64) error {
	if from == 1 {
		from = 0
	}
	subjects := []string{subject.OutcomesOf(string(d.kind))}
	return d.retry(ctx, "read outcomes", func(context.Context) error {
		r, err := d.opts.Client.Read(ctx, subject.OutcomesStream, subjects, from)
		var trimmed *bus.ErrTrimmed
		if errors.As(err, &trimmed) {
			d.opts.Metrics.SetAside(d.kind, "outcomes-trimmed", 1)
			d.log.Warn().Err(err).Msg("outcomes are gone from the bus")
			r, err = d.opts.Client.Read(ctx, subject.OutcomesStream, subjects, trimmed.First)
		}
		var beyond *bus.ErrBeyond
		if errors.As(err, &beyond) {
			return fmt.Errorf("%w: %w", ErrStateLost, err)
		}
		if err == nil {
			d.outcomes = &outcomes{Reader: r}
		}
		return err
	})
}

// takeOutcome takes in a message of OUTCOMES.
func (d *Decider) takeOutcome(ctx context.Context, m bus.Msg, ok bool) error {
	if !ok {
		err := d.outcomes.Err()
		var trimmed *bus.ErrTrimmed
		if errors.As(err, &trimmed) {
			return d.openOutcomes(ctx, d.state.Outcomes+1)
		}
		if err == nil {
			err = cmp.Or(ctx.Err(), bus.ErrClosed)
		}
		return err
	}
	d.state.Outcomes = m.Seq
	o, err := control.DecodeOutcome(m.Data)
	if err != nil || o.Kind != d.kind {
		d.opts.Metrics.SetAside(d.kind, "outcome-undecodable", 1)
		d.log.Warn().Err(err).Uint64("sequence", m.Seq).Str("subject", m.Subject).Msg("outcome cannot be used")
		return nil
	}
	// An imported location answers no move; the policy takes it in all the same,
	// in its turn, so that it is part of the recorded state.
	first := d.state.Answers.answer(o)
	d.opts.Metrics.Outcome(d.kind, o.Status, first || o.Status == control.Imported)
	d.policy.Apply(o)
	return nil
}

// nextOutcome waits for a message of OUTCOMES, but not past a time limit, after
// which ok and got are false.
func (d *Decider) nextOutcome(ctx context.Context, limit time.Duration) (m bus.Msg, ok, got bool, err error) {
	if b := d.outcomes.back; b != nil {
		d.outcomes.back = nil
		return *b, true, true, nil
	}
	t := d.opts.Clock.NewTimer(limit)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return m, false, false, ctx.Err()
	case m, ok = <-d.outcomes.C():
		return m, ok, true, nil
	case <-t.C():
		return m, false, false, nil
	}
}

// syncOutcomes takes in every outcome that the bus holds now.
func (d *Decider) syncOutcomes(ctx context.Context) error {
	for {
		var target uint64
		err := d.retry(ctx, "last outcome", func(ctx context.Context) error {
			m, err := d.opts.Client.Last(ctx, subject.OutcomesStream, subject.OutcomesOf(string(d.kind)))
			if errors.Is(err, bus.ErrNoMessage) {
				return nil
			}
			target = m.Seq
			return err
		})
		if err != nil {
			return err
		}
		if done, err := d.outcomesUpTo(ctx, target); done || err != nil {
			return err
		}
	}
}

// outcomesUpTo takes in outcomes up to a sequence. It gives up, not done, when
// none comes for a second: the last one may have gone from the stream.
func (d *Decider) outcomesUpTo(ctx context.Context, target uint64) (done bool, err error) {
	for d.state.Outcomes < target {
		m, ok, got, err := d.nextOutcome(ctx, time.Second)
		if err != nil || !got {
			return false, err
		}
		if ok && m.Seq > target {
			d.outcomes.back = &m
			return true, nil
		}
		if err := d.takeOutcome(ctx, m, ok); err != nil {
			return false, err
		}
	}
	return true, nil
}

// operator reads KV operator, in whole, whenever it has changed.
type operator struct {
	kv       jetstream.KeyValue
	kind     control.Kind
	revision uint64 // up to which it was read
	read     bool
	switches control.Switches
}

func (d *Decider) openOperator(ctx context.Context) error {
	return d.retry(ctx, "open operator's switches", func(ctx context.Context) error {
		kv, err := d.opts.Client.KV(ctx, subject.OperatorKV)
		if err == nil {
			d.operator = &operator{kv: kv, kind: d.kind}
		}
		return err
	})
}

// refresh takes in the switches as the bus holds them now. One request tells
// whether anything has changed since.
func (o *operator) refresh(ctx context.Context) error {
	st, err := o.kv.Status(ctx)
	if err != nil {
		return fmt.Errorf("operator's switches: %w", err)
	}
	b, ok := st.(*jetstream.KeyValueBucketStatus)
	if !ok {
		return fmt.Errorf("operator's switches: status of type %T: %w", st, errForGood)
	}
	last := b.StreamInfo().State.LastSeq
	if o.read && last == o.revision {
		return nil
	}
	entries, err := o.entries(ctx)
	if err != nil {
		return err
	}
	for _, e := range entries {
		last = max(last, e.Revision)
	}
	o.switches, o.revision, o.read = control.SwitchesOf(o.kind, entries), last, true
	return nil
}

func (o *operator) entries(ctx context.Context) ([]control.Entry, error) {
	w, err := o.kv.WatchAll(ctx, jetstream.IgnoreDeletes())
	if err != nil {
		return nil, fmt.Errorf("operator's switches: %w", err)
	}
	defer func() { _ = w.Stop() }() // it only drops the subscription
	var out []control.Entry
	for {
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("operator's switches: %w", ctx.Err())
		case e, ok := <-w.Updates():
			if !ok {
				return nil, fmt.Errorf("operator's switches: the watch ended: %w", bus.ErrClosed)
			}
			if e == nil {
				return out, nil
			}
			out = append(out, control.Entry{Key: e.Key(), Value: e.Value(), Revision: e.Revision()})
		}
	}
}
