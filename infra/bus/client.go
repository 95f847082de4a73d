package bus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"penstock/schemas/subject"
	"penstock/schemas/window"
)

// Client is one role's connection to the bus. It is safe for concurrent use.
//
// NC and JS are there for what this package does not offer (a durable consumer,
// a watch); names given to them need the prefix: Subject, Stream.
type Client struct {
	NC *nats.Conn
	JS jetstream.JetStream

	bus        *Bus
	life       *life
	partitions int
	widths     window.Widths
	patience   *patience // nil unless the bus is patient

	mu      sync.Mutex
	readers map[*Reader]struct{}
	streams map[string]jetstream.Stream // by name without prefix
	closed  bool
}

// Msg is a message on the bus. Subject has no prefix. Seq, Time and Pending are
// the server's and only set on messages read from it.
type Msg struct {
	Subject string
	Header  map[string][]string
	Data    []byte
	Seq     uint64    // in the stream
	Time    time.Time // when the server stored it
	Pending uint64    // messages that followed for this reader at that time
}

// Partitions is P, as EVENTS says, or as this client was told while the bus was
// away.
func (c *Client) Partitions() int { return c.partitions }

// Widths are the widths of windows on this bus: those of the group owners are as
// WINDOWS says.
func (c *Client) Widths() window.Widths { return c.widths }

// Replicas is the number of copies that streams of this bus have.
func (c *Client) Replicas() int { return c.bus.Replicas() }

// Subject adds the prefix to a subject.
func (c *Client) Subject(s string) string { return c.bus.subject(s) }

// Bare takes the prefix off a subject that NC or JS delivered.
func (c *Client) Bare(s string) string { return c.bus.bare(s) }

// Stream adds the prefix to a stream's name.
func (c *Client) Stream(name string) string { return c.bus.name(name) }

// Purpose is what the bus was made for, as EVENTS says.
func (c *Client) Purpose(ctx context.Context) (Purpose, error) {
	s, err := c.JS.Stream(ctx, c.Stream(subject.EventsStream))
	if err != nil {
		return Serve, fmt.Errorf("purpose of the bus: %w", err)
	}
	if s.CachedInfo().Config.Metadata[metaPurpose] == Replay.String() {
		return Replay, nil
	}
	return Serve, nil
}

// KV opens a key-value bucket by its name without prefix.
func (c *Client) KV(ctx context.Context, name string) (jetstream.KeyValue, error) {
	kv, err := c.JS.KeyValue(ctx, c.bus.name(name))
	if err != nil {
		return nil, fmt.Errorf("bucket %s: %w", c.bus.name(name), err)
	}
	return kv, nil
}

// Objects opens the bucket of snapshots and configurations.
func (c *Client) Objects(ctx context.Context) (jetstream.ObjectStore, error) {
	o, err := c.JS.ObjectStore(ctx, c.bus.objects().Bucket)
	if err != nil {
		return nil, fmt.Errorf("object bucket %s: %w", c.bus.objects().Bucket, err)
	}
	return o, nil
}

// State is what a stream holds: its first and last sequence, messages, bytes.
func (c *Client) State(ctx context.Context, stream string) (jetstream.StreamState, error) {
	s, err := c.JS.Stream(ctx, c.bus.name(stream))
	if err != nil {
		return jetstream.StreamState{}, fmt.Errorf("stream %s: %w", c.bus.name(stream), err)
	}
	return s.CachedInfo().State, nil
}

// Last returns the last message on a subject, from the stream's leader, or
// ErrNoMessage. The subject may hold wildcards.
func (c *Client) Last(ctx context.Context, stream, subject string) (Msg, error) {
	return c.get(ctx, stream, "last of "+subject, func(s jetstream.Stream) (*jetstream.RawStreamMsg, error) {
		return s.GetLastMsgForSubject(ctx, c.bus.subject(subject))
	})
}

