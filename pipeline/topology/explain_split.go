package topology

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"penstock/consumers/decider/split"
	"penstock/infra/bus"
	"penstock/pipeline/report"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// ErrUnknownScope is returned for a component, or a site of one, that the decider of
// split never saw, and for a coder that the decider of coding does not know.
var ErrUnknownScope = errors.New("unknown scope")

// ExplainedSplit is all that is known of why a component's calls are shared out as
// they are.
type ExplainedSplit struct {
	split.Explanation
	// Site is the calling site that was asked for, empty for all.
	Site string `json:"site,omitempty"`
	// Window is the last decided one: what stands here is as of its end.
	Window control.Window `json:"window"`
	// Callees are the replicas of each component that is called, by name.
	Callees map[string][]split.ReplicaView `json:"callees,omitempty"`
	// Table is the last table of the scope on the bus, and who follows it; nil
	// without one.
	Table *report.TableStatus `json:"table,omitempty"`
	// History are the tables that the bus still holds, oldest first.
	History []TableChange `json:"history"`
	// Unreadable counts the commands and outcomes on the bus that cannot be read: the
	// history may lack what they say.
	Unreadable int `json:"unreadable,omitempty"`
}

// TableChange is a table of a scope and what became of it.
type TableChange struct {
	Window  control.Window `json:"window"`
	Epoch   uint64         `json:"epoch"`
	Mode    control.Mode   `json:"mode"`
	At      time.Time      `json:"at"`
	Reason  control.Reason `json:"reason"`
	Probes  int            `json:"probes,omitempty"` // how many it orders
	Changes []RowChange    `json:"changes"`          // empty: sent again, or other probes
	// Answers are one a router that answered for itself, in the order in which they
	// came.
	Answers []TableAnswer `json:"answers"`
}

// RowChange is a row that has other shares than in the table before it on the bus;
// Was is empty if that lacked it.
type RowChange struct {
	FromSite string               `json:"from_site"`
	To       string               `json:"to"`
	Was      []control.SplitRatio `json:"was,omitempty"`
	Is       []control.SplitRatio `json:"is"`
}

// TableAnswer is a router's or coder's answer to a table.
type TableAnswer struct {
	By     string         `json:"by"`
	Target string         `json:"target,omitempty"`
	Status control.Status `json:"status"`
	Reason string         `json:"reason,omitempty"`
	TookUS int64          `json:"took_us"`
	At     time.Time      `json:"at"`
}

// ExplainSplit recovers the decider's state of split from the bus, without changing
// anything, and tells what it knows of a calling component, or of the calls from
// outside. What is asked for is SCOPE, or SCOPE@SITE for the calls from a site.
func ExplainSplit(ctx context.Context, client *bus.Client, what string, log zerolog.Logger) (*ExplainedSplit, error) {
	loaded, err := known(ctx, client, control.Split, splitFactory, log)
	if err != nil {
		return nil, err
	}
	e := &ExplainedSplit{Window: loaded.Window, Callees: map[string][]split.ReplicaView{}, History: []TableChange{}}
	v, ok := loaded.Policy.Explain(what)
	at := strings.LastIndexByte(what, '@')
	ofSite := !ok && at > 0
	if ofSite {
		e.Site = what[at+1:]
		v, ok = loaded.Policy.Explain(what[:at])
	}
	if !ok {
		return nil, fmt.Errorf("%.80q: %w: expected SCOPE or SCOPE@SITE, of the scopes %s", what, ErrUnknownScope, someOf(loaded.Policy.(*split.Policy).Scopes()))
	}
	e.Explanation = v.(split.Explanation)
	if ofSite {
		if err := e.keep(); err != nil {
			return nil, err
		}
	}
	for i := range e.Calls {
		to := e.Calls[i].To
		if x, ok := loaded.Policy.Explain(to); ok {
			e.Callees[to] = x.(split.Explanation).Replicas
		}
	}
	if err := e.history(ctx, client, log); err != nil {
		return nil, err
	}
	e.Table, err = report.TableOf(ctx, client, control.Split, e.Component)
	return e, err
}

// keep drops the rows of other sites than the one asked for, which must be one that
// has calls or replicas.
func (e *ExplainedSplit) keep() error {
	var sites []string
	for _, r := range e.Calls {
		sites = append(sites, r.FromSite)
	}
	for _, r := range e.Replicas {
		sites = append(sites, r.Site)
	}
	slices.Sort(sites)
	sites = slices.Compact(sites)
	if e.Site == "" {
		return fmt.Errorf("%s@: %w: no site follows the @; its sites are %s", e.Component, ErrUnknownScope, someOf(sites))
	}
	if !slices.Contains(sites, e.Site) {
		return fmt.Errorf("%s@%.80s: %w: %s neither runs at that site nor calls from there; its sites are %s", e.Component, e.Site, ErrUnknownScope, e.Component, someOf(sites))
	}
	e.Calls = slices.DeleteFunc(e.Calls, func(r split.RowView) bool { return r.FromSite != e.Site })
	return nil
}

// maxListed bounds the names that an error lists.
const maxListed = 20

// someOf lists names, not too many of them.
func someOf(names []string) string {
	switch n := len(names); {
	case n == 0:
		return "none yet"
	case n > maxListed:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxListed], ", "), n-maxListed)
	}
	return strings.Join(names, ", ")
}

// history gathers the scope's tables from the bus.
func (e *ExplainedSplit) history(ctx context.Context, client *bus.Client, log zerolog.Logger) error {
	index := map[uint64]int{}
	was := map[[2]string][]control.SplitRatio{}
	commands := subject.Commands(string(control.Split), e.Component)
	err := readable(ctx, client, subject.CommandsStream, commands, &e.Unreadable, log, commandsOf(control.Split), func(m bus.Msg, c *control.Command) {
		x := TableChange{
			Window: c.Window, Epoch: c.Epoch, Mode: c.Mode, At: m.Time.UTC(), Reason: c.Reason, Probes: len(c.Split.Probes),
			Changes: []RowChange{}, Answers: []TableAnswer{},
		}
		for _, r := range c.Split.Table {
			key := [2]string{r.FromSite, r.To}
			old := was[key]
			was[key] = r.Ratios
			if moved, _, _ := report.ShiftOf(old, r.Ratios); moved > 0 && (e.Site == "" || e.Site == r.FromSite) {
				x.Changes = append(x.Changes, RowChange{FromSite: r.FromSite, To: r.To, Was: old, Is: r.Ratios})
			}
		}
		index[c.Epoch] = len(e.History)
		e.History = append(e.History, x)
	})
	if err != nil {
		return err
	}
	return answers(ctx, client, control.Split, e.Component, index, &e.Unreadable, log, func(i int, a TableAnswer) {
		e.History[i].Answers = append(e.History[i].Answers, a)
	})
}
