package coder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"penstock/consumers/executor/coder/catalog"
	"penstock/consumers/executor/coder/object"
)

var (
	_ io.ReadCloser = (*Reader)(nil)
	_ io.WriterTo   = (*Reader)(nil)
)

// reading is a read under way. One segment is handed out while the next is fetched.
type reading struct {
	c          *Coder
	ctx        context.Context
	cancel     context.CancelCauseFunc
	lease      *lease
	close      func()
	shut       sync.Once
	ahead      bool // there is memory to look ahead
	background bool // nobody waits for it

	cur  *loaded
	next chan fetched // nil: nothing is being fetched
	err  error

	// What follows is used by one fetch at a time.
	parts  []catalog.Piece // of which something is wanted still
	from   int64           // the first byte that is wanted, counted from parts[0]
	left   int64           // bytes that are wanted
	v      *held           // the version that pieces are of
	pieces []object.Piece
	whole  *object.Whole // of v, if all of it is read
	idle   []*object.Decoder
}

// loaded is a segment that can be handed out.
type loaded struct {
	d        *object.Decoder
	from, to int64
}

type fetched struct {
	*loaded
	err error
}

// Get opens an object. It returns ErrNoBucket, ErrNoKey, ErrPrecondition,
// ErrNotModified, ErrBadRange, ErrBusy and ErrTooFew; the latter two also come from
// Read. The reader keeps the version that it began with, whatever happens to the key.
func (c *Coder) Get(ctx context.Context, in GetInput) (*Reader, error) {
	r, err := c.open(ctx, in, nil)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// open is Get, in memory that the caller may have taken already.
func (c *Coder) open(ctx context.Context, in GetInput, l *lease) (_ *Reader, err error) {
	leave, err := c.enter()
	if err != nil {
		l.give()
		return nil, err
	}
	held, err := c.catalog.Hold(in.Bucket, in.Key)
	if err != nil {
		l.give()
		leave()
		return nil, catalogError(err)
	}
	g := &reading{c: c, parts: held.Record.Parts, lease: l}
	g.ctx, g.cancel = context.WithCancelCause(ctx)
	g.close = func() { held.Release(); leave() }
	r := &Reader{Object: objectOf(in.Bucket, held.Record), body: g}
	defer func() {
		if err != nil {
			_ = r.Close()
		}
	}()
	if err := in.Conditions.read(r.ETag, r.Modified); err != nil {
		return nil, err
	}
	if r.Offset, r.Length, err = in.Range.In(&r.Object); err != nil {
		return nil, err
	}
	g.from, g.left = r.Offset, r.Length
	if g.left == 0 {
		return r, nil
	}
	if err := g.begin(); err != nil {
		return nil, err
	}
	return r, nil
}

// begin fetches the first segment.
func (g *reading) begin() (err error) {
	if g.lease == nil {
		if g.lease, err = g.c.memory.take(g.ctx, g.c.code, g.largest(), 1); err != nil {
			return err
		}
	}
	g.ahead = (g.left > g.c.o.Segment || len(g.parts) > 1) && g.lease.more()
	g.cur, err = g.load(false)
	return err
}

// largest is how many bytes the largest segment has.
func (g *reading) largest() int64 {
	most := int64(0)
	for _, p := range g.parts {
		most = max(most, min(p.Size, g.c.o.Segment))
	}
	return most
}

// load fetches the next segment of which something is wanted, io.EOF if there is none.
func (g *reading) load(keep bool) (*loaded, error) {
	for len(g.pieces) == 0 {
		if g.left == 0 {
			return nil, io.EOF
		}
		if err := g.turn(); err != nil {
			return nil, err
		}
	}
	p := g.pieces[0]
	g.pieces = g.pieces[1:]
	d, err := g.decoder()
	if err != nil {
		return nil, err
	}
	err = g.c.fetchSegment(g.ctx, g.v, d, p, keep, g.background)
	if err == nil {
		err = g.check(d, p)
	}
	if err != nil {
		g.idle = append(g.idle, d)
		return nil, err
	}
	g.left -= p.To - p.From
	return &loaded{d, p.From, p.To}, nil
}

// turn turns to the next version of which something is wanted.
func (g *reading) turn() error {
	for g.from >= g.parts[0].Size {
		g.from -= g.parts[0].Size
		g.parts = g.parts[1:]
	}
	part := g.parts[0]
	v, rest, err := g.c.catalog.Version(part.Version)
	if err != nil {
		return catalogError(err)
	}
	g.v = &held{v, rest}
	n := min(g.left, part.Size-g.from)
	g.whole = nil
	if n == v.Shape.Size {
		g.whole = v.NewWhole()
	}
	err = v.Shape.Pieces(g.from, n, func(p object.Piece) bool {
		g.pieces = append(g.pieces, p)
		return true
	})
	g.from, g.parts = 0, g.parts[1:]
	return err
}

// decoder gives a decoder that is not in use.
func (g *reading) decoder() (*object.Decoder, error) {
	if n := len(g.idle); n > 0 {
		d := g.idle[n-1]
		g.idle = g.idle[:n-1]
		return d, d.Reset(g.v.Version)
	}
	return g.lease.decoder(g.v.Version)
}

// check rebuilds what is wanted, and of a version that is read whole it looks at the
// SHA-256 before the last segment is handed out.
func (g *reading) check(d *object.Decoder, p object.Piece) error {
	w := io.Discard
	if g.whole != nil {
		w = g.whole
	}
	if _, err := d.WriteRange(w, p.From, p.To); err != nil {
		if errors.Is(err, object.ErrMismatch) {
			g.c.count(EventStrips, "mismatch", 1)
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		return err
	}
	if g.whole != nil && len(g.pieces) == 0 {
		if err := g.whole.Err(); err != nil {
			g.c.count(EventStrips, "mismatch", 1)
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
	}
	return nil
}

// more makes sure that cur has something to hand out, io.EOF if there is nothing more.
func (g *reading) more() error {
	if g.err != nil {
		return g.err
	}
	if g.cur != nil && g.cur.from < g.cur.to {
		g.look()
		return nil
	}
	if g.cur != nil && g.next == nil {
		g.idle = append(g.idle, g.cur.d)
		g.cur = nil
		g.cur, g.err = g.load(true)
	} else if g.next != nil {
		f := <-g.next
		g.next = nil
		if g.cur != nil {
			g.idle = append(g.idle, g.cur.d)
		}
		g.cur, g.err = f.loaded, f.err
	} else {
		g.err = io.EOF
	}
	if g.err != nil {
		g.cur = nil
		return g.err
	}
	g.look()
	return nil
}

// look begins to fetch the segment after the one that is being handed out.
func (g *reading) look() {
	if !g.ahead || g.next != nil || g.left == 0 {
		return
	}
	next := make(chan fetched, 1)
	g.next = next
	g.c.start(func() {
		l, err := g.load(true)
		next <- fetched{l, err}
	})
}

// Read implements io.Reader.
func (r *Reader) Read(p []byte) (int, error) {
	g := r.body
	if len(p) == 0 {
		return 0, nil
	}
	if err := g.more(); err != nil {
		return 0, err
	}
	cur := g.cur
	n := min(int64(len(p)), cur.to-cur.from)
	into := &window{b: p[:n]}
	done, err := cur.d.WriteRange(into, cur.from, cur.from+n)
	cur.from += done
	return int(done), err
}

// WriteTo implements io.WriterTo.
func (r *Reader) WriteTo(w io.Writer) (total int64, err error) {
	g := r.body
	for {
		if err := g.more(); err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return total, err
		}
		n, err := g.cur.d.WriteRange(w, g.cur.from, g.cur.to)
		g.cur.from += n
		total += n
		if err != nil {
			return total, err
		}
	}
}

// Close ends the read and frees what it holds. It may be called twice.
func (r *Reader) Close() error {
	r.body.shut.Do(r.body.end)
	return nil
}

func (g *reading) end() {
	g.cancel(ErrClosed)
	if g.next != nil {
		if f := <-g.next; f.loaded != nil {
			g.idle = append(g.idle, f.d)
		}
	}
	if g.cur != nil {
		g.idle = append(g.idle, g.cur.d)
		g.cur = nil
	}
	g.err = ErrClosed
	if g.lease != nil {
		for _, d := range g.idle {
			g.lease.keepDecoder(d)
		}
		g.lease.give()
	}
	g.idle = nil
	g.close()
}
