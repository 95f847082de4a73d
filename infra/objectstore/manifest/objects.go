package manifest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"sync"

	"penstock/infra/objectstore"
)

// small objects are held in memory, so that a write that was overtaken by a
// deletion can be made again.
const small = 64 << 10

var buffers = sync.Pool{New: func() any { b := make([]byte, small); return &b }}

// Put stores the content under a fresh id and then lets the document name it.
func (s *Store) Put(ctx context.Context, owner, name string, r io.Reader, as objectstore.Mark) (objectstore.Object, error) {
	if err := check(owner, name); err != nil {
		return objectstore.Object{}, err
	}
	if err := ctx.Err(); err != nil {
		return objectstore.Object{}, err
	}
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	n, whole, err := objectstore.Fill(r, *buf)
	if err != nil {
		return objectstore.Object{}, fmt.Errorf("put object %.80q: %w", name, err)
	}
	there := false
	for try := 0; ; try++ {
		content := io.Reader(bytes.NewReader((*buf)[:n]))
		if !whole {
			content = io.MultiReader(content, r)
		}
		o, err := s.put(ctx, owner, name, content, as, &there)
		if whole && errors.Is(err, ErrCollected) && try < s.o.Tries {
			continue
		}
		return o, err
	}
}

// put is one try. there says, and is told, that there was a copy when the write
// began.
func (s *Store) put(ctx context.Context, owner, name string, r io.Reader, as objectstore.Mark, there *bool) (objectstore.Object, error) {
	first, err := s.load(ctx, owner)
	if err != nil {
		return objectstore.Object{}, err
	}
	admits := func(d *document) error {
		if *there {
			if err := d.moved(owner, as); err != nil {
				return err
			}
		}
		return d.admits(owner, as)
	}
	if err := admits(first.document); err != nil {
		return objectstore.Object{}, err
	}
	*there = *there || !first.absent()
	e, err := s.upload(ctx, owner, name, r)
	if err != nil {
		return objectstore.Object{}, err
	}
	var old entry
	sweeps := first.Sweeps
	var version uint64
	err = s.change(ctx, owner, e.blob, &first, func(d *document) (bool, error) {
		if err := admits(d); err != nil {
			return false, err
		}
		if d.absent() {
			d.begin(objectstore.Mark{})
		}
		if err := s.uncollected(ctx, d, owner, e.blob, sweeps); err != nil {
			return false, err
		}
		old = d.set(e)
		version = d.Counter
		return true, nil
	})
	if err != nil {
		if !maybe(err) {
			s.collector.add(owner, 0, e.blob) // nothing names it, or ever will
		}
		return objectstore.Object{}, fmt.Errorf("put object %.80q: %w", name, err)
	}
	s.outlived(owner, old)
	s.sweepSometimes(owner, version)
	return e.object(), nil
}

// upload stores a blob under a fresh id. What broke off is deleted.
func (s *Store) upload(ctx context.Context, owner, name string, r io.Reader) (entry, error) {
	in := &incoming{ctx: ctx, r: r, sum: sha256.New()}
	e := entry{name: name, blob: newBlob(s.o.Clock.Now())}
	n, err := s.b.PutBlob(ctx, owner, e.blob, in)
	switch {
	case in.err != nil:
		err = in.err
	case err == nil && n != in.n:
		err = fmt.Errorf("%d of %d bytes were stored", n, in.n)
	}
	if err != nil {
		s.collector.add(owner, 0, e.blob)
		return entry{}, fmt.Errorf("put object %.80q: %w", name, cause(ctx, err))
	}
	e.size = n
	in.sum.Sum(e.sum[:0])
	return e, nil
}

// uncollected makes sure that a blob that was stored a while ago is still there,
// if leftovers were deleted since: before a blob is deleted the document says so,
// which this change would run into.
func (s *Store) uncollected(ctx context.Context, d *document, owner, blob string, sweeps uint64) error {
	if slices.Contains(d.Condemned, blob) {
		return fmt.Errorf("owner %.80q: %w", owner, ErrCollected)
	}
	if d.Sweeps == sweeps {
		return nil
	}
	r, err := s.b.OpenBlob(ctx, owner, blob)
	if errors.Is(err, objectstore.ErrNoObject) {
		return fmt.Errorf("owner %.80q: %w", owner, ErrCollected)
	}
	if err != nil {
		return fmt.Errorf("look for a stored blob of %.80q: %w", owner, cause(ctx, err))
	}
	_ = r.Close()
	return nil
}

// incoming counts and sums what is stored, and remembers the reader's own error.
type incoming struct {
	ctx context.Context
	r   io.Reader
	sum hash.Hash
	n   int64
	err error
}

