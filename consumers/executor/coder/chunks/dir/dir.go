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
	name string
	root *os.Root
	next atomic.Uint64 // names of files under incoming
}

var _ chunks.Store = (*Store)(nil)

// Open opens the folder, which it makes if need be, and removes what was being written
// when it was last in use.
func Open(name, folder string) (*Store, error) {
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return nil, fmt.Errorf("store %s: %w", name, err)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", name, err)
	}
	s := &Store{name: name, root: root}
	if err = root.RemoveAll(incoming); err == nil {
		err = root.Mkdir(incoming, 0o750)
	}
	if err == nil {
		err = s.sync(".")
	}
	if err != nil {
		_ = root.Close()
		return nil, fmt.Errorf("store %s: %w", name, err)
	}
	return s, nil
}

// Close gives the folder back. Calls after it fail.
func (s *Store) Close() error { return s.root.Close() }

// Name implements chunks.Store.
func (s *Store) Name() string { return s.name }

// Put implements chunks.Store.
func (s *Store) Put(ctx context.Context, key string, r io.Reader, size int64) error {
	if err := chunks.CheckKey(key); err != nil {
		return err
	}
	name := path.Join(incoming, strconv.FormatUint(s.next.Add(1), 36))
	err := s.write(ctx, name, r, size)
	if err == nil {
		err = s.place(name, key+suffix)
	}
	if err != nil {
		_ = s.root.Remove(name) // what can't be removed now is at the next Open
		return fmt.Errorf("put %s: %w", key, err)
	}
	return nil
}

// write makes a file whose content is on disk.
func (s *Store) write(ctx context.Context, name string, r io.Reader, size int64) error {
	f, err := s.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o640)
	if err != nil {
		return err
	}
	err = chunks.Exactly(ctx, f, r, size)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// place renames a file into its place and puts the folders on disk that name it.
func (s *Store) place(from, to string) error {
	folder := path.Dir(to)
	var err error
	for range attempts {
		if err = s.root.MkdirAll(folder, 0o750); err == nil {
			err = s.root.Rename(from, to)
		}
		// A folder that goes while it is made may also be told to be there already.
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	// All folders above are synced, since another Put may have made one of them and
	// not be there yet. One that is gone again tells that the blob was deleted.
	for err == nil {
		if err = s.sync(folder); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		if folder == "." {
			break
		}
		folder = path.Dir(folder)
	}
	return err
}

func (s *Store) sync(folder string) error {
	f, err := s.root.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
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
	f, err := s.root.Open(key + suffix)
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
	err := s.root.Remove(key + suffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	folder := path.Dir(key)
	if err == nil {
		err = s.sync(folder)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // a deletion beside this one has removed the folder already
	}
	if err != nil {
		return fmt.Errorf("delete %s: %w", key, err)
	}
	// Remove takes only empty folders. One that isn't ends it, and one that comes back
	// after a crash is empty and harms nobody.
	for ; folder != "." && s.root.Remove(folder) == nil; folder = path.Dir(folder) {
	}
	return nil
}

// List implements chunks.Store.
func (s *Store) List(ctx context.Context, prefix, after string, limit int) ([]chunks.Entry, error) {
	if err := chunks.CheckRange(0, int64(limit)); err != nil {
		return nil, err
	}
	l := lister{root: s.root, prefix: prefix, after: after, limit: limit}
	if err := l.walk(ctx, ""); err != nil {
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
