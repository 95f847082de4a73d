package topology

import (
	"context"
	"fmt"
	"time"

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
)

// watched is a part of which readiness tells.
type watched struct {
	part    *telemetry.Part
	waiting func() string
}

// watch makes readiness follow what a part waits for, "" if for nothing. It must
// be called before look runs.
func (v *serving) watch(name string, waiting func() string) {
	v.watched = append(v.watched, watched{v.ready.Part(name), waiting})
}

// look asks each part how it stands until the context ends.
func (v *serving) look(ctx context.Context) error {
	t := clock.System().NewTicker(lookEvery)
	defer t.Stop()
	for {
		for _, w := range v.watched {
			if reason := w.waiting(); reason != "" {
				w.part.NotReady(reason)
			} else {
				w.part.Ready()
			}
		}
		select {
		case <-t.C():
		case <-ctx.Done():
			for _, w := range v.watched {
				w.part.NotReady("stopping")
			}
			return nil
		}
	}
}

// watchBus makes readiness follow the bus. A connection says little: a cluster
// without a majority keeps it, so the leader of EVENTS is asked.
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
	if _, err := client.State(ctx, subject.EventsStream); err != nil {
		return fmt.Errorf("the bus does not answer; what is in force goes on: %w", err)
	}
	return nil
}
