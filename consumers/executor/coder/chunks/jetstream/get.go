package jetstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"penstock/consumers/executor/coder/chunks"
)

// Get implements chunks.Store.
func (s *Store) Get(ctx context.Context, key string, off, n int64, w io.Writer) (int64, error) {
	if err := chunks.CheckKey(key); err != nil {
		return 0, err
	}
	if err := chunks.CheckRange(off, n); err != nil {
		return 0, err
	}
	done, err := s.get(ctx, key, off, n, w)
	if err != nil {
		return done, fmt.Errorf("get %s: %w", key, ended(ctx, err))
	}
	return done, nil
}

func (s *Store) get(ctx context.Context, key string, off, n int64, w io.Writer) (int64, error) {
	last := uint64(0)
	for {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		e, err := s.entry(ctx, key)
		if err != nil {
			return 0, err
		}
		off := min(off, e.size)
		done, err := s.read(ctx, &e, off, min(n, e.size-off), w)
		// Pieces that aren't there any more belong to a blob that was replaced or
		// deleted since: what is there now is as good.
		if done > 0 || !errors.Is(err, ErrPieces) || e.sequence == last {
			return done, err
		}
		last = e.sequence
	}
}

// read writes n bytes from off on, all of which the blob has.
func (s *Store) read(ctx context.Context, e *entry, off, n int64, w io.Writer) (int64, error) {
	if n == 0 {
		return 0, nil
	}
	if e.id == "" {
		m, err := w.Write(e.content[off : off+n])
		return int64(m), err
	}
	first, last := off/e.piece, (off+n-1)/e.piece
	done := int64(0)
	err := s.pieces(ctx, e, int(first), int(last), func(i int, b []byte) error {
		start := int64(i) * e.piece
		if want := min(e.piece, e.size-start); int64(len(b)) != want {
			return fmt.Errorf("%w: %d bytes of %d", ErrPieces, len(b), want)
		}
		m, err := w.Write(b[max(off-start, 0):min(off+n-start, int64(len(b)))])
		done += int64(m)
		return err
	})
	return done, err
}

// pieces calls fn with pieces first … last in order, some of which are asked for ahead.
func (s *Store) pieces(ctx context.Context, e *entry, first, last int, fn func(i int, b []byte) error) error {
	if first == last {
		b, err := s.pieceOf(ctx, e, first)
		if err != nil {
			return err
		}
		return fn(first, b)
	}
	ctx, cancel := context.WithCancel(ctx)
	type answer struct {
		b   []byte
		err error
	}
	var asked sync.WaitGroup
	defer asked.Wait()
	defer cancel()
	answers := make([]chan answer, last-first+1)
	next := first
	for i := first; i <= last; i++ {
		for ; next <= min(last, i+ahead-1); next++ {
			index, c := next, make(chan answer, 1)
			answers[next-first] = c
			asked.Go(func() {
				b, err := s.pieceOf(ctx, e, index)
				c <- answer{b, err}
			})
		}
		a := <-answers[i-first]
		if a.err == nil {
			a.err = fn(i, a.b)
		}
		if a.err != nil {
			return a.err
		}
	}
	return nil
}

func (s *Store) pieceOf(ctx context.Context, e *entry, i int) ([]byte, error) {
	ctx, cancel := s.within(ctx)
	defer cancel()
	m, err := s.stream.GetMsg(ctx, e.pieces[i])
	if errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && m.Subject != s.piecesOf(e.id) {
		return nil, fmt.Errorf("%w: piece %d of %d", ErrPieces, i, len(e.pieces))
	}
	if err != nil {
		return nil, err
	}
	return m.Data, nil
}
