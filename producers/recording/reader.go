package recording

import (
	"container/heap"
	"errors"
	"io"
	"slices"

	"penstock/infra/errorkind"
	"penstock/schemas/event"
)

// Reader gives the rows of recordings, see the package's description.
type Reader struct {
	opts  Options
	files []*file
	order fileHeap // files with a row in hand, the earliest on top
	last  *file    // whose row Next returned last
	begun bool
	err   error
	pos   Position
}

// Open opens the files and tells their formats; no row is read yet. Errors
// wrap ErrOption, ErrDamaged, ErrNothingParses (a header that lacks a column)
// or the file system's.
func Open(files []string, o Options) (*Reader, error) {
	if len(files) == 0 {
		return nil, errorkind.Errorf(ErrOption, "no files")
	}
	if _, err := ParseFormat(string(o.Format)); err != nil {
		return nil, err
	}
	r := &Reader{opts: o}
	strings := newInterner()
	for i, name := range files {
		f, err := openFile(name, i, &r.opts, strings)
		if err != nil {
			return nil, errors.Join(err, r.Close())
		}
		r.files = append(r.files, f)
	}
	return r, nil
}

// Next fills q with the next row. The error is io.EOF at the end, or one that
// wraps ErrNothingParses, ErrDamaged or ErrClosed; it is the same from then on,
// and q is not changed. The strings in q stay valid.
func (r *Reader) Next(q *event.Request) error {
	if r.err != nil {
		return r.err
	}
	if r.err = r.advance(); r.err != nil {
		return r.err
	}
	f := r.order[0]
	*q = f.row
	r.last = f
	r.pos = Position{File: f.name, Index: f.index, Line: f.rowLine}
	return nil
}

// advance puts the next row on top of the order. A file's row is read only
// when it is asked for, so that no row is passed over when a file fails.
func (r *Reader) advance() error {
	if !r.begun {
		r.begun = true
		for _, f := range r.files {
			err := f.next()
			if errors.Is(err, io.EOF) {
				continue
			}
			if err != nil {
				return err
			}
			r.order = append(r.order, f)
		}
		heap.Init(&r.order)
	} else if r.last != nil {
		switch err := r.last.next(); {
		case err == nil:
			if len(r.order) > 1 {
				heap.Fix(&r.order, 0)
			}
		case errors.Is(err, io.EOF):
			heap.Pop(&r.order)
		default:
			return err
		}
	}
	if len(r.order) == 0 {
		return io.EOF
	}
	return nil
}

// Pos returns where the row stands that Next returned last; the zero Position
// before the first.
func (r *Reader) Pos() Position { return r.pos }

// Stats returns what has been read so far. Rows counts those of each file that
// are in hand for the merge, too.
func (r *Reader) Stats() Stats {
	var s Stats
	for _, f := range r.files {
		s.Rows += f.rows
		s.Bad += f.bad
		s.Blank += f.src.blank()
	}
	return s
}

// Close ends reading; it may be called more than once. Stats and Pos stay.
func (r *Reader) Close() error {
	if errors.Is(r.err, ErrClosed) {
		return nil
	}
	r.err = ErrClosed
	var errs []error
	for _, f := range r.files {
		errs = append(errs, f.close())
	}
	return errors.Join(slices.DeleteFunc(errs, func(err error) bool { return err == nil })...)
}

// fileHeap orders files by their rows in hand, ties by the files' order.
type fileHeap []*file

func (h fileHeap) Len() int { return len(h) }

func (h fileHeap) Less(i, j int) bool {
	if h[i].row.Time != h[j].row.Time {
		return h[i].row.Time < h[j].row.Time
	}
	return h[i].index < h[j].index
}

func (h fileHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h *fileHeap) Push(x any) { *h = append(*h, x.(*file)) }

func (h *fileHeap) Pop() any {
	old := *h
	f := old[len(old)-1]
	*h = old[:len(old)-1]
	return f
}
