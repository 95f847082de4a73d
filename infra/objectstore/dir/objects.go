package dir

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"penstock/infra/objectstore"
)

// small objects are read before the lock is taken and written under one lock;
// larger ones are written without it and renamed under it.
const small = 64 << 10

var buffers = sync.Pool{New: func() any { b := make([]byte, small); return &b }}

// List reads the owner's folder. It waits for no lock: a listing taken during a
// write has the version of before or after it.
func (s *Store) List(_ context.Context, owner string) (objectstore.Listing, error) {
	path, err := ownerPath(s.root, owner)
	if err != nil {
		return objectstore.Listing{}, err
	}
	m, err := readMark(path)
	if err != nil {
		return objectstore.Listing{}, err
	}
	if m.State == objectstore.Absent {
		return objectstore.Listing{}, fmt.Errorf("owner %.80q: %w", owner, objectstore.ErrNoOwner)
	}
	l, err := list(path)
	if errors.Is(err, os.ErrNotExist) {
		return objectstore.Listing{}, fmt.Errorf("owner %.80q: %w", owner, objectstore.ErrNoOwner)
	}
	l.Mark = m
	return l, err
}

// list returns the objects in an owner's folder, without the mark.
func list(path string) (objectstore.Listing, error) {
	var l objectstore.Listing
	err := walk(path, "", func(name string, info fs.FileInfo) error {
		l.Objects = append(l.Objects, object(name, info))
		l.Bytes += info.Size()
		return nil
	})
	if err != nil {
		return objectstore.Listing{}, fmt.Errorf("list: %w", err)
	}
	slices.SortFunc(l.Objects, func(a, b objectstore.Object) int { return cmp.Compare(a.Name, b.Name) })
	h := xxhash.New()
	for _, o := range l.Objects {
		_, _ = h.WriteString(o.Name + "\x00" + o.Version + "\x00")
	}
	l.Version = strconv.FormatUint(h.Sum64(), 36)
	return l, nil
}

// walk calls fn for every object below an owner's folder. What vanishes on the
// way was removed, which is no error except for the folder itself.
func walk(path, prefix string, fn func(name string, info fs.FileInfo) error) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		if prefix != "" && errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return err
	}
	for _, e := range entries {
		switch {
		case strings.HasPrefix(e.Name(), ours):
		case e.IsDir():
			if err := walk(filepath.Join(path, e.Name()), prefix+e.Name()+"/", fn); err != nil {
				return err
			}
		case e.Type().IsRegular():
			info, err := e.Info()
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			if err != nil {
				return err
			}
			if err := fn(prefix+e.Name(), info); err != nil {
				return err
			}
		}
	}
	return nil
}

func object(name string, info fs.FileInfo) objectstore.Object {
	b := make([]byte, 0, 48)
	b = strconv.AppendInt(b, info.Size(), 36)
	b = strconv.AppendInt(append(b, '.'), info.ModTime().UnixNano(), 36)
	b = strconv.AppendUint(append(b, '.'), inode(info), 36)
	return objectstore.Object{Name: name, Size: info.Size(), Version: string(b)}
}

// Open opens the file of an object.
func (s *Store) Open(_ context.Context, owner, name string) (io.ReadCloser, error) {
	return s.open(owner, name)
}

func (s *Store) open(owner, name string) (*os.File, error) {
	path, err := ownerPath(s.root, owner)
	if err != nil {
		return nil, err
	}
	if err := objectstore.CheckName(name); err != nil {
		return nil, err
	}
	f, err := os.Open(filepath.Join(path, filepath.FromSlash(name)))
	if err == nil {
		if info, e := f.Stat(); e == nil && !info.Mode().IsRegular() {
			_ = f.Close()
			err = os.ErrNotExist
		}
	}
	switch {
	case err == nil:
		return f, nil
	case !missing(err):
		return nil, fmt.Errorf("open object: %w", err)
	}
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("owner %.80q: %w", owner, objectstore.ErrNoOwner)
	}
	return nil, fmt.Errorf("object %.80q of owner %.80q: %w", name, owner, objectstore.ErrNoObject)
}

