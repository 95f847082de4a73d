package decider

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"penstock/consumers/panes"
	"penstock/infra/bus"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// recover brings policy, open windows and loop to where the last record was
// written, and opens the readers there.
func (d *Decider) recover(ctx context.Context) error {
	if err := d.openStore(ctx); err != nil {
		return err
	}
	if err := d.openOperator(ctx); err != nil {
		return err
	}
	last, err := d.lastRecord(ctx)
	if err != nil {
		return err
	}
	d.at = last.Time
	restored, err := d.restore(ctx, last.Seq)
	if err != nil {
		return err
	}
	if err := d.openReaders(ctx); err != nil {
		return err
	}
	if last.Seq == d.state.Record {
		return nil
	}
	start := d.opts.Clock.Now()
	from := d.state.Windows
	if err := d.replay(ctx, last.Seq, restored); err != nil {
		return err
	}
	d.log.Info().Int64("windows", d.state.Windows-from).Dur("took", d.opts.Clock.Now().Sub(start)).Msg("recorded windows decided again")
	return nil
}

func (d *Decider) openStore(ctx context.Context) error {
	return d.retry(ctx, "open snapshots", func(ctx context.Context) error {
		o, err := d.opts.Client.Objects(ctx)
		if err == nil {
			d.store = &store{client: d.opts.Client, objects: o, kind: d.kind}
		}
		return err
	})
}

// restore takes the newest snapshot that can be used, and none if none can.
// Snapshots are of use up to the last record: one beyond it is of a bus that has
// lost what it had acknowledged.
func (d *Decider) restore(ctx context.Context, last uint64) (restored bool, err error) {
	var found []stored
	var faults []error
	err = d.retry(ctx, "read snapshots", func(ctx context.Context) (err error) {
		found, faults, err = d.store.snapshots(ctx)
		return err
	})
	if err != nil {
		return false, err
	}
	used := -1
	for _, s := range found {
		err := d.restoreOne(ctx, s, last)
		if err == nil {
			used = s.place
			break
		}
		if !errors.Is(err, ErrSnapshot) {
			return false, err
		}
		faults = append(faults, fmt.Errorf("snapshot %d: %w", s.place, err))
	}
	for _, f := range faults {
		d.opts.Metrics.SetAside(d.kind, "snapshot-unusable", 1)
		d.log.Warn().Err(f).Msg("snapshot cannot be used, trying an older one")
	}
	// The next snapshot must not overwrite the one in use.
	d.store.next, d.store.any = (used+1)%places, used >= 0
	d.setAside = d.asm.Stats()
	return used >= 0, nil
}

func (d *Decider) restoreOne(ctx context.Context, s stored, last uint64) error {
	if s.head.Loop.Record > last {
		return fmt.Errorf("after record %d, and the last one on the bus has sequence %d: %w", s.head.Loop.Record, last, ErrSnapshot)
	}
	p, err := d.policyOf(ctx, s.head.Config)
	if errors.Is(err, ErrStateLost) {
		return fmt.Errorf("%w: %w", ErrSnapshot, err)
	}
	if err != nil {
		return err
	}
	d.begin(p)
	if err := readSnapshot(s.head, s.rest, d.asm, p); err != nil {
		return errors.Join(err, d.beginAgain())
	}
	d.state = s.head.Loop
	return nil
}

// beginAgain goes back to the first state of today's configuration.
func (d *Decider) beginAgain() error {
	p, err := d.opts.policy(d.opts.Config)
	if err != nil {
		return err
	}
	d.begin(p)
	return nil
}

// policyOf makes the policy, in its first state, of a configuration that was in
// force once.
func (d *Decider) policyOf(ctx context.Context, digest string) (Policy, error) {
	today, err := d.opts.policy(d.opts.Config)
	if err != nil || ConfigDigest(today.Config()) == digest {
		return today, err
	}
	var config []byte
	err = d.retry(ctx, "read configuration", func(ctx context.Context) (err error) {
		config, err = d.store.config(ctx, digest)
		return err
	})
	if err != nil {
		return nil, err
	}
	if config == nil {
		return nil, fmt.Errorf("configuration %s is not in the bucket: %w", digest, ErrStateLost)
	}
	p, err := d.opts.policy(config)
	if err != nil {
		return nil, err
	}
	if got := ConfigDigest(p.Config()); got != digest {
		return nil, fmt.Errorf("configuration %s is written %s by this program: %w", digest, got, ErrDiverged)
	}
	return p, nil
}

