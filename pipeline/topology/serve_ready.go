package topology

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"penstock/infra/bus"
	"penstock/infra/clock"
	"penstock/infra/telemetry"
	"penstock/schemas/subject"
)

const (
	// lookEvery is how often readiness follows the parts.
	lookEvery = 500 * time.Millisecond
	// askWithin bounds the question whether the bus is there.
	askWithin = 2 * time.Second
	// silentPeer is after how long without a word from a replica its leader
	// cannot count on it; it asks every second.
	silentPeer = 5 * time.Second
)

// watched is a part of which readiness tells.
type watched struct {
	part    *telemetry.Part
	waiting func() string
}

// lookout makes readiness follow the parts of a process.
type lookout struct {
	ready   *telemetry.Readiness
	watched []watched
}

func newLookout() *lookout { return &lookout{ready: telemetry.NewReadiness(clock.System())} }

// watch makes readiness follow what a part waits for, "" if for nothing. It must
// be called before look runs.
func (l *lookout) watch(name string, waiting func() string) {
	l.watched = append(l.watched, watched{l.ready.Part(name), waiting})
}

// until makes the process not ready as soon as ctx ends, while its parts still
// finish what runs. It must be called before look runs; release frees what it holds.
func (l *lookout) until(ctx context.Context) (release func()) {
	const stopping = "stopping"
	l.watch("process", func() string {
		if ctx.Err() != nil {
			return stopping
		}
		return ""
	})
	process := l.watched[len(l.watched)-1].part
	stop := context.AfterFunc(ctx, func() { process.NotReady(stopping) })
	return func() { stop() }
}

// look asks each part how it stands until the context ends.
func (l *lookout) look(ctx context.Context) error {
	t := clock.System().NewTicker(lookEvery)
	defer t.Stop()
	for {
		for _, w := range l.watched {
			if reason := w.waiting(); reason != "" {
				w.part.NotReady(reason)
			} else {
				w.part.Ready()
			}
		}
		select {
		case <-t.C():
		case <-ctx.Done():
			for _, w := range l.watched {
				w.part.NotReady("stopping")
			}
			return nil
		}
	}
}

// watchBus makes readiness follow the bus. A connection says little: a cluster
// without a majority keeps it, so the leader of EVENTS is asked. It goes on
// answering for long when it has lost its replicas, and takes no write: so it is
// asked for them too.
func (v *serving) watchBus(ctx context.Context) error {
	client, err := v.bus.Client(ctx, "watch")
	if err != nil {
		return err
	}
	part := v.ready.Part("bus")
	v.parts.Start("bus watch", func(ctx context.Context) error {
		t := clock.System().NewTicker(lookEvery)
		defer t.Stop()
		for {
			if err := ask(ctx, client); err != nil {
				part.NotReady(err.Error())
			} else {
				part.Ready()
			}
			select {
			case <-t.C():
			case <-ctx.Done():
				return nil
			}
		}
	})
	return nil
}

func ask(ctx context.Context, client *bus.Client) error {
	if !client.NC.IsConnected() {
		return fmt.Errorf("no connection to the bus; what is in force goes on: %w", bus.ErrLost)
	}
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	st, err := client.JS.Stream(ctx, client.Stream(subject.EventsStream))
	if err != nil {
		return fmt.Errorf("the bus does not answer; what is in force goes on: %w", err)
	}
	return majority(st.CachedInfo().Cluster)
}

var errMinority = errors.New("fewer than half of the replicas of EVENTS can be reached, so that nothing can be stored; what is in force goes on")

// majority reports whether a stream's leader has enough replicas to store
// anything; a single server has none and needs none.
func majority(c *jetstream.ClusterInfo) error {
	if c == nil || len(c.Replicas) == 0 {
		return nil
	}
	there := 1 // the leader, who answered
	for _, r := range c.Replicas {
		if !r.Offline && r.Active < silentPeer {
			there++
		}
	}
	if 2*there > len(c.Replicas)+1 {
		return nil
	}
	return errMinority
}
