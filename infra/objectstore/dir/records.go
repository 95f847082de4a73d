package dir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"penstock/infra/objectstore"
)

// tails remembers where record files end, so that an append needn't read what is
// there. What is remembered is only believed of the same file at the same size.
type tails struct {
	mu    sync.Mutex
	known map[tailKey]tail
}

type tailKey struct{ owner, file string }

type tail struct {
	inode  uint64
	size   int64
	number uint64
	any    bool // there is a record, and number is its
}

// maxTails bounds the memory; beyond it everything is forgotten and read again.
const maxTails = 1 << 20

func (t *tails) get(k tailKey) (tail, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	v, ok := t.known[k]
	return v, ok
}

func (t *tails) set(k tailKey, v tail) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.known) >= maxTails {
		clear(t.known)
	}
	t.known[k] = v
}

func (t *tails) forget(k tailKey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.known, k)
}

// AppendAll writes all new records with one write under the owner's lock.
func (s *Store) AppendAll(ctx context.Context, owner, file string, records []objectstore.Record) (int, error) {
	if err := objectstore.CheckName(file); err != nil {
		return 0, err
	}
	for i := 1; i < len(records); i++ {
		if records[i].Number <= records[i-1].Number {
			return 0, fmt.Errorf("record %d after %d: %w", records[i].Number, records[i-1].Number, objectstore.ErrOrder)
		}
	}
	f, err := s.lock(ctx, owner, true)
	if err != nil {
		return 0, err
	}
	if err := f.admit(objectstore.Mark{}); err != nil {
		f.abandon()
		return 0, err
	}
	defer f.unlock()
	return f.appendAll(file, records)
}

func (f *folder) appendAll(file string, records []objectstore.Record) (n int, err error) {
	path := filepath.Join(f.path, filepath.FromSlash(file))
	w, fresh, err := f.openRecords(path, file)
	if err != nil {
		return 0, fmt.Errorf("append: %w", err)
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	key := tailKey{f.owner, file}
	t, err := f.s.tail(key, w, true)
	if err != nil {
		return 0, err
	}
	for len(records) > 0 && t.any && records[0].Number <= t.number {
		records = records[1:]
	}
	if len(records) == 0 && !fresh {
		return 0, nil
	}
	if err := f.write1(w, &t, records); err != nil {
		// What was written of them is an unfinished tail at worst.
		f.s.tails.forget(key)
		return 0, fmt.Errorf("append: %w", errors.Join(err, w.Truncate(t.size)))
	}
	if fresh && f.s.sync {
		if err := syncDir(filepath.Dir(path)); err != nil {
			return 0, err
		}
	}
	f.s.tails.set(key, t)
	return len(records), nil
}

// openRecords opens a record file, and tells whether it made it.
func (f *folder) openRecords(path, file string) (w *os.File, fresh bool, err error) {
	w, err = os.OpenFile(path, os.O_RDWR, 0)
	if err == nil || !errors.Is(err, os.ErrNotExist) {
		return w, false, err
	}
	if strings.Contains(file, "/") {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, false, err
		}
	}
	w, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	return w, true, err
}

// write1 writes records at the end of t and moves t behind them.
func (f *folder) write1(w *os.File, t *tail, records []objectstore.Record) error {
	buf := recordBuffers.Get().(*[]byte)
	defer recordBuffers.Put(buf)
	b := (*buf)[:0]
	for i := range records {
		b = appendRecord(b, records[i].Number, records[i].Payload)
	}
	*buf = b
	if _, err := w.WriteAt(b, t.size); err != nil {
		return err
	}
	if f.s.sync {
		if err := w.Sync(); err != nil {
			return err
		}
	}
	t.size += int64(len(b))
	if n := len(records); n > 0 {
		t.number, t.any = records[n-1].Number, true
	}
	return nil
}

var recordBuffers = sync.Pool{New: func() any { return new([]byte) }}

// tail returns where a record file ends. A file that isn't the one remembered is
// read from its start; an unfinished record is cut off if cut.
func (s *Store) tail(key tailKey, w *os.File, cut bool) (tail, error) {
	info, err := w.Stat()
	if err != nil {
		return tail{}, fmt.Errorf("record file: %w", err)
	}
	t, ok := s.tails.get(key)
	if ok && t.inode == inode(info) && t.size == info.Size() {
		return t, nil
	}
	t = tail{inode: inode(info)}
	err = scan(w, info.Size(), func(number uint64, payload []byte) error {
		t.size += int64(headerSize + len(payload))
		t.number, t.any = number, true
		return nil
	})
	if errors.Is(err, objectstore.ErrTorn) {
		if !cut {
			return t, nil
		}
		if err := w.Truncate(t.size); err != nil {
			return tail{}, fmt.Errorf("cut off an unfinished record: %w", err)
		}
		err = nil
	}
	if err != nil {
		return tail{}, fmt.Errorf("record file %.80q of owner %.80q: %w", key.file, key.owner, err)
	}
	s.tails.set(key, t)
	return t, nil
}

// Tail returns the last record's number.
func (s *Store) Tail(_ context.Context, owner, file string) (uint64, bool, error) {
	f, err := s.open(owner, file)
	if errors.Is(err, objectstore.ErrNoOwner) || errors.Is(err, objectstore.ErrNoObject) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	defer func() { _ = f.Close() }()
	t, err := s.tail(tailKey{owner, file}, f, false)
	return t.number, t.any, err
}

// Scan reads a record file from its start.
func (s *Store) Scan(ctx context.Context, owner, file string, fn func(uint64, []byte) error) error {
	f, err := s.open(owner, file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("record file: %w", err)
	}
	return scan(f, info.Size(), func(number uint64, payload []byte) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return fn(number, payload)
	})
}
