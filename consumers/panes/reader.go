package panes

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"penstock/infra/bus"
	"penstock/schemas/subject"
	"penstock/schemas/window"
)

// Reader reads WINDOWS for an assembler: every message of its group on all
// partitions once, in stream order, behind what the assembler holds already.
type Reader struct {
	asm    *Assembler
	client *bus.Client
	cancel context.CancelFunc
	in     *bus.Reader
}

// Read starts reading behind the assembler's sequences: from the first message
// that is there for a new assembler, from the least of its commits for a
// restored one. If messages from there on are gone, it begins with the first
// that is left; the assembler notices what it misses and makes the windows
// incomplete. The reader ends with the context or by Close. A *bus.ErrBeyond
// says that the stream is not the one that was read before.
func Read(ctx context.Context, client *bus.Client, asm *Assembler) (*Reader, error) {
	ctx, cancel := context.WithCancel(ctx)
	r := &Reader{asm: asm, client: client, cancel: cancel}
	from := uint64(0)
	for i, s := range asm.Sequences() {
		if i == 0 || s+1 < from {
			from = s + 1
		}
	}
	if from == 1 {
		from = 0
	}
	if err := r.open(ctx, from); err != nil {
		cancel()
		return nil, err
	}
	return r, nil
}

func (r *Reader) open(ctx context.Context, from uint64) error {
	subjects := []string{subject.WindowsOf(r.asm.opts.Group)}
	in, err := r.client.Read(ctx, subject.WindowsStream, subjects, from)
	var trimmed *bus.ErrTrimmed
	if errors.As(err, &trimmed) {
		in, err = r.client.Read(ctx, subject.WindowsStream, subjects, trimmed.First)
	}
	if err != nil {
		return fmt.Errorf("read windows of %s: %w", r.asm.opts.Group, err)
	}
	r.in = in
	return nil
}

// C delivers the messages; hand each to Take. When it is closed, Reopen.
func (r *Reader) C() <-chan bus.Msg { return r.in.C() }

// Take hands a message to the assembler. It returns the flush if the message
// committed one; then close windows until there are none.
func (r *Reader) Take(m bus.Msg) (*Flush, error) {
	return r.asm.Message(m.Subject, m.Seq, m.Header, m.Data)
}

// Reopen goes on after C was closed because messages are gone: the windows that
// they may have belonged to are incomplete. For any other reason it returns why
// the reader ended, nil error if its context did.
func (r *Reader) Reopen(ctx context.Context) (ended bool, err error) {
	err = r.in.Err()
	var trimmed *bus.ErrTrimmed
	if !errors.As(err, &trimmed) {
		return true, err
	}
	return false, r.open(ctx, trimmed.First)
}

// Next returns the next committed flush. It returns the context's error when
// that ends first, and bus.ErrClosed when the client is closed.
func (r *Reader) Next(ctx context.Context) (*Flush, error) {
	for {
		f, _, err := r.message(ctx)
		if err != nil || f != nil {
			return f, err
		}
	}
}

// message takes in one message; the flush is nil if it committed none.
func (r *Reader) message(ctx context.Context) (*Flush, uint64, error) {
	for {
		select {
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		case m, ok := <-r.in.C():
			if ok {
				f, err := r.Take(m)
				return f, m.Seq, err
			}
			ended, err := r.Reopen(ctx)
			if err != nil {
				return nil, 0, err
			}
			if ended {
				return nil, 0, cmp.Or(ctx.Err(), bus.ErrClosed)
			}
		}
	}
}

// Close ends the reader.
func (r *Reader) Close() {
	r.cancel()
	r.in.Close()
}

// Visitor is told what Each reads; either may be nil.
type Visitor struct {
	Flush  func(*Flush) error
	Window func(*Window) error
}

// Each reads what WINDOWS holds of a group up to now, from its beginning, and
// hands out flushes in stream order and windows as they close. Windows that are
// still open at the end are left out. Partitions and widths are the client's. It is
// for reports and audits.
func Each(ctx context.Context, client *bus.Client, opts Options, v Visitor) (Stats, error) {
	opts.Partitions, opts.Widths = client.Partitions(), client.Widths()
	for _, w := range opts.Widths.Group(opts.Group) {
		if opts.Group == window.Owners && opts.Width%w != 0 {
			return Stats{}, fmt.Errorf("windows of %s out of the bus's windows of %s: %w", opts.Width, w, ErrForeign)
		}
	}
	asm := New(opts)
	last, err := client.Last(ctx, subject.WindowsStream, subject.WindowsOf(opts.Group))
	if errors.Is(err, bus.ErrNoMessage) {
		return asm.Stats(), nil
	}
	if err != nil {
		return asm.Stats(), fmt.Errorf("read windows of %s: %w", opts.Group, err)
	}
	r, err := Read(ctx, client, asm)
	if err != nil {
		return asm.Stats(), err
	}
	defer r.Close()
	for {
		f, seq, err := r.message(ctx)
		if err != nil {
			return asm.Stats(), err
		}
		if f != nil {
			if err := v.visit(f, asm); err != nil {
				return asm.Stats(), err
			}
		}
		if seq >= last.Seq {
			return asm.Stats(), nil
		}
	}
}

func (v Visitor) visit(f *Flush, asm *Assembler) error {
	if v.Flush != nil {
		if err := v.Flush(f); err != nil {
			return err
		}
	}
	for w := asm.Close(); w != nil; w = asm.Close() {
		if v.Window == nil {
			continue
		}
		if err := v.Window(w); err != nil {
			return err
		}
	}
	return nil
}
