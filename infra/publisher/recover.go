package publisher

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"penstock/schemas/event"
)

// oldRun is what the spool holds of a run that was not ended.
type oldRun struct {
	head    head
	grouped bool     // batches count only with the record of their group
	pending []*entry // of a group that is not whole yet
	highest int64    // watermark of pending
	ended   bool     // on the bus
	batches []*entry
	drops   []event.Dropped
	last    *segment
}

// recover opens the spool, puts what it holds of earlier runs first in line,
// each run followed by its end, and begins the new run.
func (p *Publisher) recover() error {
	var err error
	if p.spool, err = openSpool(p.o.SpoolDir, p.o.SpoolMax); err != nil {
		return err
	}
	p.spool.grouped, p.spool.noSync, p.spool.at = p.group != nil, p.o.NoSync, p.o.at
	runs, err := p.spool.load(p.o.Partitions, p.count)
	if err == nil && p.group == nil && p.spool.last.number > 0 {
		err = fmt.Errorf("%s: %w", p.o.SpoolDir, ErrPositions)
	}
	if err != nil {
		return errors.Join(err, p.spool.close())
	}
	if torn := p.count.torn.Load(); torn > 0 {
		p.o.Logger.Error().Uint64("bytes", torn).Str("dir", p.o.SpoolDir).
			Msg("the spool has bytes that cannot be read; the batches in them are lost")
	}
	p.spool.begin(p.o.Run, p.o.Entry, p.o.Partitions)
	if p.group != nil {
		// Only now may the files go that had the position until here.
		if err := p.spool.openFirst(); err != nil {
			return errors.Join(err, p.spool.close())
		}
	}
	for _, r := range runs {
		if r.ended {
			p.spool.finish(r.head.run)
			continue
		}
		p.resend(r)
	}
	return nil
}

// resend puts a run's batches in line, and behind them its end mark: it names
// the last sequences that were cut, and what was given up.
func (p *Publisher) resend(r *oldRun) {
	p.o.Logger.Info().Str("run", r.head.run).Int("batches", len(r.batches)).
		Msg("sending what the spool holds of an earlier run")
	p.count.recovered.Add(uint64(len(r.batches)))
	end := &event.Mark{
		Kind: event.End, Run: r.head.run, Watermark: r.head.watermark,
		Upto: r.head.seqs, Dropped: r.drops[:min(len(r.drops), mostTold)],
	}
	for _, e := range r.batches {
		e.old = end
		p.out.add(e)
	}
	p.resending.Add(1)
	p.out.add(&entry{fence: true, mark: end, onDone: func(error) {
		p.resending.Add(-1)
		p.spool.finish(r.head.run)
	}})
}

// load reads the files of the folder, oldest run first.
func (s *spool) load(partitions int, count *counters) ([]*oldRun, error) {
	paths, err := filepath.Glob(filepath.Join(s.dir, "*.spool"))
	if err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	slices.Sort(paths) // by run, which are ULIDs, and number
	var runs []*oldRun
	for _, path := range paths {
		r, err := s.loadFile(path, partitions, count)
		if err != nil {
			return nil, err
		}
		if r == nil {
			continue
		}
		r.last.keep = true
		if n := len(runs); n > 0 && runs[n-1].head.run == r.head.run {
			runs[n-1].last.keep = false
			runs[n-1].join(r)
		} else {
			runs = append(runs, r)
		}
	}
	return runs, nil
}

func (r *oldRun) join(o *oldRun) {
	for i, s := range o.head.seqs {
		r.head.seqs[i] = max(r.head.seqs[i], s)
	}
	r.head.watermark = max(r.head.watermark, o.head.watermark)
	r.ended = r.ended || o.ended
	r.batches, r.last = append(r.batches, o.batches...), o.last
	for _, d := range o.drops {
		r.drops = addDrop(r.drops, d)
	}
}

