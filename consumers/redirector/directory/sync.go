package directory

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"penstock/schemas/subject"
)

// syncEvery is how often Sync looks how far the follower has come.
const syncEvery = 2 * time.Millisecond

// Sync returns once Locate knows everything that the bus held when it was called,
// or with an error when ctx ends or the bus does not say. It needs Run.
func (d *Directory) Sync(ctx context.Context) error {
	last, err := d.last(ctx)
	if err != nil {
		return fmt.Errorf("the newest location on the bus: %w", err)
	}
	for !d.upTo(last) {
		if err := d.clock.Sleep(ctx, syncEvery); err != nil {
			return fmt.Errorf("locations up to %d: %w", last, err)
		}
	}
	return nil
}

// last is the sequence of the newest entry on the bus, 0 if there is none.
func (d *Directory) last(ctx context.Context) (uint64, error) {
	s, err := d.opts.Client.JS.Stream(ctx, d.opts.Client.KVStream(subject.LocationsKV))
	if err != nil {
		return 0, err
	}
	m, err := s.GetLastMsgForSubject(ctx, d.prefix+">")
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return m.Sequence, nil
}

// upTo reports whether the bus is followed and was read up to a sequence.
func (d *Directory) upTo(seq uint64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.loading && d.reader.Load() != nil && d.at.seq >= seq
}