func (d *Decider) openReaders(ctx context.Context) error {
	err := d.retry(ctx, "read windows", func(context.Context) (err error) {
		d.windows, err = panes.Read(ctx, d.opts.Client, d.asm)
		var beyond *bus.ErrBeyond
		if errors.As(err, &beyond) {
			return fmt.Errorf("%w: %w", ErrStateLost, err)
		}
		return err
	})
	if err != nil {
		return err
	}
	return d.openOutcomes(ctx, d.state.Outcomes+1)
}

// replay decides the recorded windows up to the last record again.
func (d *Decider) replay(ctx context.Context, last uint64, restored bool) error {
	from := d.state.Record + 1
	if from == 1 {
		from = 0
	}
	var in *bus.Reader
	err := d.retry(ctx, "read records", func(context.Context) (err error) {
		in, err = d.opts.Client.Read(ctx, subject.CommandsStream, []string{subject.Decisions(string(d.kind))}, from)
		var trimmed *bus.ErrTrimmed
		if errors.As(err, &trimmed) {
			return fmt.Errorf("%w: %w", ErrStateLost, err)
		}
		return err
	})
	if err != nil {
		return err
	}
	defer in.Close()
	for d.state.Record < last {
		rec, err := d.nextRecord(ctx, in, last)
		if err != nil {
			return err
		}
		if err := d.again(ctx, rec, restored); err != nil {
			return fmt.Errorf("window ending %s, record %d: %w", rec.Window.End.Format(time.RFC3339), rec.seqs[0], err)
		}
	}
	return nil
}

// again decides one recorded window again and sends the parts that are missing.
func (d *Decider) again(ctx context.Context, rec *recorded, restored bool) error {
	if rec.Policy != d.config {
		if err := d.switchTo(ctx, rec.Policy); err != nil {
			return err
		}
	}
	d.dirty = true
	w, err := d.recordedWindow(ctx, rec, restored)
	if err != nil {
		return err
	}
	if span := w.Span(); !span.End.Equal(rec.Window.End) || !span.Start.Equal(rec.Window.Start) {
		return fmt.Errorf("the next window on the bus ends %s: %w", span.End.Format(time.RFC3339), d.beginningOr(restored))
	}
	if err := d.recordedOutcomes(ctx, rec.outcomes); err != nil {
		return err
	}
	in := d.state.recorded(rec.Decision, rec.revision)
	dec, err := d.ask(w, in)
	if err != nil {
		return err
	}
	parts := divide(dec.commands)
	if err := rec.compare(dec, len(parts)); err != nil {
		return err
	}
	// What is on the bus stands, to the letter.
	dec.record, dec.body = rec.Decision, rec.body
	for i := range parts {
		if i < len(rec.seqs) {
			d.sent(dec, parts[i], rec.seqs[i])
		} else if err := d.send(ctx, dec, parts, i, w, in); err != nil {
			return err
		}
	}
	d.state.decided(dec, in, d.state.Record)
	d.dirty = false
	d.since++
	d.history.record(d.state.Record)
	return nil
}

// beginningOr is why a recorded window is not the next one: without a snapshot
// the bus may just not reach back to the beginning any more.
func (d *Decider) beginningOr(restored bool) error {
	if !restored && d.state.Windows == 0 {
		return ErrStateLost
	}
	return ErrDiverged
}

// recordedWindow waits for the window of a record to close. What closed it is on
// the bus since before the record, or lost.
func (d *Decider) recordedWindow(ctx context.Context, rec *recorded, restored bool) (*panes.Window, error) {
	checked := false
	for {
		if w := d.asm.Close(); w != nil {
			return w, nil
		}
		if behind(d.asm.Sequences(), rec.windows) == 0 {
			return nil, fmt.Errorf("no window closes at sequences %v of WINDOWS: %w", rec.windows, d.beginningOr(restored))
		}
		if !checked {
			if err := d.checkHeld(ctx, subject.WindowsStream, behind(d.asm.Sequences(), rec.windows)); err != nil {
				return nil, err
			}
			checked = true
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case m, ok := <-d.windows.C():
			if err := d.takeWindows(ctx, m, ok); err != nil {
				return nil, err
			}
		}
	}
}

// behind is the greatest of want that have does not reach, 0 if it reaches all.
func behind(have, want []uint64) uint64 {
	var most uint64
	for p := range want {
		if p >= len(have) || have[p] < want[p] {
			most = max(most, want[p])
		}
	}
	return most
}

