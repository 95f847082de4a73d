package coding

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"penstock/consumers/decider"
	"penstock/schemas/control"
	"penstock/schemas/window"
)

// Policy is one of control.CodingPolicies, by its configuration. It implements
// decider.Policy.
type Policy struct {
	config     Config
	configJSON []byte
	index      map[string]int // of stores
	state      *state
}

var _ decider.Policy = (*Policy)(nil)

// New makes the policy in its first state. The error wraps ErrConfig and lists every
// fault.
func New(c Config) (*Policy, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	body, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	t := &Policy{config: c, configJSON: body, index: map[string]int{}, state: newState(&c)}
	for i, s := range c.Stores {
		t.index[s.Name] = i
	}
	return t, nil
}

// Parse makes the policy from the bytes of Config; it is a decider.Factory but for its
// result's type. Unknown fields are faults.
func Parse(config []byte) (*Policy, error) {
	var c Config
	d := json.NewDecoder(bytes.NewReader(config))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return New(c)
}

// Kind returns coding.
func (t *Policy) Kind() control.Kind { return control.Coding }

// Groups returns the one group that the policy reads.
func (t *Policy) Groups() []string { return []string{window.Fast} }

// Width returns the width of the windows.
func (t *Policy) Width() time.Duration { return t.config.Window }

// TTL is how long a command is in force: what the loop should set.
func (t *Policy) TTL() time.Duration { return t.config.TTL }

// Config returns the canonical JSON of the configuration, defaults filled in.
func (t *Policy) Config() []byte { return bytes.Clone(t.configJSON) }

// decision is the decision of one window.
type decision struct {
	t       *Policy
	in      *decider.Input
	reasons *reasons
}

// Decide decides a closed window: see the package's documentation.
func (t *Policy) Decide(in decider.Input) decider.Output {
	w := &decision{t: t, in: &in, reasons: newReasons()}
	t.judge()
	l := t.learn(in.Tables, in.Window.End.UnixMicro())
	w.report(l)
	if len(in.Incomplete) > 0 {
		w.reasons.count(IncompleteWindow, int64(len(in.Incomplete)), "events of the window are missing; nothing is decided on it")
		return decider.Output{Reasons: w.reasons.list()}
	}
	var commands []control.Command
	for i := range t.state.stores {
		if t.state.stores[i].seen == noTime {
			w.reasons.count(Unseen, 1, "stores without a task yet: their coders do what they do without a table")
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
		w.reasons.count(Observing, 1, "the mode is observe: nothing is decided")
	case !in.Publishes():
		w.reasons.count(Frozen, 1, "by the operator's word: tables stay as they are")
	}
	return decider.Output{Reasons: w.reasons.list(), Commands: commands, Broken: w.broken()}
}

// report says what could not be used.
func (w *decision) report(l *learned) {
	if l.bad > 0 {
		w.reasons.count(BadRow, l.bad, "tasks of rows without a store, of another op or outcome, or with a number that cannot be")
	}
	names := make([]string, 0, len(l.unknown))
	for n := range l.unknown {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		w.reasons.add(UnknownStore, n, map[string]any{"tasks": l.unknown[n]}, "tasks of a store that the configuration doesn't name")
	}
	for i, n := range l.failed {
		if n > 0 {
			w.reasons.add(FailedTasks, w.t.config.Stores[i].Name, map[string]any{"tasks": n}, "they say nothing of the delay")
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
	w.reasons.add(Priced, w.t.config.Stores[i].Name, map[string]any{"requests_per_read": rounded(requests), "usd_per_million_reads": rounded(requests * each)}, "what a million reads cost as they were")
}
