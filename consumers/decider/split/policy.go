package split

import (
	"fmt"
	"slices"

	"penstock/consumers/decider"
	"penstock/consumers/decider/reasons"
	"penstock/consumers/decider/settings"
	"penstock/schemas/control"
	"penstock/schemas/window"
)

// Policy is one of Policies, by its configuration. It implements decider.Policy.
type Policy struct {
	settings.Frame
	config    Config
	siteIndex map[string]int
	coders    map[string]bool
	base      []float64 // µs between sites where none was measured
	near      [][]int   // by site: sites by distance
	state     *state

	evacuated []bool // by site, for the window that is decided
}

var _ decider.Policy = (*Policy)(nil)

// New makes the policy in its first state. The error wraps ErrConfig and lists
// every fault.
func New(c Config) (*Policy, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	frame, err := settings.NewFrame(control.Split, window.Fast, c.Window, c.TTL, c, ErrConfig)
	if err != nil {
		return nil, err
	}
	t := &Policy{Frame: frame, config: c, siteIndex: map[string]int{}, coders: map[string]bool{}, state: newState(), evacuated: make([]bool, len(c.Sites))}
	for i, s := range c.Sites {
		t.siteIndex[s.Name] = i
	}
	for _, name := range c.Coders {
		t.coders[name] = true
	}
	t.base, t.near = c.distances()
	t.component("") // entryComponent
	for _, k := range c.Components {
		t.component(k.Name)
	}
	return t, nil
}

// Parse makes the policy from the bytes of Config; it is a decider.Factory but for
// its result's type. Unknown fields are faults.
func Parse(config []byte) (*Policy, error) {
	c, err := settings.Decode[Config](config, ErrConfig)
	if err != nil {
		return nil, err
	}
	return New(c)
}

// Decide decides a closed window: see the package's documentation.
func (t *Policy) Decide(in decider.Input) decider.Output {
	w := &decision{t: t, in: &in, reasons: reasons.New(codes, mostScoped)}
	for n, s := range t.config.Sites {
		t.evacuated[n] = slices.Contains(in.Operator.Evacuate, s.Name)
	}
	t.judge()
	l := t.learn(in.Tables, in.Window.End.UnixMicro())
	w.report(l)
	if len(in.Incomplete) > 0 {
		w.reasons.Count(IncompleteWindow, int64(len(in.Incomplete)), "events of the window are missing; nothing is decided on it")
		return decider.Output{Reasons: w.reasons.ByScope()}
	}
	t.levels()
	w.estimates = t.estimate()
	w.rows()
	w.plan()
	switch {
	case in.Operator.Mode == control.Observe:
		w.reasons.Count(Observing, 1, "the mode is observe: nothing is decided")
	case in.Operator.Rollback != nil && in.Publishes():
		w.rollback(in.Operator.Rollback.UnixMicro())
	case in.Publishes():
		w.steps()
	}
	commands := w.commands()
	return decider.Output{Reasons: w.reasons.ByScope(), Commands: commands, Broken: w.broken()}
}

// report says what could not be used and who was blamed.
func (w *decision) report(l *learned) {
	if l.bad > 0 {
		w.reasons.Count(BadRow, l.bad, "rows of a component that calls itself, or with a negative number")
	}
	names := make([]string, 0, len(l.unknown))
	for n := range l.unknown {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		w.reasons.Add(UnknownSite, n, map[string]any{"requests": l.unknown[n]}, "calls from or to a site that the configuration doesn't name")
	}
	for _, b := range l.blamed {
		site := w.t.config.Sites[b.site].Name
		w.reasons.Add(CallerSlow, w.t.scopeName(b.component), map[string]any{"from_site": site, "links": b.links, "rise_us": b.each},
			"network rose by %d µs on all %d links of %s at %s at once: it is the caller's, no callee is left for it", b.each, b.links, w.t.scopeName(b.component), site)
	}
}

// decision is the decision of one window.
type decision struct {
	t         *Policy
	in        *decider.Input
	reasons   *reasons.List
	estimates *estimates
	// thin, by edge and site: the row has too few samples.
	thin map[[2]int]bool
	// room is how many more calls a second each replica may get in this window.
	room []float64
	// next holds the rows that change.
	next   []changedRow
	needed *needs
}

// changedRow is a row that gets another table.
type changedRow struct {
	edge, site int
	parts      []int
	code       string
	from, to   int // the sites that lose and win most
	evidence   map[string]any
}

// rows brings every row's state up to date with what was seen: which have enough
// samples, and what is in force where no table of ours is.
func (w *decision) rows() {
	t, s := w.t, w.t.state
	w.thin = map[[2]int]bool{}
	for i := range s.edges {
		for a := range s.edges[i].rows {
			row := &s.edges[i].rows[a]
			if !row.present {
				continue
			}
			now, all, by := t.traffic(i, a)
			row.settled = row.settle(t.nowBy(i, a), t.config.Resolution)
			if now == 0 || all < t.config.MinSamples {
				w.thin[[2]int{i, a}] = true
				w.reasons.Count(InsufficientSamples, 1, fmt.Sprintf("rows with no call in the window or fewer than %d in %d windows: they stay as they are", t.config.MinSamples, t.config.History))
				continue
			}
			row.enough, row.expired = s.now, false
			if row.parts == nil || !w.in.Acts() && s.scopes[s.edges[i].from].sent == noTime {
				row.begin(apportion(by, t.config.Resolution), len(t.config.Sites))
			}
		}
	}
}

// begin sets what is in force without a table: what was seen.
func (r *row) begin(parts []int, sites int) {
	if r.up == nil {
		r.up, r.down = make([]int64, sites), make([]int64, sites)
		for n := range sites {
			r.up[n], r.down[n] = noTime, noTime
		}
	}
	r.parts = parts
	if r.target == nil {
		r.target = slices.Clone(parts)
	}
}

// apartFromTable is how far the shares that were seen in a window may be from the
// table for it to count as in force: the part of a window until a router has it,
// sticky sessions, chance.
const apartFromTable = 0.15

// settle reports whether the last table shows in the traffic. Until it does, what
// was measured is of the table before, and another step would be for the same
// thing again.
func (r *row) settle(seen []float64, whole int) bool {
	var sum float64
	for _, x := range seen {
		sum += x
	}
	if r.parts == nil || sum == 0 {
		return true
	}
	var off float64
	for n, x := range seen {
		off += max(0, x/sum-float64(r.parts[n])/float64(whole))
	}
	return off <= apartFromTable
}

// nowBy is the calls of a row in the window by site.
func (t *Policy) nowBy(edge, a int) []float64 {
	links := t.state.edges[edge].links[a]
	by := make([]float64, len(links))
	for b, s := range links {
		if len(s) > 0 && s[0].window == t.state.windows[0] {
			by[b] = float64(s[0].requests)
		}
	}
	return by
}

// traffic is the calls of a row in the window, in all windows, and by site.
func (t *Policy) traffic(edge, a int) (now, all int64, by []float64) {
	links := t.state.edges[edge].links[a]
	by = make([]float64, len(links))
	for b, s := range links {
		for _, x := range s {
			if t.weight(x.window) == 0 {
				continue
			}
			all += x.requests
			by[b] += float64(x.requests)
			if x.window == t.state.windows[0] {
				now += x.requests
			}
		}
	}
	return now, all, by
}
