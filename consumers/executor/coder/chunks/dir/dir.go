package dir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"penstock/consumers/executor/coder/chunks"
)

const (
	incoming = ".new" // no key's part begins with a dot
	suffix   = "~"    // no key has one

	// attempts is how often Put makes the folders of a key again that deletions
	// beside it take away.
	attempts = 100
)

// Store is a folder of blobs.
type Store struct {
	name, folder string
	next         atomic.Uint64 // names of files under incoming
	now          atomic.Pointer[opened]
	mu           sync.Mutex // of those who look whether the folder is another one
	closed       bool
}

var _ chunks.Store = (*Store)(nil)

// Open opens the folder, which it makes if need be, and removes what was being written
// when it was last in use.
func Open(name, folder string) (*Store, error) {
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return nil, fmt.Errorf("store %s: %w", name, err)
	}
	o, err := open(folder)
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", name, err)
	}
	s := &Store{name: name, folder: folder}
	s.now.Store(o)
	return s, nil
}

// Close gives the folder back. Calls after it fail.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	return s.now.Load().close()
}

// Name implements chunks.Store.
func (s *Store) Name() string { return s.name }

// Put implements chunks.Store.
func (s *Store) Put(ctx context.Context, key string, r io.Reader, size int64) error {
	if err := chunks.CheckKey(key); err != nil {
		return err
	}
	number := strconv.FormatUint(s.next.Add(1), 36)
	var name string
	var f *os.File
	o, err := s.in(func(o *opened) (err error) {
		name = o.lockName() + "." + number
		f, err = o.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o640)
		return err
	})
	if err == nil {
		if err = write(ctx, f, r, size); err == nil {
			err = o.place(name, key+suffix)
		}
		if err != nil {
			_ = o.root.Remove(name) // what can't be removed now is at the next Open
		}
	}
	if err != nil {
		return fmt.Errorf("put %s: %w", key, err)
	}
	return nil
}

// write fills a file, which is on disk then.
func write(ctx context.Context, f *os.File, r io.Reader, size int64) error {
	err := chunks.Exactly(ctx, f, r, size)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// place renames a file into its place and puts the folders on disk that name it.
func (o *opened) place(from, to string) error {
	folder := path.Dir(to)
	err := o.root.Rename(from, to) // mostly the folder is there
	for range attempts {
		// A folder that goes while it is made may also be told to be there already.
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) {
			break
		}
		if err = o.root.MkdirAll(folder, 0o750); err == nil {
			err = o.root.Rename(from, to)
		}
	}
	if err != nil {
		return err
	}
	return o.settle(folder)
}

// Get implements chunks.Store.
func (s *Store) Get(ctx context.Context, key string, off, n int64, w io.Writer) (int64, error) {
	if err := chunks.CheckKey(key); err != nil {
		return 0, err
	}
	if err := chunks.CheckRange(off, n); err != nil {
		return 0, err
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	var f *os.File
	_, err := s.in(func(o *opened) (err error) {
		f, err = o.root.Open(key + suffix)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("get %s: %w", key, chunks.ErrNotFound)
	}
	if err != nil {
		return 0, fmt.Errorf("get %s: %w", key, err)
	}
	defer f.Close()
	done, err := io.Copy(w, chunks.Bounded(ctx, io.NewSectionReader(f, off, n)))
	if err != nil {
		err = fmt.Errorf("get %s: %w", key, err)
	}
	return done, err
}

// Delete implements chunks.Store.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := chunks.CheckKey(key); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	o, err := s.in(func(o *opened) error { return o.root.Remove(key + suffix) })
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	folder := path.Dir(key)
	if err == nil {
		err = o.sync(folder)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // a deletion beside this one has removed the folder already
	}
	if err != nil {
		return fmt.Errorf("delete %s: %w", key, err)
	}
	// Remove takes only empty folders. One that isn't ends it, and one that comes back
	// after a crash is empty and harms nobody.
	for ; folder != "." && o.root.Remove(folder) == nil; folder = path.Dir(folder) {
		o.made.remove(folder)
	}
	return nil
}

// List implements chunks.Store.
func (s *Store) List(ctx context.Context, prefix, after string, limit int) ([]chunks.Entry, error) {
	if err := chunks.CheckRange(0, int64(limit)); err != nil {
		return nil, err
	}
	var l lister
	if _, err := s.in(func(o *opened) error {
		l = lister{root: o.root, prefix: prefix, after: after, limit: limit}
		return l.walk(ctx, "")
	}); err != nil {
		return nil, fmt.Errorf("list %s: %w", prefix, err)
	}
	return l.found, nil
}

// keyOf is what an entry of a folder stands for: a blob's key, or with a slash at its
// end what the keys below it begin with. Names that aren't ours give "".
func keyOf(folder string, e fs.DirEntry) string {
	name := e.Name()
	switch {
	case e.IsDir() && chunks.CheckKey(name) == nil:
		return folder + name + "/"
	case e.Type().IsRegular() && strings.HasSuffix(name, suffix) && chunks.CheckKey(strings.TrimSuffix(name, suffix)) == nil:
		return folder + strings.TrimSuffix(name, suffix)
	}
	return ""
}
