package coding

import (
	"maps"
	"slices"

	"penstock/consumers/decider"
	"penstock/consumers/decider/reasons"
	"penstock/consumers/decider/settings"
	"penstock/schemas/control"
	"penstock/schemas/window"
)

// Policy is one of control.CodingPolicies, by its configuration. It implements
// decider.Policy.
type Policy struct {
	settings.Frame
	config Config
	index  map[string]int // of coders
	stores map[string]place
	state  *state
}

// place is where a store is in the configuration.
type place struct{ coder, member int }

var _ decider.Policy = (*Policy)(nil)

// New makes the policy in its first state. The error wraps ErrConfig and lists every
// fault.
func New(c Config) (*Policy, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	frame, err := settings.NewFrame(control.Coding, window.Fast, c.Window, c.TTL, c, ErrConfig)
	if err != nil {
		return nil, err
	}
	t := &Policy{Frame: frame, config: c, index: map[string]int{}, stores: map[string]place{}, state: newState(&c)}
	for i := range c.Coders {
		t.index[c.Coders[i].Name] = i
		for j, m := range c.Coders[i].members() {
			t.stores[m] = place{i, j}
		}
	}
	return t, nil
}

// Parse makes the policy from the bytes of Config; it is a decider.Factory but for its
// result's type. Unknown fields are faults.
func Parse(config []byte) (*Policy, error) {
	c, err := settings.Decode[Config](config, ErrConfig)
	if err != nil {
		return nil, err
	}
	return New(c)
}

// decision is the decision of one window.
type decision struct {
	t       *Policy
	in      *decider.Input
	reasons *reasons.List
}

// Decide decides a closed window: see the package's documentation.
func (t *Policy) Decide(in decider.Input) decider.Output {
	w := &decision{t: t, in: &in, reasons: reasons.New(codes, mostScoped)}
	t.judge()
	l := t.learn(in.Tables, in.Window.End.UnixMicro())
	w.report(l)
	if len(in.Incomplete) > 0 {
		w.reasons.Count(IncompleteWindow, int64(len(in.Incomplete)), "events of the window are missing; nothing is decided on it")
		return decider.Output{Reasons: w.reasons.All()}
	}
	var commands []control.Command
	for i := range t.state.coders {
		if t.state.coders[i].seen == noTime {
			w.reasons.Count(Unseen, 1, "coders without a task yet: they do what they do without a table")
			continue
		}
		w.fits(i)
		w.price(i, l)
		if c := w.coder(i); c != nil {
			commands = append(commands, *c)
		}
	}
	switch {
	case in.Operator.Mode == control.Observe:
		w.reasons.Count(Observing, 1, "the mode is observe: nothing is decided")
	case !in.Publishes():
		w.reasons.Count(Frozen, 1, "by the operator's word: tables stay as they are")
	}
	return decider.Output{Reasons: w.reasons.All(), Commands: commands, Broken: w.broken()}
}

// report says what could not be used.
func (w *decision) report(l *learned) {
	if l.bad > 0 {
		w.reasons.Count(BadRow, l.bad, "tasks of rows without a store, of another op or outcome, or with a number that cannot be")
	}
	for _, n := range slices.Sorted(maps.Keys(l.unknown)) {
		w.reasons.Add(UnknownStore, n, map[string]any{"tasks": l.unknown[n]}, "tasks of a store that no coder of the configuration has")
	}
	for _, n := range slices.Sorted(maps.Keys(l.unlisted)) {
		w.reasons.Add(UnknownCoder, n, map[string]any{"gauges": l.unlisted[n]}, "the queue of a coder that the configuration doesn't name")
	}
	for i := range l.coders {
		x, s := &w.t.config.Coders[i], &l.coders[i]
		for j, n := range s.failed {
			if n > 0 {
				w.reasons.Add(FailedTasks, x.Name, map[string]any{"store": x.members()[j], "tasks": n}, "they say nothing of the delay")
			}
		}
		if s.background > 0 {
			w.reasons.Add(Background, x.Name, map[string]any{"tasks": s.background}, "repairs and other work that no client waits for: no code is chosen for it, and no delay is fitted to it")
		}
		if s.gauges > 0 {
			w.reasons.Add(Waiting, x.Name, map[string]any{"mean": rounded(float64(s.backlog) / float64(s.gauges)), "most": s.most},
				"requests that its queue said to wait; codes are chosen by the coder itself, with the backlog that each request meets")
		}
	}
}

// price says what a million reads of the window cost, by the tasks that they were.
func (w *decision) price(i int, l *learned) {
	var cells []cell
	for _, p := range l.coders[i].panes {
		cells = append(cells, p[read].cells...)
	}
	reads, tasks := requests(cells)
	if reads <= 0 {
		return
	}
	p := w.t.priceOf(reads, tasks)
	w.reasons.Add(Priced, w.t.config.Coders[i].Name, map[string]any{"requests_per_read": p.RequestsPerRead, "usd_per_million_reads": p.AsWere}, "what a million reads cost as they were")
}
