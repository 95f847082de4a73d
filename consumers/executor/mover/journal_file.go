package mover

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"sync"

	"penstock/infra/folderlock"
)

const (
	journalName = "journal"
	lockName    = "lock"
	frameSize   = 8 // length and CRC-32C of a record
	// A journal is rewritten when it is this long and most of it is history.
	compactBytes = 1 << 20
	compactRatio = 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// journalFile is the journal on disk: records of JSON, each behind its length and
// checksum. An unfinished record at the end is what a crash leaves, and is cut
// off; damage before the end is not repaired.
type journalFile struct {
	dir  string
	sync bool
	lock *folderlock.Lock

	mu      sync.Mutex // of all below
	f       *os.File
	size    int64
	records int
	written uint64 // number of records ever appended by this process

	syncMu sync.Mutex // one sync at a time; those who wait share the next
	synced uint64     // records up to this one are on disk
}

func openJournalFile(dir string, sync bool, each func(*record)) (*journalFile, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("mover journal: %w", err)
	}
	lock, err := folderlock.Take(dir, lockName, 0o644)
	if errors.Is(err, folderlock.ErrHeld) {
		return nil, fmt.Errorf("mover journal: %w: %w", ErrInUse, err)
	}
	if err != nil {
		return nil, fmt.Errorf("mover journal: %w", err)
	}
	j := &journalFile{dir: dir, sync: sync, lock: lock}
	if err := j.load(each); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return j, nil
}

func (j *journalFile) path() string { return filepath.Join(j.dir, journalName) }

func (j *journalFile) load(each func(*record)) error {
	f, err := os.OpenFile(j.path(), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("mover journal: %w", err)
	}
	size, n, err := readRecords(f, each)
	if err == nil {
		err = f.Truncate(size)
	}
	if err == nil {
		_, err = f.Seek(size, io.SeekStart)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("mover journal %s: %w", j.path(), err), f.Close())
	}
	j.f, j.size, j.records = f, size, n
	return nil
}

// readRecords calls each for every whole record and returns where they end.
func readRecords(f *os.File, each func(*record)) (size int64, n int, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, 0, err
	}
	in := bufio.NewReader(f)
	var frame [frameSize]byte
	for size < info.Size() {
		left := info.Size() - size - frameSize
		if left < 0 {
			return size, n, nil
		}
		if _, err := io.ReadFull(in, frame[:]); err != nil {
			return size, n, err
		}
		length := int64(binary.LittleEndian.Uint32(frame[:]))
		if length > left {
			return size, n, nil
		}
		body := make([]byte, length)
		if _, err := io.ReadFull(in, body); err != nil {
			return size, n, err
		}
		var r record
		if length == 0 || crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(frame[4:]) || json.Unmarshal(body, &r) != nil {
			if length == left || length == 0 && unwritten(in) {
				return size, n, nil
			}
			return size, n, fmt.Errorf("at byte %d: %w", size, ErrCorrupt)
		}
		each(&r)
		size += frameSize + length
		n++
	}
	return size, n, nil
}

// unwritten reports that only zeros follow: what a file system leaves of an
// append that was not synced.
func unwritten(in *bufio.Reader) bool {
	for {
		b, err := in.ReadByte()
		if err != nil {
			return errors.Is(err, io.EOF)
		}
		if b != 0 {
			return false
		}
	}
}

func frame(r *record) ([]byte, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("mover journal: %w", err)
	}
	b := make([]byte, frameSize, frameSize+len(body))
	binary.LittleEndian.PutUint32(b, uint32(len(body)))
	binary.LittleEndian.PutUint32(b[4:], crc32.Checksum(body, castagnoli))
	return append(b, body...), nil
}

// append writes a record and returns its number for commit.
func (j *journalFile) append(r *record) (uint64, error) {
	b, err := frame(r)
	if err != nil {
		return 0, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.f == nil {
		return 0, ErrClosed
	}
	if _, err := j.f.WriteAt(b, j.size); err != nil {
		// Half a record may stand there; the next one is written over it.
		return 0, fmt.Errorf("mover journal: %w", err)
	}
	j.size += int64(len(b))
	j.records++
	j.written++
	return j.written, nil
}

// commit returns once the record of that number is on disk. Those who come while
// a sync runs share the next one.
func (j *journalFile) commit(n uint64) error {
	if !j.sync {
		return nil
	}
	j.syncMu.Lock()
	defer j.syncMu.Unlock()
	if j.synced >= n {
		return nil
	}
	j.mu.Lock()
	f, upto := j.f, j.written
	j.mu.Unlock()
	if f == nil {
		return ErrClosed
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("mover journal: %w", err)
	}
	j.synced = upto
	return nil
}

func (j *journalFile) wantsCompaction(live int) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.size > compactBytes && j.records > compactRatio*max(live, 1)
}

// rewrite replaces the journal by one that holds the given records only.
func (j *journalFile) rewrite(records []*record) error {
	j.syncMu.Lock()
	defer j.syncMu.Unlock()
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.f == nil {
		return ErrClosed
	}
	tmp := j.path() + ".new"
	f, err := os.OpenFile(tmp, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return fmt.Errorf("compact mover journal: %w", err)
	}
	size, err := writeRecords(f, records)
	if err == nil && j.sync {
		err = f.Sync()
	}
	if err == nil {
		err = os.Rename(tmp, j.path())
	}
	if err != nil {
		return errors.Join(fmt.Errorf("compact mover journal: %w", err), f.Close())
	}
	_ = j.f.Close()
	j.f, j.size, j.records = f, size, len(records)
	if j.sync {
		if err := syncDir(j.dir); err != nil {
			return err
		}
	}
	j.synced = j.written
	return nil
}

func writeRecords(f *os.File, records []*record) (size int64, err error) {
	w := bufio.NewWriter(f)
	for _, r := range records {
		b, err := frame(r)
		if err != nil {
			return 0, err
		}
		if _, err := w.Write(b); err != nil {
			return 0, err
		}
		size += int64(len(b))
	}
	return size, w.Flush()
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("mover journal: %w", err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("mover journal: %w", err)
	}
	return nil
}

// close syncs what is there and gives the journal free. It is safe to call
// twice.
func (j *journalFile) close() error {
	j.syncMu.Lock()
	defer j.syncMu.Unlock()
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.f == nil {
		return nil
	}
	var err error
	if j.sync {
		err = j.f.Sync()
	}
	err = errors.Join(err, j.f.Close(), j.lock.Close())
	j.f = nil
	return err
}
