package executor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"penstock/infra/bus"
	"penstock/schemas/subject"
)

// message is a command as it was delivered.
type message interface {
	Data() []byte
	Subject() string
	Metadata() (*jetstream.MsgMetadata, error)
	InProgress() error
	DoubleAck(ctx context.Context) error
	NakWithDelay(d time.Duration) error
	TermWithReason(reason string) error
}

// source delivers commands. open and rebind are called by one goroutine at a
// time, next by several.
type source interface {
	open(ctx context.Context) error
	// next waits a while for one command; nil if there was none. It is never cut
	// short: a command that the server has sent is not left lying.
	next() (message, error)
	// pending is how many commands wait to be delivered, to anyone.
	pending(ctx context.Context) (uint64, error)
	// rebind makes the consumer anew, where it stood; hard deletes it first.
	rebind(ctx context.Context, hard bool) error
}

// pullWait is how long one pull waits. A stop is noticed no later.
const pullWait = 500 * time.Millisecond

// maxPending bounds what all workers of a role may have unacknowledged. Each
// worker has one; this is far above what anybody runs.
const maxPending = 1000

// puller is the shared durable consumer of a role.
type puller struct {
	c       *bus.Client
	durable jetstream.ConsumerConfig

	mu       sync.Mutex
	consumer jetstream.Consumer
}

func newPuller(o *Options) *puller {
	kind := string(o.Target.Kind())
	return &puller{c: o.Client, durable: jetstream.ConsumerConfig{
		Durable:       kind + "-" + subject.Encode(o.Role),
		Description:   "executors of " + kind,
		FilterSubject: o.Client.Subject(subject.CommandsOf(kind)),
		DeliverPolicy: jetstream.DeliverAllPolicy,
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       o.AckWait,
		MaxDeliver:    -1,
		MaxAckPending: maxPending,
	}}
}

func (p *puller) open(ctx context.Context) error { return p.bind(ctx, p.durable) }

func (p *puller) bind(ctx context.Context, config jetstream.ConsumerConfig) error {
	consumer, err := p.c.JS.CreateOrUpdateConsumer(ctx, p.c.Stream(subject.CommandsStream), config)
	if err != nil {
		return fmt.Errorf("consumer %s: %w", config.Durable, err)
	}
	p.mu.Lock()
	p.consumer = consumer
	p.mu.Unlock()
	return nil
}

func (p *puller) bound() jetstream.Consumer {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.consumer
}

func (p *puller) next() (message, error) {
	batch, err := p.bound().Fetch(1, jetstream.FetchMaxWait(pullWait))
	if err != nil {
		return nil, fmt.Errorf("pull a command: %w", err)
	}
	var got jetstream.Msg
	for m := range batch.Messages() {
		got = m
	}
	if got != nil {
		return got, nil
	}
	if err := batch.Error(); err != nil {
		return nil, fmt.Errorf("pull a command: %w", err)
	}
	return nil, nil
}

func (p *puller) pending(ctx context.Context) (uint64, error) {
	info, err := p.bound().Info(ctx)
	if err != nil {
		return 0, fmt.Errorf("look at the consumer: %w", err)
	}
	return info.NumPending, nil
}

// rebind subscribes anew. If the server's consumer itself is stuck it is deleted
// and made again behind the last command that was acknowledged in order: those
// above that were acknowledged come again and are known to the target.
func (p *puller) rebind(ctx context.Context, hard bool) error {
	config := p.durable
	if hard {
		info, err := p.bound().Info(ctx)
		if err != nil {
			return fmt.Errorf("look at the consumer: %w", err)
		}
		err = p.c.JS.DeleteConsumer(ctx, p.c.Stream(subject.CommandsStream), config.Durable)
		if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
			return fmt.Errorf("delete consumer %s: %w", config.Durable, err)
		}
		config.DeliverPolicy = jetstream.DeliverByStartSequencePolicy
		config.OptStartSeq = info.AckFloor.Stream + 1
	}
	return p.bind(ctx, config)
}