func (i *incoming) Read(b []byte) (int, error) {
	if err := i.ctx.Err(); err != nil {
		i.err = err
		return 0, err
	}
	n, err := i.r.Read(b)
	_, _ = i.sum.Write(b[:n])
	i.n += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		i.err = err
	}
	return n, err
}

// Remove takes the object out of the document.
func (s *Store) Remove(ctx context.Context, owner, name string, as objectstore.Mark) error {
	if err := check(owner, name); err != nil {
		return err
	}
	var old entry
	err := s.change(ctx, owner, newID(), nil, func(d *document) (ok bool, err error) {
		old = entry{}
		if d.absent() {
			return false, noOwner(owner)
		}
		if err := d.admits(owner, as); err != nil {
			return false, err
		}
		old, ok = d.unset(name)
		return ok, nil
	})
	if err != nil {
		return fmt.Errorf("remove object %.80q: %w", name, err)
	}
	s.outlived(owner, old)
	return nil
}

// outlived has the blob of what was an object deleted when its readers have had
// time to finish.
func (s *Store) outlived(owner string, old entry) {
	switch {
	case old.blob == "":
	case old.plain():
		s.collector.sentence(s, owner, []string{old.blob}, s.o.Grace)
	default:
		s.collector.add(owner, s.o.Grace, old.blob)
	}
}

// openTries is how often Open looks for the blob of an object that is replaced
// again and again, or asks a place that lags behind.
const openTries = 8

// Open opens the blob that the document names. Its reader ends in ErrCorrupt if
// the content isn't what was put.
func (s *Store) Open(ctx context.Context, owner, name string) (io.ReadCloser, error) {
	r, e, err := s.open(ctx, owner, name)
	if err != nil {
		return nil, err
	}
	return &checked{ReadCloser: r, e: e, sum: sha256.New()}, nil
}

func (s *Store) open(ctx context.Context, owner, name string) (io.ReadCloser, *entry, error) {
	if err := objectstore.CheckName(name); err != nil {
		return nil, nil, err
	}
	for try := 1; ; try++ {
		d, err := s.present(ctx, owner)
		if err != nil {
			return nil, nil, err
		}
		i, ok := d.find(name)
		if !ok {
			return nil, nil, fmt.Errorf("object %.80q of owner %.80q: %w", name, owner, objectstore.ErrNoObject)
		}
		e := &d.entries[i]
		r, err := s.b.OpenBlob(ctx, owner, e.blob)
		switch {
		case err == nil:
			return r, e, nil
		case !errors.Is(err, objectstore.ErrNoObject):
			return nil, nil, fmt.Errorf("open object %.80q: %w", name, cause(ctx, err))
		case try >= openTries:
			// Not ErrNoObject: the object is there, and its content is lost.
			return nil, nil, fmt.Errorf("object %.80q of owner %.80q: %w: blob %.80q is gone", name, owner, ErrMissing, e.blob)
		}
		if err := s.o.Clock.Sleep(ctx, jitter(s.o.Poll<<try)); err != nil {
			return nil, nil, err
		}
	}
}

// checked compares what is read with what was put.
type checked struct {
	io.ReadCloser
	e   *entry
	sum hash.Hash
	n   int64
}

func (c *checked) Read(b []byte) (int, error) {
	n, err := c.ReadCloser.Read(b)
	c.n += int64(n)
	_, _ = c.sum.Write(b[:n])
	if errors.Is(err, io.EOF) {
		if e := c.verify(); e != nil {
			err = e
		}
	}
	return n, err
}

func (c *checked) verify() error {
	if c.n != c.e.size {
		return fmt.Errorf("object %.80q has %d bytes, %d were put: %w", c.e.name, c.n, c.e.size, objectstore.ErrCorrupt)
	}
	if want := c.e.digest(); want != "" && want != hex.EncodeToString(c.sum.Sum(nil)) {
		return fmt.Errorf("object %.80q is not what was put: %w", c.e.name, objectstore.ErrCorrupt)
	}
	return nil
}

// Digest reads the object. A content that isn't what was put has a digest too.
func (s *Store) Digest(ctx context.Context, owner, name string) (string, error) {
	r, _, err := s.open(ctx, owner, name)
	if err != nil {
		return "", err
	}
	defer func() { _ = r.Close() }()
	h := sha256.New()
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	if _, err := io.CopyBuffer(struct{ io.Writer }{h}, struct{ io.Reader }{r}, *buf); err != nil {
		return "", fmt.Errorf("digest of object %.80q: %w", name, cause(ctx, err))
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
