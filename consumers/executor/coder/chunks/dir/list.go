package dir

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"penstock/consumers/executor/coder/chunks"
)

// lister walks the folders in the order of keys.
type lister struct {
	root          *os.Root
	prefix, after string
	limit         int
	found         []chunks.Entry
}

// walk lists what lies in a folder, given as what its keys begin with. A folder's keys
// all begin with its name and a slash, so that sorting by that and blobs' names is
// sorting by key.
func (l *lister) walk(ctx context.Context, folder string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	name := strings.TrimSuffix(folder, "/")
	if name == "" {
		name = "."
	}
	entries, err := l.read(name)
	if err != nil {
		return err
	}
	byKey := make(map[string]fs.DirEntry, len(entries))
	keys := make([]string, 0, len(entries))
	for _, e := range entries {
		if key := keyOf(folder, e); key != "" && l.wanted(key, e.IsDir()) {
			byKey[key] = e
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		if len(l.found) >= l.limit {
			return nil
		}
		if err := l.take(ctx, key, byKey[key]); err != nil {
			return err
		}
	}
	return nil
}

// read gives the entries of a folder; one that was removed meanwhile has none.
func (l *lister) read(name string) ([]fs.DirEntry, error) {
	f, err := l.root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	if errors.Is(err, fs.ErrNotExist) && name != "." { // removed since it was opened
		return nil, nil
	}
	return entries, err
}

// wanted tells whether a blob's key, or one that begins so, may be asked for.
func (l *lister) wanted(key string, folder bool) bool {
	if !folder {
		return strings.HasPrefix(key, l.prefix) && key > l.after
	}
	return (strings.HasPrefix(key, l.prefix) || strings.HasPrefix(l.prefix, key)) &&
		(key > l.after || strings.HasPrefix(l.after, key))
}

func (l *lister) take(ctx context.Context, key string, e fs.DirEntry) error {
	if e.IsDir() {
		return l.walk(ctx, key)
	}
	info, err := e.Info()
	if errors.Is(err, fs.ErrNotExist) {
		return nil // deleted meanwhile
	}
	if err != nil {
		return err
	}
	l.found = append(l.found, chunks.Entry{Key: key, Bytes: info.Size()})
	return nil
}
