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
	runs, err := p.spool.load(p.o.Partitions, p.count)
	if err != nil {
		return errors.Join(err, p.spool.close())
	}
	if torn := p.count.torn.Load(); torn > 0 {
		p.o.Logger.Error().Uint64("bytes", torn).Str("dir", p.o.SpoolDir).
			Msg("the spool has bytes that cannot be read; the batches in them are lost")
	}
	for _, r := range runs {
		p.resend(r)
	}
	p.spool.begin(p.o.Run, p.o.Entry, p.o.Partitions)
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
	p.out.add(&entry{fence: true, mark: end, onDone: func(error) { p.spool.finish(r.head.run) }})
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
	r.batches, r.last = append(r.batches, o.batches...), o.last
	for _, d := range o.drops {
		r.drops = addDrop(r.drops, d)
	}
}

// loadFile reads one file and cuts off what is torn at its end. A file of which
// nothing can be read is put aside; the result is then nil.
func (s *spool) loadFile(path string, partitions int, count *counters) (*oldRun, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("spool: %w", err)
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
	rest = r.parse(b, rest, seg, count)
	count.torn.Add(uint64(len(rest)))
	seg.size = int64(len(b) - len(rest))
	if seg.file, err = os.OpenFile(path, os.O_RDWR, 0o600); err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	if err := seg.file.Truncate(seg.size); err != nil {
		return nil, errors.Join(fmt.Errorf("spool: %w", err), seg.file.Close())
	}
	seg.open = len(r.batches)
	s.open += int64(seg.open)
	s.files[seg] = struct{}{}
	s.total += seg.size
	return r, nil
}

// parseHead reads the first record. A bus with other partitions than this one's
// has no room for the run.
func (r *oldRun) parseHead(b []byte, partitions int) (rest []byte, err error) {
	kind, payload, rest, err := cutRecord(b)
	if err != nil || kind != headRecord || r.head.parse(payload) != nil || len(r.head.seqs) != partitions {
		return nil, errTorn
	}
	return rest, nil
}

// parse reads the records after the head and returns what cannot be read.
func (r *oldRun) parse(all, rest []byte, seg *segment, count *counters) []byte {
	open := map[int64]*entry{}
	for len(rest) > 0 {
		offset := int64(len(all) - len(rest))
		kind, payload, next, err := cutRecord(rest)
		if err == nil {
			err = r.take(kind, payload, offset, len(rest)-len(next), seg, open, count)
		}
		if err != nil {
			break
		}
		rest = next
	}
	for _, e := range open {
		r.batches = append(r.batches, e)
	}
	slices.SortFunc(r.batches, func(a, b *entry) int { return int(a.place.offset - b.place.offset) })
	return rest
}

// take reads one record into the run; open are its batches by offset.
func (r *oldRun) take(kind byte, payload []byte, offset int64, length int, seg *segment, open map[int64]*entry, count *counters) error {
	switch kind {
	case batchRecord:
		var rec spooled
		if err := rec.parse(payload); err != nil {
			return err
		}
		if rec.partition >= len(r.head.seqs) {
			count.drop(DropPartition, 1, rec.rows)
			return nil
		}
		open[offset] = &entry{
			partition: rec.partition, seq: rec.seq, rows: rec.rows, from: rec.from, to: rec.to,
			size: len(rec.msg.Data), place: &place{seg: seg, offset: offset, length: length},
		}
		r.head.seqs[rec.partition] = max(r.head.seqs[rec.partition], rec.seq)
		r.head.watermark = max(r.head.watermark, rec.watermark)
	case doneRecord:
		f := fields{b: payload}
		at := f.uint()
		if err := f.end(); err != nil {
			return err
		}
		delete(open, int64(at))
	case dropRecord:
		d, err := parseDropped(payload)
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
