package topology

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"penstock/consumers/decider/servers"
	"penstock/consumers/executor/serverswitch"
	"penstock/infra/bus"
	"penstock/infra/lease"
	"penstock/pipeline/report"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// ExplainedServers is all that is known of why the servers of a site are on or off.
type ExplainedServers struct {
	servers.Explanation
	// Window is the last decided one: what stands here is as of its end.
	Window control.Window `json:"window"`
	// Reasons are those of that window's record that are about the site.
	Reasons []control.Reason `json:"reasons"`
	// InForce is the last table on the bus, and who follows it; nil without one.
	InForce *report.TableStatus `json:"in_force,omitempty"`
	// Switch is how the server switch that acts says the servers are; nil if none acts.
	Switch *SwitchStatus `json:"switch,omitempty"`
	// History are the tables that the bus still holds, oldest first.
	History []ServersChange `json:"history"`
	// Unreadable counts the commands and outcomes on the bus that cannot be read: the
	// history may lack what they say.
	Unreadable int `json:"unreadable,omitempty"`
}

// SwitchStatus is what the server switch of a site that holds its lease says.
type SwitchStatus struct {
	By    string                 `json:"by"`
	At    time.Time              `json:"at"`
	State serverswitch.SiteState `json:"state"`
	// StandingBy are the switches that wait for it to go, by name.
	StandingBy []string `json:"standing_by,omitempty"`
}

// ServersChange is a table of a site and what became of it.
type ServersChange struct {
	Window control.Window        `json:"window"`
	Epoch  uint64                `json:"epoch"`
	Mode   control.Mode          `json:"mode"`
	At     time.Time             `json:"at"`
	Reason control.Reason        `json:"reason"`
	Table  *control.ServersTable `json:"table"`
	// Answers are one a dispatcher or switch that answered for itself, in the order in
	// which they came.
	Answers []TableAnswer `json:"answers"`
}

// ExplainServers recovers the decider's state of servers from the bus, without changing
// anything, and tells what it knows of a site, by its name or that of one of its servers.
func ExplainServers(ctx context.Context, client *bus.Client, what string, log zerolog.Logger) (*ExplainedServers, error) {
	loaded, err := known(ctx, client, control.Servers, serversFactory, log)
	if err != nil {
		return nil, err
	}
	v, ok := loaded.Policy.Explain(what)
	if !ok {
		return nil, fmt.Errorf("%.80q: %w: expected a site or one of its servers, of the sites %s", what, ErrUnknownScope, someOf(loaded.Policy.(*servers.Policy).Sites()))
	}
	e := &ExplainedServers{Explanation: *v.(*servers.Explanation), Window: loaded.Window, Reasons: []control.Reason{}, History: []ServersChange{}}
	if e.Reasons, err = lastReasons(ctx, client, control.Servers, e.Site); err != nil {
		return nil, err
	}
	if err := e.history(ctx, client, log); err != nil {
		return nil, err
	}
	if e.Switch, err = SwitchOf(ctx, client, e.Site); err != nil {
		return nil, err
	}
	e.InForce, err = report.TableOf(ctx, client, control.Servers, e.Site)
	return e, err
}

// SwitchOf is what the server switch of a site says; nil if none acts.
func SwitchOf(ctx context.Context, client *bus.Client, site string) (*SwitchStatus, error) {
	held, ok, err := lease.Read(ctx, client, SwitchLease(site))
	if err != nil || !ok {
		return nil, err
	}
	s := &SwitchStatus{By: held.Holder, At: held.At}
	if err := json.Unmarshal(held.Says, &s.State); err != nil {
		return nil, fmt.Errorf("what the switch of %s says: %w", site, err)
	}
	s.StandingBy, err = lease.StandingBy(ctx, client, SwitchLease(site))
	return s, err
}

// lastReasons reads what the last record of a kind says of a scope, and of all.
func lastReasons(ctx context.Context, client *bus.Client, kind control.Kind, scope string) ([]control.Reason, error) {
	out := []control.Reason{}
	m, err := client.Last(ctx, subject.CommandsStream, subject.Decisions(string(kind)))
	if errors.Is(err, bus.ErrNoMessage) {
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	d, err := control.DecodeDecision(m.Data)
	if err != nil {
		return nil, fmt.Errorf("%s, sequence %d: %w", m.Subject, m.Seq, err)
	}
	for _, r := range d.Reasons {
		if r.Scope == scope || r.Scope == "" {
			out = append(out, r)
		}
	}
	return out, nil
}

// history gathers the site's tables from the bus.
func (e *ExplainedServers) history(ctx context.Context, client *bus.Client, log zerolog.Logger) error {
	index := map[uint64]int{}
	commands := subject.Commands(string(control.Servers), e.Site)
	err := readable(ctx, client, subject.CommandsStream, commands, &e.Unreadable, log, commandsOf(control.Servers), func(m bus.Msg, c *control.Command) {
		index[c.Epoch] = len(e.History)
		e.History = append(e.History, ServersChange{
			Window: c.Window, Epoch: c.Epoch, Mode: c.Mode, At: m.Time.UTC(), Reason: c.Reason, Table: c.Servers, Answers: []TableAnswer{},
		})
	})
	if err != nil {
		return err
	}
	return answers(ctx, client, control.Servers, e.Site, index, &e.Unreadable, log, func(i int, a TableAnswer) {
		e.History[i].Answers = append(e.History[i].Answers, a)
	})
}
