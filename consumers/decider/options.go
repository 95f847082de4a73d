package decider

import (
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"penstock/infra/bus"
	"penstock/infra/clock"
	"penstock/schemas/control"
)

// Options says what one decider does.
type Options struct {
	// Client is the decider's own connection to the bus.
	Client *bus.Client
	// Clock paces retries. Defaults to the system's.
	Clock clock.Clock
	// Config is the configuration in force, as the policy's Config would write
	// it; Factory makes the policy from it, and from older ones.
	Config []byte
	// Factory makes a policy in its first state.
	Factory Factory
	// Logger gets what the decider has to say.
	Logger zerolog.Logger
	// Metrics counts. Defaults to nothing.
	Metrics Metrics
	// Mode is how far the kind goes unless the operator says otherwise. Defaults
	// to advise when serving and to act in a replay.
	Mode control.Mode
	// Purpose says whether streams are trimmed: a replay keeps everything.
	Purpose bus.Purpose
	// SnapshotEvery is the number of decided windows between snapshots. Defaults
	// to 24 when serving and to 256 in a replay.
	SnapshotEvery int
	// StopWithin bounds the snapshot of a clean stop. Defaults to 30 s.
	StopWithin time.Duration
	// TTL is how long a command may be applied, from its time on the server.
	// Defaults to 24 windows.
	TTL time.Duration
}

func (o *Options) complete() error {
	if o.Client == nil || o.Factory == nil {
		return fmt.Errorf("a client and a factory are needed: %w", ErrOptions)
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	if o.Metrics == nil {
		o.Metrics = none{}
	}
	replay := o.Purpose == bus.Replay
	if o.Mode == "" {
		o.Mode = control.Advise
		if replay {
			o.Mode = control.Act
		}
	}
	if o.SnapshotEvery == 0 {
		o.SnapshotEvery = 24
		if replay {
			o.SnapshotEvery = 256
		}
	}
	if o.StopWithin == 0 {
		o.StopWithin = 30 * time.Second
	}
	switch o.Mode {
	case control.Observe, control.Advise, control.Act:
	default:
		return fmt.Errorf("mode %q, expected observe, advise or act: %w", o.Mode, ErrOptions)
	}
	if o.SnapshotEvery < 0 || o.TTL < 0 || o.StopWithin < 0 {
		return fmt.Errorf("snapshot every %d windows, ttl %s, stop within %s: %w", o.SnapshotEvery, o.TTL, o.StopWithin, ErrOptions)
	}
	return nil
}

// policy makes the policy of a configuration and checks it.
func (o *Options) policy(config []byte) (Policy, error) {
	p, err := o.Factory(config)
	if err != nil {
		return nil, fmt.Errorf("policy of configuration %s: %w", ConfigDigest(config), err)
	}
	if len(p.Groups()) != 1 || p.Width() <= 0 {
		return nil, fmt.Errorf("policy of %s reads groups %v in windows of %s; expected one group: %w", p.Kind(), p.Groups(), p.Width(), ErrOptions)
	}
	return p, nil
}

// Metrics is told what a decider does; calls come from one goroutine.
type Metrics interface {
	// Decided: a window was decided. Took is the loop's own time, without
	// publishing.
	Decided(k control.Kind, d *control.Decision, took time.Duration)
	// Published: a decision is on the bus; took includes every retry.
	Published(k control.Kind, messages int, took time.Duration)
	// Outcome: an executor answered, or a location was imported. First is false
	// for an answer to no move that this decider waits for.
	Outcome(k control.Kind, s control.Status, first bool)
	// Retried: the bus did not answer as expected and is asked again.
	Retried(k control.Kind, what string)
	// SetAside: n things were not used, for a reason.
	SetAside(k control.Kind, reason string, n int64)
	// Snapshot: the state was stored, bytes compressed.
	Snapshot(k control.Kind, bytes int, took time.Duration)
}

type none struct{}

func (none) Decided(control.Kind, *control.Decision, time.Duration) {}
func (none) Published(control.Kind, int, time.Duration)             {}
func (none) Outcome(control.Kind, control.Status, bool)             {}
func (none) Retried(control.Kind, string)                           {}
func (none) SetAside(control.Kind, string, int64)                   {}
func (none) Snapshot(control.Kind, int, time.Duration)              {}
