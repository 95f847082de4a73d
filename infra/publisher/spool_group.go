package publisher

import (
	"errors"
	"fmt"
	"os"
	"slices"
)

// commit appends a group as one write and waits until it is on disk. The places
// of the batches are set. errFull and errors of the write leave the spool as it
// is.
func (s *spool) commit(batches []*entry, position []byte) error {
	seg, err := s.appendGroup(batches, position)
	if err != nil {
		return err
	}
	s.at("written")
	if !s.noSync {
		if err := seg.file.Sync(); err != nil {
			return fmt.Errorf("%w: %w", ErrSync, err)
		}
	}
	s.at("synced")
	return nil
}

// appendGroup writes a group to the active file. It takes the lock.
func (s *spool) appendGroup(batches []*entry, position []byte) (*segment, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := committed{number: s.last.number + 1, batches: len(batches), position: slices.Clone(position)}
	b := s.buf[:0]
	places := make([]place, len(batches))
	for i, e := range batches {
		rec := spooled{
			partition: e.partition, seq: e.seq, rows: e.rows, from: e.from, to: e.to,
			watermark: e.header.Watermark, msg: e.msg,
		}
		places[i].offset = int64(len(b))
		b = appendRecord(b, batchRecord, rec.append)
		places[i].length = len(b) - int(places[i].offset)
	}
	b = appendRecord(b, groupRecord, c.append)
	s.buf = b
	if err := s.makeGroupRoom(int64(len(b)), int64(len(batches))); err != nil {
		return nil, err
	}
	seg := s.active
	start := seg.size
	if err := s.write(seg, b); err != nil {
		return nil, err
	}
	for i, e := range batches {
		places[i].seg, places[i].offset = seg, places[i].offset+start
		e.place = &places[i]
		s.announced(e.partition, e.header.Dropped)
		s.head.seqs[e.partition] = max(s.head.seqs[e.partition], e.seq)
		s.head.watermark = max(s.head.watermark, e.header.Watermark)
	}
	seg.open += len(batches)
	s.open += int64(len(batches))
	s.last = c
	return seg, nil
}

// makeGroupRoom sees to it that the active file takes a group of n bytes. A new
// file begins with the position of the last group, and is on disk, before the
// one before it may go. The lock is held.
func (s *spool) makeGroupRoom(n, batches int64) error {
	if s.closed {
		return fmt.Errorf("spool: %w", os.ErrClosed)
	}
	if a := s.active; a == nil || a.size >= s.step || a.open == 0 && s.total+n > s.max && a.size > s.first {
		if err := s.rotate(); err != nil {
			return err
		}
		if a != nil {
			s.forget(a)
		}
	}
	if s.total+n > s.max || (s.open+batches)*leastCost > s.max {
		if s.open == 0 && len(s.files) == 1 {
			return fmt.Errorf("%d bytes in %d batches, expected at most %d: %w", n, batches, s.max, ErrSpoolSmall)
		}
		return errFull
	}
	return nil
}

// lastCommit is the last group's record. It takes the lock.
func (s *spool) lastCommit() committed {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// conclude notes that the run has ended on the bus, and keeps the one file that
// has the position. It takes the lock.
func (s *spool) conclude() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	for seg := range s.files {
		if seg.run == s.head.run && seg != s.active {
			s.forget(seg)
		}
	}
	// Should the note be lost, the next start ends the run once more.
	_ = s.write(s.active, appendRecord(nil, endRecord, func(b []byte) []byte { return b }))
}

// syncRun waits until what was written of a run is on disk. It takes the lock to
// find the files only.
func (s *spool) syncRun(run string) error {
	if s.noSync {
		return nil
	}
	s.mu.Lock()
	var files []*os.File
	for seg := range s.files {
		if seg.run == run && seg.file != nil {
			files = append(files, seg.file)
		}
	}
	s.mu.Unlock()
	var errs []error
	for _, f := range files {
		if err := f.Sync(); err != nil && !errors.Is(err, os.ErrClosed) {
			errs = append(errs, fmt.Errorf("spool: %w", err))
		}
	}
	return errors.Join(errs...)
}

// syncDir waits until the names of the folder's files are on disk.
func (s *spool) syncDir() error {
	d, err := os.Open(s.dir)
	if err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	return errors.Join(d.Sync(), d.Close())
}

// openFirst begins the run's first file. It takes the lock.
func (s *spool) openFirst() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rotate()
}