// loadFile reads one file and cuts off what is torn at its end. A file of which
// nothing can be read is put aside, an empty one is deleted; the result is then
// nil. The end of a group that is not whole goes too: it was never sent, and its
// rows are read again.
func (s *spool) loadFile(path string, partitions int, count *counters) (*oldRun, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	if len(b) == 0 {
		return nil, os.Remove(path)
	}
	seg := &segment{path: path}
	r := &oldRun{last: seg}
	rest, err := r.parseHead(b, partitions)
	if err != nil {
		count.torn.Add(uint64(len(b)))
		if err := os.Rename(path, path+".unreadable"); err != nil {
			return nil, fmt.Errorf("spool: %w", err)
		}
		return nil, nil
	}
	seg.run = r.head.run
	rest, last := r.parse(b, rest, seg, count)
	if !r.grouped {
		count.torn.Add(uint64(len(rest)))
	}
	if last.number > s.last.number {
		s.last = last
	}
	seg.size = int64(len(b) - len(rest))
	if seg.file, err = os.OpenFile(path, os.O_RDWR, 0o600); err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	if err := seg.file.Truncate(seg.size); err != nil {
		return nil, errors.Join(fmt.Errorf("spool: %w", err), seg.file.Close())
	}
	if r.grouped && !s.noSync { // a killed process may have left it to the kernel
		if err := seg.file.Sync(); err != nil {
			return nil, errors.Join(fmt.Errorf("spool: %w", err), seg.file.Close())
		}
	}
	if len(r.head.seqs) != partitions { // grouped, and of another bus
		if len(r.batches) > 0 {
			return nil, errors.Join(fmt.Errorf("%s: %d batches for %d partitions, expected %d: %w",
				path, len(r.batches), len(r.head.seqs), partitions, ErrPartitions), seg.file.Close())
		}
		r.ended = true // here its end means nothing
	}
	seg.open = len(r.batches)
	s.open += int64(seg.open)
	s.files[seg] = struct{}{}
	s.total += seg.size
	return r, nil
}

// parseHead reads the first record. A bus with other partitions than the run's
// has no room for it.
func (r *oldRun) parseHead(b []byte, partitions int) (rest []byte, err error) {
	kind, payload, rest, err := cutRecord(b)
	r.grouped = kind == groupHead
	if err != nil || kind != headRecord && !r.grouped || r.head.parse(payload) != nil || len(r.head.seqs) != partitions && !r.grouped {
		return nil, errTorn
	}
	return rest, nil
}

// parse reads the records after the head and returns what cannot be read, or
// belongs to a group that is not whole, and the last group.
func (r *oldRun) parse(all, rest []byte, seg *segment, count *counters) (left []byte, last committed) {
	open := map[int64]*entry{}
	left = rest
	for len(rest) > 0 {
		offset := int64(len(all) - len(rest))
		kind, payload, next, err := cutRecord(rest)
		if err == nil {
			err = r.take(record{kind, payload, place{seg, offset, len(rest) - len(next)}}, open, &last, count)
		}
		if err != nil {
			break
		}
		rest = next
		if len(r.pending) == 0 {
			left = rest
		}
	}
	r.pending = nil
	for _, e := range open {
		r.batches = append(r.batches, e)
	}
	slices.SortFunc(r.batches, func(a, b *entry) int { return int(a.place.offset - b.place.offset) })
	return left, last
}

// record is one of a file.
type record struct {
	kind    byte
	payload []byte
	place   place
}

// take reads one record into the run; open are its batches by offset.
func (r *oldRun) take(rec record, open map[int64]*entry, last *committed, count *counters) error {
	switch rec.kind {
	case batchRecord:
		return r.takeBatch(rec, open, count)
	case groupRecord:
		var c committed
		if err := c.parse(rec.payload); err != nil || c.batches != len(r.pending) {
			return errTorn
		}
		*last = c
		for _, e := range r.pending {
			open[e.place.offset] = e
			r.head.seqs[e.partition] = max(r.head.seqs[e.partition], e.seq)
		}
		if len(r.pending) > 0 {
			r.head.watermark = max(r.head.watermark, r.highest)
		}
		r.pending = r.pending[:0]
	case endRecord:
		r.ended = true
	case doneRecord:
		f := fields{b: rec.payload}
		at := f.uint()
		if err := f.end(); err != nil {
			return err
		}
		delete(open, int64(at))
	case dropRecord:
		d, err := parseDropped(rec.payload)
		if err != nil {
			return err
		}
		if d.Partition < len(r.head.seqs) {
			r.head.seqs[d.Partition] = max(r.head.seqs[d.Partition], d.Last)
			r.drops = addDrop(r.drops, d)
		}
	default:
		return errTorn
	}
	return nil
}

// takeBatch reads a batch record, into open or into the group that is not whole.
func (r *oldRun) takeBatch(rec record, open map[int64]*entry, count *counters) error {
	var b spooled
	if err := b.parse(rec.payload); err != nil {
		return err
	}
	if b.partition >= len(r.head.seqs) {
		count.drop(DropPartition, 1, b.rows)
		return nil
	}
	e := &entry{
		partition: b.partition, seq: b.seq, rows: b.rows, from: b.from, to: b.to,
		size: len(b.msg.Data), place: &rec.place,
	}
	if r.grouped {
		if len(r.pending) == 0 {
			r.highest = b.watermark
		}
		r.highest = max(r.highest, b.watermark)
		r.pending = append(r.pending, e)
		return nil
	}
	open[rec.place.offset] = e
	r.head.seqs[b.partition] = max(r.head.seqs[b.partition], b.seq)
	r.head.watermark = max(r.head.watermark, b.watermark)
	return nil
}
