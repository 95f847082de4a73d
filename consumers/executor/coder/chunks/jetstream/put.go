package jetstream

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"penstock/consumers/executor/coder/chunks"
)

// Put implements chunks.Store.
func (s *Store) Put(ctx context.Context, key string, r io.Reader, size int64) error {
	if err := chunks.CheckKey(key); err != nil {
		return err
	}
	if err := s.put(ctx, key, r, size); err != nil {
		return fmt.Errorf("put %s: %w", key, ended(ctx, err))
	}
	return nil
}

func (s *Store) put(ctx context.Context, key string, r io.Reader, size int64) error {
	buffer := s.buffers.Get().(*[]byte)
	defer s.buffers.Put(buffer)
	if size < 0 {
		return fmt.Errorf("%w: %d bytes", chunks.ErrSize, size)
	}
	if size <= int64(s.piece) {
		content := (*buffer)[:size]
		if err := chunks.Whole(ctx, r, content); err != nil {
			return err
		}
		_, err := s.enter(ctx, key, &entry{size: size, content: content})
		return err
	}
	e := &entry{size: size, id: nuid.Next(), piece: int64(s.piece)}
	p := &publishing{Store: s, e: e}
	if err := p.run(ctx, r, *buffer); err != nil {
		p.giveUp(ctx)
		return err
	}
	sent, err := s.enter(ctx, key, e)
	switch {
	case err == nil:
	case sent: // it may be there yet
		s.o.Count("pieces-left", 1)
	default:
		p.giveUp(ctx)
	}
	return err
}

// publishing is pieces on their way.
type publishing struct {
	*Store
	e    *entry
	acks []jetstream.PubAckFuture
}

// run stores the pieces. Those of one connection arrive in order.
func (p *publishing) run(ctx context.Context, r io.Reader, buffer []byte) error {
	e, most := p.e, p.o.JS.Conn().MaxPayload()-room
	r = chunks.Bounded(ctx, r)
	for at := int64(0); at < e.size; at += e.piece {
		b := buffer[:min(e.piece, e.size-at)]
		if err := chunks.Fill(r, b); err != nil {
			return err
		}
		// Sequences less the one before take two bytes or three; ten is the most.
		if e.size/e.piece > most/10 {
			return fmt.Errorf("%w: %d bytes in pieces of %d", ErrTooLarge, e.size, e.piece)
		}
		if at+int64(len(b)) == e.size {
			if err := chunks.Exactly(ctx, io.Discard, r, 0); err != nil {
				return err
			}
		}
		if err := p.add(ctx, b); err != nil {
			return err
		}
	}
	return p.wait(ctx, 0)
}

func (p *publishing) add(ctx context.Context, b []byte) error {
	if err := p.wait(ctx, ahead-1); err != nil {
		return err
	}
	// The client would send a piece again that no server took, behind those that came
	// after it, and out of memory that has other content by then.
	f, err := p.o.JS.PublishMsgAsync(message(p.piecesOf(p.e.id), b),
		jetstream.WithRetryAttempts(0), jetstream.WithStallWait(p.o.Timeout))
	if err != nil {
		return fmt.Errorf("publish piece: %w", err)
	}
	p.acks = append(p.acks, f)
	return nil
}

// wait waits until at most n pieces are not acknowledged, and notes their sequences.
func (p *publishing) wait(ctx context.Context, n int) error {
	for len(p.acks) > n {
		sequence, err := p.next(ctx)
		if err != nil {
			return fmt.Errorf("publish piece: %w", err)
		}
		p.e.pieces = append(p.e.pieces, sequence)
	}
	return nil
}

// next waits for the first acknowledgement.
func (p *publishing) next(ctx context.Context) (uint64, error) {
	ctx, cancel := p.within(ctx)
	defer cancel()
	f := p.acks[0]
	p.acks = p.acks[1:]
	select {
	case ack := <-f.Ok():
		return ack.Sequence, nil
	case err := <-f.Err():
		return 0, err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// giveUp purges what was stored, once nothing is on its way any more: now, or, where ctx
// has ended and its user is not to wait, beside what goes on.
func (p *publishing) giveUp(ctx context.Context) {
	purge := func() {
		ctx := context.WithoutCancel(ctx)
		for len(p.acks) > 0 {
			_, _ = p.next(ctx) // stored or not
		}
		if err := p.purge(ctx, p.e.id); err != nil {
			p.o.Count("pieces-left", 1)
		}
	}
	if ctx.Err() == nil {
		purge()
		return
	}
	p.tidying.Go(purge)
}

// enter makes the blob visible in place of the one before it. sent says whether an entry
// was sent of which nothing is known.
func (s *Store) enter(ctx context.Context, key string, e *entry) (sent bool, err error) {
	m := e.message(s.subjectOf(key))
	m.Header.Set(jetstream.MsgRollup, jetstream.MsgRollupSubject)
	var before entry // mostly there is none
	for range 100 {  // of other writers that may come between
		if err := ctx.Err(); err != nil {
			return false, err
		}
		publish, cancel := s.within(ctx)
		_, err = s.o.JS.PublishMsg(publish, m, jetstream.WithExpectLastSequencePerSubject(before.sequence), jetstream.WithRetryAttempts(0))
		cancel()
		if !isConflict(err) {
			break
		}
		before, err = s.entry(ctx, key)
		if errors.Is(err, chunks.ErrNotFound) {
			before, err = entry{}, nil
		}
		if err != nil && !errors.Is(err, ErrPieces) {
			return false, err
		}
	}
	if err != nil {
		var api *jetstream.APIError
		return !errors.As(err, &api), fmt.Errorf("publish entry: %w", err)
	}
	if before.id != "" {
		if err := s.purge(ctx, before.id); err != nil {
			s.o.Count("pieces-left", 1)
		}
	}
	return false, nil
}
