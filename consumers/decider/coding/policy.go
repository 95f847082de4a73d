package coding

import (
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
	index  map[string]int // of stores
	state  *state
}

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
	t := &Policy{Frame: frame, config: c, index: map[string]int{}, state: newState(&c)}
	for i, s := range c.Stores {
		t.index[s.Name] = i
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
	for i := range t.state.stores {
		if t.state.stores[i].seen == noTime {
			w.reasons.Count(Unseen, 1, "stores without a task yet: their coders do what they do without a table")
			continue
		}
		w.fits(i)
		w.price(i, l)
		if c := w.store(i); c != nil {
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
	names := make([]string, 0, len(l.unknown))
	for n := range l.unknown {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		w.reasons.Add(UnknownStore, n, map[string]any{"tasks": l.unknown[n]}, "tasks of a store that the configuration doesn't name")
	}
	for i, n := range l.failed {
		if n > 0 {
			w.reasons.Add(FailedTasks, w.t.config.Stores[i].Name, map[string]any{"tasks": n}, "they say nothing of the delay")
		}
	}
}

// price says what a million reads of the window cost, by the tasks that they were.
func (w *decision) price(i int, l *learned) {
	if l.reads[i] <= 0 {
		return
	}
	each := max(0, w.t.config.Price.Read)
	requests := float64(l.asked[i]) / l.reads[i]
	w.reasons.Add(Priced, w.t.config.Stores[i].Name, map[string]any{"requests_per_read": rounded(requests), "usd_per_million_reads": rounded(requests * each)}, "what a million reads cost as they were")
}