// Get returns the message of a stream's sequence, from the leader, or
// ErrNoMessage.
func (c *Client) Get(ctx context.Context, stream string, seq uint64) (Msg, error) {
	return c.get(ctx, stream, fmt.Sprintf("%s %d", stream, seq), func(s jetstream.Stream) (*jetstream.RawStreamMsg, error) {
		return s.GetMsg(ctx, seq)
	})
}

// get asks a stream for one message. The streams allow no direct reads, so the
// leader answers; a handle needs no question of its own and is kept.
func (c *Client) get(ctx context.Context, stream, what string, ask func(jetstream.Stream) (*jetstream.RawStreamMsg, error)) (Msg, error) {
	s, kept, err := c.handle(ctx, stream)
	if err != nil {
		return Msg{}, err
	}
	m, err := ask(s)
	if kept && errors.Is(err, jetstream.ErrStreamNotFound) {
		// Perhaps it was made anew, perhaps otherwise: once more with a new handle.
		c.mu.Lock()
		delete(c.streams, stream)
		c.mu.Unlock()
		if s, _, err = c.handle(ctx, stream); err != nil {
			return Msg{}, err
		}
		m, err = ask(s)
	}
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return Msg{}, fmt.Errorf("%s: %w", what, ErrNoMessage)
	}
	if err != nil {
		return Msg{}, fmt.Errorf("%s: %w", what, err)
	}
	return Msg{Subject: c.bus.bare(m.Subject), Header: m.Header, Data: m.Data, Seq: m.Sequence, Time: m.Time}, nil
}

// handle returns the handle of a stream, and whether it was kept from an earlier
// call. Its cached info may be old.
func (c *Client) handle(ctx context.Context, stream string) (_ jetstream.Stream, kept bool, _ error) {
	c.mu.Lock()
	s, kept := c.streams[stream]
	c.mu.Unlock()
	if kept {
		return s, true, nil
	}
	s, err := c.JS.Stream(ctx, c.bus.name(stream))
	if err != nil {
		return nil, false, fmt.Errorf("stream %s: %w", c.bus.name(stream), err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.streams == nil {
		c.streams = map[string]jetstream.Stream{}
	}
	c.streams[stream] = s
	return s, false, nil
}

// Trim deletes what a stream holds below a sequence, on the given subjects or,
// without any, on all. Sequences are never reused, and one beyond the stream's
// end empties it without a gap.
func (c *Client) Trim(ctx context.Context, stream string, below uint64, subjects ...string) error {
	if below <= 1 {
		return nil
	}
	s, err := c.JS.Stream(ctx, c.bus.name(stream))
	if err != nil {
		return fmt.Errorf("trim %s: %w", stream, err)
	}
	// The server would skip the sequences up to one beyond its end.
	below = min(below, s.CachedInfo().State.LastSeq+1)
	if len(subjects) == 0 {
		if err := s.Purge(ctx, jetstream.WithPurgeSequence(below)); err != nil {
			return fmt.Errorf("trim %s below %d: %w", stream, below, err)
		}
		return nil
	}
	for _, sub := range subjects {
		err := s.Purge(ctx, jetstream.WithPurgeSequence(below), jetstream.WithPurgeSubject(c.bus.subject(sub)))
		if err != nil {
			return fmt.Errorf("trim %s of %s below %d: %w", stream, sub, below, err)
		}
	}
	return nil
}

// Close ends the readers of this client and its connection. What has been
// published without an answer is of unknown state. It is safe to call twice.
func (c *Client) Close() {
	c.bus.mu.Lock()
	delete(c.bus.clients, c)
	c.bus.mu.Unlock()
	c.shut()
}

func (c *Client) shut() {
	c.mu.Lock()
	readers := c.readers
	c.closed, c.readers = true, nil
	c.mu.Unlock()
	for r := range readers {
		r.Close()
	}
	if c.patience != nil {
		c.patience.close()
	}
	c.NC.Close()
}
