package decider

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"penstock/infra/bus"
	"penstock/schemas/subject"
)

const (
	// keepLeast is how many messages of a subject of COMMANDS always stay.
	keepLeast = 64
	// keepWindows is how many windows back no command is trimmed, answered or
	// not (DESIGN §3).
	keepWindows = 24
)

// history remembers the latest sequences of the kind's subjects on COMMANDS. It
// is not part of a snapshot: after a restart nothing is trimmed until there are
// enough of them again.
type history struct {
	records  []uint64            // the last keepLeast
	commands map[string][]uint64 // the last keepLeast by scope
	snapshot uint64              // record of the snapshot before the latest
	latest   uint64              // record of the latest
}

func (h *history) record(seq uint64) { h.records = keep(h.records, seq) }

func (h *history) command(scope string, seq uint64) {
	if h.commands == nil {
		h.commands = map[string][]uint64{}
	}
	h.commands[scope] = keep(h.commands[scope], seq)
}

func keep(seqs []uint64, seq uint64) []uint64 {
	if len(seqs) == keepLeast {
		copy(seqs, seqs[1:])
		seqs[keepLeast-1] = seq
		return seqs
	}
	return append(seqs, seq)
}

// below is the sequence below which messages of a subject may go: below the last
// two snapshots, below what was decided keepWindows ago, and below the last
// keepLeast of the subject. 0: none.
func (h *history) below(subjectSeqs []uint64) uint64 {
	if len(subjectSeqs) < keepLeast || len(h.records) < keepWindows {
		return 0
	}
	return min(h.snapshot, h.records[len(h.records)-keepWindows], subjectSeqs[0])
}

// snapshot stores the state, as of the last record, and trims what it and the
// one before it make superfluous. A decider that has been fenced without knowing
// it stores none.
func (d *Decider) snapshot(ctx context.Context) error {
	last, err := d.lastRecord(ctx)
	if err != nil {
		return err
	}
	if last.Seq != d.state.Record {
		return fmt.Errorf("last record has sequence %d, ours %d: %w", last.Seq, d.state.Record, ErrFenced)
	}
	start := d.opts.Clock.Now()
	var b bytes.Buffer
	if err := writeSnapshot(&b, &d.state, d.asm, d.policy); err != nil {
		return err
	}
	config := d.policy.Config()
	err = d.retry(ctx, "store snapshot", func(ctx context.Context) error {
		// The snapshot names its configuration, which must be there before it.
		if err := d.store.putConfig(ctx, config); err != nil {
			return err
		}
		return d.store.put(ctx, b.Bytes(), d.group, d.asm.Sequences())
	})
	if err != nil {
		return err
	}
	d.since = 0
	d.history.snapshot, d.history.latest = d.history.latest, d.state.Record
	d.opts.Metrics.Snapshot(d.kind, b.Len(), d.opts.Clock.Now().Sub(start))
	if d.opts.Purpose == bus.Serve {
		d.trim(ctx)
	}
	return nil
}

// trim trims WINDOWS and COMMANDS. What cannot be trimmed now is trimmed after
// the next snapshot.
func (d *Decider) trim(ctx context.Context) {
	if err := d.trimWindows(ctx); err != nil {
		d.log.Warn().Err(err).Msg("windows are not trimmed")
	}
	kind := string(d.kind)
	if err := d.opts.Client.Trim(ctx, subject.CommandsStream, d.history.below(d.history.records), subject.Decisions(kind)); err != nil {
		d.log.Warn().Err(err).Msg("decisions are not trimmed")
	}
	for _, scope := range slices.Sorted(maps.Keys(d.history.commands)) {
		below := d.history.below(d.history.commands[scope])
		if seq, found := d.state.Answers.oldest(scope); found {
			below = min(below, seq)
		}
		if err := d.opts.Client.Trim(ctx, subject.CommandsStream, below, subject.Commands(kind, scope)); err != nil {
			d.log.Warn().Err(err).Str("scope", scope).Msg("commands are not trimmed")
		}
	}
}

// trimWindows drops the flushes that every stored snapshot covers. The commit
// that a snapshot stands at stays, so a subject always keeps one.
func (d *Decider) trimWindows(ctx context.Context) error {
	covered, ok, err := d.store.covered(ctx, d.group, d.opts.Client.Partitions())
	if err != nil || !ok {
		return err
	}
	for p, seq := range covered {
		if err := d.opts.Client.Trim(ctx, subject.WindowsStream, seq, subject.Windows(d.group, p)); err != nil {
			return err
		}
	}
	return nil
}
