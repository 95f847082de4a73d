package publisher

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"penstock/infra/bus"
	"penstock/infra/folderlock"
	"penstock/schemas/event"
)

// errFull is returned when the spool is at its bound.
var errFull = errors.New("the spool is full")

// leastCost is what a batch counts for at least: a waiting one takes memory too,
// a tenth of this.
const leastCost = 4 << 10

// spool keeps cut batches on disk until they are acknowledged. It is a few
// files of records; a file goes when nothing in it is open any more. The files
// of a live publisher are not synced: they are there for a process that dies,
// whose pages the kernel writes. After a power cut a run has gaps, which is what
// gaps are for. Groups are synced (spool_group.go): a position must not go back
// behind what was sent.
type spool struct {
	dir     string
	lock    *folderlock.Lock
	max     int64
	step    int64 // size at which a new file is begun
	grouped bool  // batches come in groups, with a position
	noSync  bool
	at      func(point string)

	mu     sync.Mutex
	last   committed // the last whole group
	first  int64     // size of the head of the active file, if grouped
	total  int64
	open   int64 // batches
	number int
	head   head            // of the next file
	drops  []event.Dropped // not yet announced by a batch or a mark
	active *segment        // nil until the first append
	files  map[*segment]struct{}
	buf    []byte
	closed bool
}

// segment is one file. Batches of it that are open are counted.
type segment struct {
	run  string
	path string
	file *os.File
	size int64
	open int
	keep bool // until the run is ended: it knows the run's sequences
}

// place is where a batch lies.
type place struct {
	seg    *segment
	offset int64
	length int
}

// openSpool locks the folder for this process.
func openSpool(dir string, most int64) (*spool, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	lock, err := folderlock.Take(dir, "spool.lock", 0o600)
	if errors.Is(err, folderlock.ErrHeld) {
		return nil, fmt.Errorf("%s: %w", dir, ErrSpoolInUse)
	}
	if err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	return &spool{
		dir: dir, lock: lock, max: most, step: min(most/8, 16<<20), files: map[*segment]struct{}{},
		at: func(string) {},
	}, nil
}

// begin sets the run whose batches are appended from now on.
func (s *spool) begin(run, entry string, partitions int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.head = head{run: run, entry: entry, seqs: make([]uint64, partitions), watermark: earliest}
}

// append writes a batch and returns its place; errFull leaves the spool as it
// is.
func (s *spool) append(e *entry, body []byte) (*place, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rec := spooled{
		partition: e.partition, seq: e.seq, rows: e.rows, from: e.from, to: e.to,
		watermark: e.header.Watermark, msg: e.msg,
	}
	rec.msg.Data = body
	s.buf = appendRecord(s.buf[:0], batchRecord, rec.append)
	n := len(s.buf)
	if err := s.makeRoom(int64(n)); err != nil {
		return nil, err
	}
	p := &place{seg: s.active, offset: s.active.size, length: n}
	if err := s.write(s.active, s.buf); err != nil {
		return nil, err
	}
	s.active.open++
	s.open++
	s.announced(e.partition, e.header.Dropped)
	s.head.seqs[e.partition] = max(s.head.seqs[e.partition], e.seq)
	s.head.watermark = max(s.head.watermark, e.header.Watermark)
	return p, nil
}

// makeRoom sees to it that the active file takes n more bytes. The lock is
// held, as for all unexported methods below that do not say otherwise.
func (s *spool) makeRoom(n int64) error {
	if s.closed {
		return fmt.Errorf("spool: %w", os.ErrClosed)
	}
	if a := s.active; a != nil && (a.size >= s.step || a.open == 0 && s.total+n > s.max) {
		s.active = nil
		s.forget(a)
	}
	if s.total+n > s.max || (s.open+1)*leastCost > s.max {
		return errFull
	}
	if s.active == nil {
		return s.rotate()
	}
	return nil
}

// rotate begins a new file.
func (s *spool) rotate() error {
	s.number++
	path := filepath.Join(s.dir, fmt.Sprintf("%s-%06d.spool", s.head.run, s.number))
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	seg := &segment{run: s.head.run, path: path, file: f}
	s.files[seg] = struct{}{}
	s.at("opened")
	if err := s.writeHead(seg); err != nil {
		s.forget(seg)
		return err
	}
	s.active = seg
	s.at("begun")
	return nil
}

// writeHead begins a file with what the next start needs to know if there is no
// other. If grouped it is on disk afterwards, so that older files can go.
func (s *spool) writeHead(seg *segment) error {
	kind := byte(headRecord)
	if s.grouped {
		kind = groupHead
	}
	b := appendRecord(nil, kind, s.head.append)
	for _, d := range s.drops {
		b = appendRecord(b, dropRecord, func(b []byte) []byte { return appendDropped(b, d) })
	}
	if s.grouped && s.last.number > 0 {
		c := s.last
		c.batches = 0
		b = appendRecord(b, groupRecord, c.append)
	}
	if err := s.write(seg, b); err != nil {
		return err
	}
	s.first = seg.size
	if !s.grouped || s.noSync {
		return nil
	}
	if err := seg.file.Sync(); err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	return s.syncDir()
}