// Digest reads the object.
func (s *Store) Digest(ctx context.Context, owner, name string) (string, error) {
	f, err := s.open(owner, name)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if err := copyTo(ctx, h, f); err != nil {
		return "", fmt.Errorf("digest of object %.80q: %w", name, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// copyTo copies until the end of r or of ctx.
func copyTo(ctx context.Context, w io.Writer, r io.Reader) error {
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := r.Read(*buf)
		if n > 0 {
			if _, err := w.Write((*buf)[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Put writes a temporary file beside the object and renames it.
func (s *Store) Put(ctx context.Context, owner, name string, r io.Reader, as objectstore.Mark) (objectstore.Object, error) {
	if err := objectstore.CheckName(name); err != nil {
		return objectstore.Object{}, err
	}
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	n, whole, err := objectstore.Fill(r, *buf)
	if err != nil {
		return objectstore.Object{}, fmt.Errorf("put object %.80q: %w", name, err)
	}
	f, err := s.lock(ctx, owner, true)
	if err != nil {
		return objectstore.Object{}, err
	}
	if err := f.admit(as); err != nil {
		f.abandon()
		return objectstore.Object{}, err
	}
	head := bytes.NewReader((*buf)[:n])
	if whole {
		defer f.unlock()
		tmp, digest, err := f.write(ctx, head)
		if err != nil {
			return objectstore.Object{}, err
		}
		return f.place(tmp, name, digest)
	}
	f.unlock()
	tmp, digest, err := f.write(ctx, io.MultiReader(head, r))
	if err != nil {
		return objectstore.Object{}, err
	}
	return s.placeLater(ctx, owner, name, tmp, digest, as)
}

// placeLater takes the lock again for an object that was written without it.
func (s *Store) placeLater(ctx context.Context, owner, name, tmp, digest string, as objectstore.Mark) (objectstore.Object, error) {
	f, err := s.lock(ctx, owner, false)
	if err != nil {
		_ = os.Remove(tmp)
		return objectstore.Object{}, err
	}
	defer f.unlock()
	if err := f.admit(as); err != nil {
		_ = os.Remove(tmp)
		return objectstore.Object{}, err
	}
	return f.place(tmp, name, digest)
}

// write writes a temporary file in the owner's folder, synced if that is
// promised, and returns its path and digest.
func (f *folder) write(ctx context.Context, r io.Reader) (path, digest string, err error) {
	w, err := os.CreateTemp(f.path, tmpFile+"*")
	if err != nil {
		return "", "", fmt.Errorf("put object: %w", err)
	}
	h := sha256.New()
	err = copyTo(ctx, io.MultiWriter(w, h), r)
	if err == nil && f.s.sync {
		err = w.Sync()
	}
	if err = errors.Join(err, w.Close()); err != nil {
		_ = os.Remove(w.Name())
		return "", "", fmt.Errorf("put object: %w", err)
	}
	return w.Name(), hex.EncodeToString(h.Sum(nil)), nil
}

// place renames a temporary file to its object, under the lock. Its time is made
// to ascend, so that no two contents of an object have one version.
func (f *folder) place(tmp, name, digest string) (objectstore.Object, error) {
	path := filepath.Join(f.path, filepath.FromSlash(name))
	stamp := f.s.clock.Now()
	if old, err := os.Lstat(path); err == nil && !stamp.After(old.ModTime()) {
		stamp = old.ModTime().Add(time.Nanosecond)
	}
	o, err := f.rename(tmp, path, name, stamp)
	if err != nil {
		_ = os.Remove(tmp)
		return objectstore.Object{}, fmt.Errorf("put object %.80q: %w", name, err)
	}
	o.Digest = digest
	return o, nil
}

func (f *folder) rename(tmp, path, name string, stamp time.Time) (objectstore.Object, error) {
	if err := os.Chtimes(tmp, stamp, stamp); err != nil {
		return objectstore.Object{}, err
	}
	nested := strings.Contains(name, "/")
	if nested {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return objectstore.Object{}, err
		}
	}
	if err := os.Rename(tmp, path); err != nil {
		return objectstore.Object{}, err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return objectstore.Object{}, err
	}
	if f.s.sync {
		for p := filepath.Dir(path); len(p) >= len(f.path); p = filepath.Dir(p) {
			if err := syncDir(p); err != nil {
				return objectstore.Object{}, err
			}
		}
	}
	return object(name, info), nil
}

// missing reports that a path is not there, or that a file stands where it would
// need a folder.
func missing(err error) bool {
	return errors.Is(err, os.ErrNotExist) || strings.Contains(err.Error(), "not a directory")
}
