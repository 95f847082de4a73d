package topology

import (
	"context"
	"errors"
	"fmt"

	"github.com/rs/zerolog"

	"penstock/consumers/decider"
	"penstock/consumers/decider/placement"
	"penstock/consumers/executor/locations"
	"penstock/infra/bus"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// ErrUnknownOwner is returned for an owner that the decider never saw.
var ErrUnknownOwner = errors.New("unknown owner")

// Decided is a move of an owner as a record and its outcome tell it.
type Decided struct {
	Window  control.Window `json:"window"`
	Epoch   uint64         `json:"epoch"`
	Mode    control.Mode   `json:"mode"`
	Move    control.Move   `json:"move"`
	Reason  control.Reason `json:"reason"`
	Outcome control.Status `json:"outcome,omitempty"` // empty while unanswered
	Why     string         `json:"why,omitempty"`     // of the outcome
}

// Explained is all that is known of why an owner's data is where it is.
type Explained struct {
	placement.Explanation
	// Location is what the table of locations says; nil for an owner that was
	// never moved, imported or pinned.
	Location *control.Location `json:"location,omitempty"`
	History  []Decided         `json:"history"`
	// Unreadable counts the commands and outcomes on the bus that cannot be
	// read: the history may lack what they say.
	Unreadable int `json:"unreadable,omitempty"`
}

// Explain recovers the decider's state of placement from the bus, without
// changing anything, and tells what it knows of an owner.
func Explain(ctx context.Context, client *bus.Client, owner string, log zerolog.Logger) (*Explained, error) {
	loaded, err := known(ctx, client, control.Placement, placementFactory, log)
	if err != nil {
		return nil, err
	}
	v, ok := loaded.Policy.Explain(owner)
	if !ok {
		return nil, fmt.Errorf("owner %.80q: %w", owner, ErrUnknownOwner)
	}
	e := &Explained{Explanation: v.(placement.Explanation)}
	if err := e.locate(ctx, client); err != nil {
		return nil, err
	}
	return e, e.history(ctx, client, log)
}

func (e *Explained) locate(ctx context.Context, client *bus.Client) error {
	table, err := locations.Open(ctx, client)
	if err != nil {
		return err
	}
	l, revision, err := table.Get(ctx, e.Owner)
	if err != nil {
		return err
	}
	if revision > 0 { // An owner without an entry is where it was first seen.
		e.Location = &l
	}
	return nil
}

// known recovers the decider's state of a kind from the bus, without changing anything.
func known(ctx context.Context, client *bus.Client, kind control.Kind, factory decider.Factory, log zerolog.Logger) (*decider.Loaded, error) {
	config, err := decider.ConfigInForce(ctx, client, kind)
	if errors.Is(err, bus.ErrNoMessage) {
		return nil, fmt.Errorf("nothing was decided yet of %s: %w", kind, err)
	}
	if err != nil {
		return nil, err
	}
	return decider.Load(ctx, decider.Options{Client: client, Config: config, Factory: factory, Logger: log, Purpose: bus.Replay})
}

// readable hands out what a subject holds. What cannot be read is left out, counted
// and logged: one bad message must not hide all the others.
func readable[T any](
	ctx context.Context, client *bus.Client, stream, subj string, unreadable *int, log zerolog.Logger,
	decode func([]byte) (*T, error), take func(m bus.Msg, v *T),
) error {
	return client.Each(ctx, stream, []string{subj}, 0, func(m bus.Msg) error {
		v, err := decode(m.Data)
		if err != nil {
			*unreadable++
			log.Warn().Err(err).Str("subject", m.Subject).Uint64("seq", m.Seq).Msg("left out of the history: it cannot be read")
			return nil
		}
		take(m, v)
		return nil
	})
}

// commandsOf decodes the commands of a kind.
func commandsOf(kind control.Kind) func([]byte) (*control.Command, error) {
	return func(b []byte) (*control.Command, error) { return control.DecodeCommandOf(kind, b) }
}

// answers hands out what executors made of a scope's tables, by the numbers that their
// epochs have in index.
func answers(
	ctx context.Context, client *bus.Client, kind control.Kind, scope string, index map[uint64]int, unreadable *int, log zerolog.Logger,
	take func(i int, a TableAnswer),
) error {
	if len(index) == 0 {
		return nil
	}
	outcomes := subject.Outcomes(string(kind), scope)
	return readable(ctx, client, subject.OutcomesStream, outcomes, unreadable, log, control.DecodeOutcome, func(_ bus.Msg, o *control.Outcome) {
		if i, ok := index[o.Epoch]; ok {
			take(i, TableAnswer{By: o.By, Target: o.Target, Status: o.Status, Reason: o.Reason, TookUS: o.TookUS, At: o.At.UTC()})
		}
	})
}

// history gathers the owner's moves from the commands that the bus still holds.
func (e *Explained) history(ctx context.Context, client *bus.Client, log zerolog.Logger) error {
	index := map[uint64][]int{}
	commands := subject.CommandsOf(string(control.Placement))
	err := readable(ctx, client, subject.CommandsStream, commands, &e.Unreadable, log, commandsOf(control.Placement), func(_ bus.Msg, c *control.Command) {
		for _, mv := range c.Placement.Moves {
			if mv.Owner == e.Owner {
				index[mv.Version] = append(index[mv.Version], len(e.History))
				e.History = append(e.History, Decided{Window: c.Window, Epoch: c.Epoch, Mode: c.Mode, Move: mv, Reason: c.Reason})
			}
		}
	})
	if err != nil || len(e.History) == 0 {
		return err
	}
	outcomes := subject.OutcomesOf(string(control.Placement))
	return readable(ctx, client, subject.OutcomesStream, outcomes, &e.Unreadable, log, control.DecodeOutcome, func(_ bus.Msg, o *control.Outcome) {
		if o.Owner == e.Owner && o.Status != control.Imported {
			for _, i := range index[o.Move] {
				e.History[i].Outcome, e.History[i].Why = o.Status, o.Reason
			}
		}
	})
}