// write appends to a file. What a failed write leaves there is cut off, or is
// overwritten by the next one.
func (s *spool) write(seg *segment, b []byte) error {
	if seg.file == nil {
		return fmt.Errorf("spool: %w", os.ErrClosed)
	}
	if _, err := seg.file.WriteAt(b, seg.size); err != nil {
		return errors.Join(fmt.Errorf("spool: %w", err), seg.file.Truncate(seg.size))
	}
	seg.size += int64(len(b))
	s.total += int64(len(b))
	return nil
}

// read returns the message of a batch as it was first sent. It takes the lock
// only to see that the file is open.
func (s *spool) read(p *place) (bus.Msg, error) {
	s.mu.Lock()
	f := p.seg.file
	s.mu.Unlock()
	if f == nil {
		return bus.Msg{}, fmt.Errorf("spool: %w", os.ErrClosed)
	}
	b := make([]byte, p.length)
	if _, err := f.ReadAt(b, p.offset); err != nil {
		return bus.Msg{}, fmt.Errorf("spool: %w", err)
	}
	kind, payload, _, err := cutRecord(b)
	var rec spooled
	if err == nil && kind == batchRecord {
		err = rec.parse(payload)
	}
	if err != nil {
		return bus.Msg{}, fmt.Errorf("spool %s at %d: %w", p.seg.path, p.offset, err)
	}
	return rec.msg, nil
}

// done notes that a batch need not be kept. Should the note be lost, the batch
// is sent once more after a crash and counted as a duplicate. It takes the lock.
func (s *spool) done(p *place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.seg.open--
	s.open--
	if s.closed {
		return
	}
	if p.seg.open == 0 && p.seg != s.active && !p.seg.keep {
		s.forget(p.seg)
		return
	}
	_ = s.write(p.seg, appendRecord(nil, doneRecord, func(b []byte) []byte {
		return binary.AppendUvarint(b, uint64(p.offset))
	}))
}

// note writes down what was dropped; it may go a little beyond the bound. Each
// file begins with what is not announced by then, so that older ones can go. It
// takes the lock.
func (s *spool) note(ds []event.Dropped) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b []byte
	for _, d := range ds {
		s.head.seqs[d.Partition] = max(s.head.seqs[d.Partition], d.Last)
		s.drops = addDrop(s.drops, d)
		b = appendRecord(b, dropRecord, func(b []byte) []byte { return appendDropped(b, d) })
	}
	if s.active == nil {
		return s.rotate()
	}
	return s.write(s.active, b)
}

// addDrop joins a drop with the one that it continues, if that is there.
func addDrop(ds []event.Dropped, d event.Dropped) []event.Dropped {
	for i := range ds {
		if ds[i].Partition == d.Partition && ds[i].Last+1 == d.First {
			ds[i] = join(ds[i:i+1:i+1], d)[0]
			return ds
		}
	}
	return append(ds, d)
}

// told forgets drops that a mark has announced. It takes the lock.
func (s *spool) told(ds []event.Dropped) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range ds {
		s.announced(d.Partition, []event.Dropped{d})
	}
}

// announced forgets the drops of a partition that lie within others.
func (s *spool) announced(partition int, by []event.Dropped) {
	for _, b := range by {
		s.drops = slices.DeleteFunc(s.drops, func(d event.Dropped) bool {
			return d.Partition == partition && b.First <= d.First && d.Last <= b.Last
		})
	}
}

// forget closes and deletes a file in which nothing is open.
func (s *spool) forget(seg *segment) {
	if seg.open > 0 {
		return
	}
	delete(s.files, seg)
	s.total -= seg.size
	if seg.file != nil {
		_ = seg.file.Close() // nothing in it is needed
		seg.file = nil
	}
	_ = os.Remove(seg.path) // else the next start finds nothing open in it
}

// finish deletes what is left of a run that has ended. It takes the lock.
func (s *spool) finish(run string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for seg := range s.files {
		if seg.run == run {
			if seg == s.active {
				s.active = nil
			}
			s.open -= int64(seg.open)
			seg.open = 0
			s.forget(seg)
		}
	}
}

// size is the bytes on disk. It takes the lock.
func (s *spool) size() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

// close leaves the files for the next start, and the folder to others. It takes
// the lock.
func (s *spool) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	var errs []error
	for seg := range s.files {
		if seg.file != nil {
			errs = append(errs, seg.file.Close())
			seg.file = nil
		}
	}
	return errors.Join(append(errs, s.lock.Close())...)
}