// checkHeld makes sure that a stream goes as far as a sequence that was read
// from it once.
func (d *Decider) checkHeld(ctx context.Context, stream string, seq uint64) error {
	return d.retry(ctx, "look at "+stream, func(ctx context.Context) error {
		st, err := d.opts.Client.State(ctx, stream)
		if err == nil && st.LastSeq < seq {
			return fmt.Errorf("%s ends at sequence %d, and %d was read from it: %w", stream, st.LastSeq, seq, ErrStateLost)
		}
		return err
	})
}

// recordedOutcomes takes in outcomes up to the recorded sequence.
func (d *Decider) recordedOutcomes(ctx context.Context, upTo uint64) error {
	if d.state.Outcomes >= upTo {
		return nil
	}
	if err := d.checkHeld(ctx, subject.OutcomesStream, upTo); err != nil {
		return err
	}
	for {
		if done, err := d.outcomesUpTo(ctx, upTo); err != nil {
			return err
		} else if done {
			break
		}
	}
	if d.state.Outcomes != upTo {
		return fmt.Errorf("outcome %d is gone from the bus: %w", upTo, ErrStateLost)
	}
	return nil
}

// switchTo goes on with the same state under another configuration. Before the
// first window there is none but what was imported: that is in the configuration
// or comes from OUTCOMES, which is read from its beginning again.
func (d *Decider) switchTo(ctx context.Context, digest string) error {
	p, err := d.policyOf(ctx, digest)
	if err != nil {
		return err
	}
	if p.Width() != d.policy.Width() || p.Groups()[0] != d.group {
		return fmt.Errorf("windows of %s %s instead of %s %s cannot go on from the same state: %w",
			p.Width(), p.Groups()[0], d.policy.Width(), d.group, ErrOptions)
	}
	if d.state.Windows > 0 {
		var b bytes.Buffer
		if err := d.policy.Snapshot(&b); err != nil {
			return fmt.Errorf("hand the state over to configuration %s: %w", digest, err)
		}
		if err := p.Restore(&b); err != nil {
			return fmt.Errorf("hand the state over to configuration %s: %w", digest, err)
		}
	}
	if d.state.Windows == 0 && d.state.Outcomes > 0 {
		d.state.Outcomes = 0
		if d.outcomes != nil {
			d.outcomes.Close()
			if err := d.openOutcomes(ctx, 1); err != nil {
				return err
			}
		}
	}
	d.log.Info().Str("from", d.config).Str("to", digest).Msg("configuration changes between windows")
	d.policy, d.config = p, digest
	return nil
}

// goLive stores today's configuration and goes on under it, after a snapshot if
// it is another one.
func (d *Decider) goLive(ctx context.Context) error {
	p, err := d.opts.policy(d.opts.Config)
	if err != nil {
		return err
	}
	config := p.Config()
	err = d.retry(ctx, "store configuration", func(ctx context.Context) error { return d.store.putConfig(ctx, config) })
	if err != nil {
		return err
	}
	if d.opts.Purpose == bus.Serve && !d.store.any {
		// From now on nobody trims what this kind needs: see store.covered.
		if err := d.snapshot(ctx); err != nil {
			return err
		}
	}
	if digest := ConfigDigest(config); digest != d.config {
		if d.state.Windows > 0 {
			if err := d.snapshot(ctx); err != nil {
				return err
			}
		}
		return d.switchTo(ctx, digest)
	}
	return nil
}

// Loaded is what the bus says of a kind's decider, without one running.
type Loaded struct {
	Policy  Policy
	Window  control.Window // the last decided one
	Windows int64
}

// Load recovers the policy's state as of the last record and of the outcomes
// that have come since, for those who only want to look at it. Nothing is sent
// and nothing stored; a decision of which
// parts are missing ends with ErrFenced.
func Load(ctx context.Context, opts Options) (*Loaded, error) {
	d, err := New(opts)
	if err != nil {
		return nil, err
	}
	d.publish = func(context.Context, []bus.Msg, uint64) (uint64, error) {
		return 0, fmt.Errorf("parts of the last decision are missing, and a reader sends none: %w", ErrFenced)
	}
	defer d.closeReaders()
	if err := d.recover(ctx); err != nil {
		return nil, fmt.Errorf("load decider %s: %w", d.kind, err)
	}
	if err := d.syncOutcomes(ctx); err != nil {
		return nil, fmt.Errorf("load decider %s: %w", d.kind, err)
	}
	return &Loaded{Policy: d.policy, Window: d.state.Window, Windows: d.state.Windows}, nil
}
