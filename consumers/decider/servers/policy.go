package servers

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"penstock/consumers/decider"
	"penstock/consumers/decider/reasons"
	"penstock/consumers/decider/servers/switching"
	"penstock/consumers/decider/settings"
	"penstock/schemas/control"
	"penstock/schemas/window"
)

// Policy is none, penalty or forecast, by its configuration. It implements decider.Policy.
type Policy struct {
	settings.Frame
	config  Config
	index   map[string]int   // of sites
	servers []map[string]int // by site: of its servers, over all zones
	names   [][]string       // by site: of its servers
	classes map[string]Class
	rules   []*switching.Rule
	options []switching.Options
	state   *state
}

var _ decider.Policy = (*Policy)(nil)

// New makes the policy in its first state. The error wraps ErrConfig and lists every
// fault.
func New(c Config) (*Policy, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	frame, err := settings.NewFrame(control.Servers, window.Fast, c.Window, c.TTL, c, ErrConfig)
	if err != nil {
		return nil, err
	}
	t := &Policy{Frame: frame, config: c, index: map[string]int{}, classes: map[string]Class{}}
	for _, x := range c.Classes {
		t.classes[x.Name] = x
	}
	for i := range c.Sites {
		x := &c.Sites[i]
		t.index[x.Name] = i
		o := c.options(x)
		rule, err := switching.New(o)
		if err != nil {
			return nil, fmt.Errorf("%w: site %s: %w", ErrConfig, x.Name, err)
		}
		index, names := map[string]int{}, []string(nil)
		for _, z := range x.Zones {
			for _, s := range z.Servers {
				index[s.Name] = len(names)
				names = append(names, s.Name)
			}
		}
		t.rules, t.options = append(t.rules, rule), append(t.options, o)
		t.servers, t.names = append(t.servers, index), append(t.names, names)
	}
	t.state = newState(&c, t.rules)
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
	w.judge()
	t.state.now = in.Window.End.UnixMicro()
	t.age()
	l := t.learn(in.Tables)
	w.report(l)
	observations := make([]switching.Observation, len(t.rules))
	for i := range t.rules {
		observations[i] = t.observation(i, l.sites[i].zones)
		if len(in.Incomplete) == 0 { // Else the load looks less than it was, and the rule would learn that.
			t.rules[i].Observe(observations[i])
		}
	}
	if len(in.Incomplete) > 0 {
		w.reasons.Count(IncompleteWindow, int64(len(in.Incomplete)), "events of the window are missing; nothing is decided on it")
		return decider.Output{Reasons: w.reasons.All()}
	}
	var commands []control.Command
	for i := range t.state.sites {
		if t.state.sites[i].seen == noTime {
			w.reasons.Count(Unseen, 1, "sites without a request or gauge yet: they do what they do without a table")
			continue
		}
		if c := w.site(i, t.rules[i].Decide(observations[i])); c != nil {
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
		w.reasons.Count(BadRow, l.bad, "rows with a number that cannot be")
	}
	for _, n := range slices.Sorted(maps.Keys(l.unknown)) {
		w.reasons.Add(UnknownSite, n, map[string]any{"rows": l.unknown[n]}, "a site without servers in the configuration")
	}
	for i := range l.sites {
		name := w.t.config.Sites[i].Name
		for _, n := range slices.Sorted(maps.Keys(l.sites[i].unlisted)) {
			w.reasons.Add(UnknownServer, name, map[string]any{"server": n, "rows": l.sites[i].unlisted[n]}, "a server that the site does not have in the configuration")
		}
		if n := l.sites[i].turned; n > 0 {
			w.reasons.Add(Turned, name, map[string]any{"requests": n}, "no server got them, and they failed: each is late by the limit of its class")
		}
	}
}

// timeout is how long a server counts as starting or draining without an outcome, µs.
func (t *Policy) timeout() int64 {
	return max(3*t.config.StartDelay, t.config.Window).Microseconds()
}

// age takes servers for what they were to become, where no outcome came in time.
func (t *Policy) age() {
	for i := range t.state.sites {
		for j := range t.state.sites[i].servers {
			x := &t.state.sites[i].servers[j]
			if x.since == noTime || t.state.now-x.since < t.timeout() {
				continue
			}
			switch x.state {
			case switching.Starting:
				x.become(switching.On, t.state.now)
			case switching.Draining:
				x.become(switching.Off, t.state.now)
			}
		}
	}
}

// become changes the state of a server, if it is another.
func (x *server) become(s switching.State, now int64) {
	if x.state != s {
		x.state, x.since = s, now
	}
}

func seconds(d time.Duration) float64 { return float64(d) / float64(time.Second) }
