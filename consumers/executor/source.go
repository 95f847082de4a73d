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

// puller is the durable consumer of a role, or a process's own.
type puller struct {
	c       *bus.Client
	own     bool
	durable jetstream.ConsumerConfig

	mu       sync.Mutex
	consumer jetstream.Consumer
	floor    uint64 // all commands up to this one were acknowledged
}

func newPuller(o *Options) *puller {
	kind := string(o.Target.Kind())
	p := &puller{c: o.Client, own: o.Own, durable: jetstream.ConsumerConfig{
		Durable:       kind + "-" + subject.Encode(o.Role),
		Description:   "executors of " + kind,
		FilterSubject: o.Client.Subject(subject.CommandsOf(kind)),
		DeliverPolicy: jetstream.DeliverAllPolicy,
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       o.AckWait,
		MaxDeliver:    -1,
		MaxAckPending: maxPending,
	}}
	if o.Own {
		p.durable.Description = "executor of " + kind + " with a consumer of its own"
		p.durable.DeliverPolicy = jetstream.DeliverLastPerSubjectPolicy
		p.durable.InactiveThreshold = OwnFor
	}
	return p
}

// open binds to the consumer, or makes it. One that somebody deleted is made
// again behind the commands that are known to be acknowledged.
func (p *puller) open(ctx context.Context) error {
	stream, config := p.c.Stream(subject.CommandsStream), p.durable
	consumer, err := p.c.JS.Consumer(ctx, stream, config.Durable)
	p.mu.Lock()
	defer p.mu.Unlock()
	if errors.Is(err, jetstream.ErrConsumerNotFound) && p.floor > 0 && !p.own {
		config.DeliverPolicy = jetstream.DeliverByStartSequencePolicy
		config.OptStartSeq = p.floor + 1
	}
	if err == nil {
		// What can be changed becomes what this version wants; where it started
		// can't.
		have := consumer.CachedInfo().Config
		config.DeliverPolicy, config.OptStartSeq = have.DeliverPolicy, have.OptStartSeq
	}
	if err == nil || errors.Is(err, jetstream.ErrConsumerNotFound) {
		consumer, err = p.c.JS.CreateOrUpdateConsumer(ctx, stream, config)
	}
	if err != nil {
		return fmt.Errorf("consumer %s: %w", config.Durable, err)
	}
	p.consumer = consumer
	p.floor = max(p.floor, consumer.CachedInfo().AckFloor.Stream)
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
	p.mu.Lock()
	defer p.mu.Unlock()
	p.floor = max(p.floor, info.AckFloor.Stream)
	return info.NumPending, nil
}

// rebind subscribes anew. If the server's consumer itself is stuck it is deleted
// and made again: commands beyond the floor that were acknowledged come again,
// and are known to the target.
func (p *puller) rebind(ctx context.Context, hard bool) error {
	if hard {
		if _, err := p.pending(ctx); err != nil {
			return err
		}
		err := p.c.JS.DeleteConsumer(ctx, p.c.Stream(subject.CommandsStream), p.durable.Durable)
		if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
			return fmt.Errorf("delete consumer %s: %w", p.durable.Durable, err)
		}
	}
	return p.open(ctx)
}
