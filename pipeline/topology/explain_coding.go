package topology

import (
	"context"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"penstock/consumers/decider/coding"
	"penstock/infra/bus"
	"penstock/pipeline/report"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// ExplainedCoding is all that is known of why a coder's requests get the codes that
// they do.
type ExplainedCoding struct {
	coding.Explanation
	// Window is the last decided one: what stands here is as of its end.
	Window control.Window `json:"window"`
	// Reasons are those of that window's record that are about the coder: what was done
	// with it, and why there is no new table; those about all coders are counted.
	Reasons []control.Reason `json:"reasons"`
	// InForce is the last table on the bus, and who follows it; nil without one.
	InForce *report.TableStatus `json:"in_force,omitempty"`
	// History are the tables that the bus still holds, oldest first.
	History []CodingChange `json:"history"`
	// Unreadable counts the commands and outcomes on the bus that cannot be read: the
	// history may lack what they say.
	Unreadable int `json:"unreadable,omitempty"`
}

// CodingChange is a table of a coder and what became of it.
type CodingChange struct {
	Window control.Window       `json:"window"`
	Epoch  uint64               `json:"epoch"`
	Mode   control.Mode         `json:"mode"`
	At     time.Time            `json:"at"`
	Reason control.Reason       `json:"reason"`
	Table  *control.CodingTable `json:"table"`
	// Answers are one a coder that answered for itself, in the order in which they came.
	Answers []TableAnswer `json:"answers"`
}

// ExplainCoding recovers the decider's state of coding from the bus, without changing
// anything, and tells what it knows of a coder, by its name or that of one of its stores.
func ExplainCoding(ctx context.Context, client *bus.Client, what string, log zerolog.Logger) (*ExplainedCoding, error) {
	loaded, err := known(ctx, client, control.Coding, codingFactory, log)
	if err != nil {
		return nil, err
	}
	v, ok := loaded.Policy.Explain(what)
	if !ok {
		return nil, fmt.Errorf("%.80q: %w: expected a coder or one of its stores, of the coders %s", what, ErrUnknownScope, someOf(loaded.Policy.(*coding.Policy).Coders()))
	}
	e := &ExplainedCoding{Explanation: *v.(*coding.Explanation), Window: loaded.Window, Reasons: []control.Reason{}, History: []CodingChange{}}
	if e.Reasons, err = lastReasons(ctx, client, control.Coding, e.Coder); err != nil {
		return nil, err
	}
	if err := e.history(ctx, client, log); err != nil {
		return nil, err
	}
	e.InForce, err = report.TableOf(ctx, client, control.Coding, e.Coder)
	return e, err
}

// history gathers the coder's tables from the bus.
func (e *ExplainedCoding) history(ctx context.Context, client *bus.Client, log zerolog.Logger) error {
	index := map[uint64]int{}
	commands := subject.Commands(string(control.Coding), e.Coder)
	err := readable(ctx, client, subject.CommandsStream, commands, &e.Unreadable, log, commandsOf(control.Coding), func(m bus.Msg, c *control.Command) {
		index[c.Epoch] = len(e.History)
		e.History = append(e.History, CodingChange{
			Window: c.Window, Epoch: c.Epoch, Mode: c.Mode, At: m.Time.UTC(), Reason: c.Reason, Table: c.Coding, Answers: []TableAnswer{},
		})
	})
	if err != nil {
		return err
	}
	return answers(ctx, client, control.Coding, e.Coder, index, &e.Unreadable, log, func(i int, a TableAnswer) {
		e.History[i].Answers = append(e.History[i].Answers, a)
	})
}
