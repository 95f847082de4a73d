package aggregator

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"penstock/infra/bus"
	"penstock/infra/clock"
	"penstock/schemas/subject"
)

// trimEvery bounds how often EVENTS is trimmed.
const trimEvery = time.Second

// Trimmer trims EVENTS in a replay to the least sequence that is covered by a
// stored commit of every group on every partition, so that a stream that does
// not give way never stays full. In serve nothing is trimmed: the stream's own
// limits do that.
type Trimmer struct {
	client *bus.Client
	clock  clock.Clock
	log    zerolog.Logger

	mu      sync.Mutex
	covered map[key]uint64
	wake    chan struct{}
}

type key struct {
	group     string
	partition int
}

// NewTrimmer returns a trimmer that waits for all of the groups on all
// partitions.
func NewTrimmer(c *bus.Client, groups []string, clk clock.Clock, log zerolog.Logger) *Trimmer {
	t := &Trimmer{client: c, clock: clk, log: log, covered: map[key]uint64{}, wake: make(chan struct{}, 1)}
	for _, g := range groups {
		for p := range c.Partitions() {
			t.covered[key{g, p}] = 0
		}
	}
	return t
}

// Covered notes what a stored commit covers. It never blocks.
func (t *Trimmer) Covered(group string, partition int, seq uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := key{group, partition}
	if was, known := t.covered[k]; !known || seq <= was {
		return
	}
	t.covered[k] = seq
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

func (t *Trimmer) least() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]uint64, 0, len(t.covered))
	for _, seq := range t.covered {
		all = append(all, seq)
	}
	if len(all) == 0 {
		return 0
	}
	return slices.Min(all)
}

// Run trims, at most once a second, until the context ends. A trim that fails
// is tried again with the next one.
func (t *Trimmer) Run(ctx context.Context) error {
	var done uint64
	for {
		select {
		case <-t.wake:
		case <-ctx.Done():
			return nil
		}
		if least := t.least(); least > done {
			err := t.client.Trim(ctx, subject.EventsStream, least+1)
			switch {
			case err == nil:
				done = least
			case ctx.Err() == nil: // Not just told to stop meanwhile.
				t.log.Warn().Err(err).Uint64("covered", least).Msg("cannot trim events")
				t.again()
			}
		}
		if !pause(ctx, t.clock, trimEvery) {
			return nil
		}
	}
}

func (t *Trimmer) again() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}
