package placement

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"runtime"
	"time"

	"penstock/consumers/decider"
	"penstock/consumers/decider/settings"
	"penstock/schemas/control"
	"penstock/schemas/event"
	"penstock/schemas/sphere"
	"penstock/schemas/window"
)

// maxWorkers bounds goroutines of one decision: each takes memory of its own.
const maxWorkers = 8

// historyWindows is how far a rollback can reach back, in widths of a window.
const historyWindows = 1024

// maxBackOff is for how many windows at most an owner whose moves fail is held.
const maxBackOff = 64

// caseOf is the case of a window (paper §5.2.1).
type caseOf uint8

const (
	noCase caseOf = iota
	minimal
	firstOverhead
	continuousOverhead
)

var caseNames = [...]string{"", "minimal", "overhead-first", "overhead-continuous"}

// Policy is policy tmatch or optimal, by its configuration. It implements decider.Policy: one goroutine
// calls it at a time, and it uses several inside a decision.
type Policy struct {
	config     Config
	configJSON []byte
	state      *state

	mean      bool
	tolerance int64 // in units of 1e-9
	workers   int
	siteIndex map[string]uint16 // site numbers of the configuration
	vectors   []sphere.Vector   // where the sites are
	// Sites at one spot weigh the same: distances are kept by corner.
	corners   []sphere.Vector
	corner    []int // by site
	width     int   // number of corners
	words     int   // words of kept distances a user
	limit     []int64
	residency *Residency
	objective Objective
	egress    []float64 // US dollars a GB that leaves, by site number

	// All of this follows from the state and is in no snapshot.
	imports    []control.Outcome // that Apply has put aside, see takeImports
	rule       []uint16          // residency rule by id, empty without rules
	near       []uint64          // kept distances, words by id
	placeMoved []uint64          // bit by id: its place changed in this window; nil: none did
	want       []uint16          // the match of the plan, by id
	evacuated  []bool            // by site: what best and ties were computed for
	batch      []*weights
	scratch    []int
	last       lastPlan
	cells      int // up to how many costs an instance is small
	nodes      int // budget of the solver's branch and bound; 0: its default
}

var _ decider.Policy = (*Policy)(nil)

// New makes the policy in its first state: imported locations and friends are
// known, nothing was seen. The error wraps ErrConfig and lists every fault.
func New(c Config) (*Policy, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	body, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	n := len(c.Sites)
	t := &Policy{
		config: c, configJSON: body, state: newState(c.Sites),
		mean: c.Place == Mean, tolerance: int64(math.Round(c.TieTolerance * unit)),
		workers: min(runtime.GOMAXPROCS(0), maxWorkers), siteIndex: make(map[string]uint16, n),
		limit: make([]int64, n+1), residency: NewResidency(c.Sites, c.Residency), evacuated: make([]bool, n),
		objective: c.Objective.withDefaults(), egress: make([]float64, n+1), cells: smallCells,
	}
	for i, s := range c.Sites {
		t.siteIndex[s.Name] = uint16(i + 1)
		t.limit[i+1] = usable(s.Capacity, c.Headroom)
		t.egress[i+1] = c.Egress[s.Name]
		t.addVector(sphere.FromDegrees(s.Lat, s.Lon))
	}
	t.width = len(t.corners)
	t.words = (t.width + 3) / 4
	t.importLocations()
	t.importFriends()
	return t, nil
}

// Parse makes the policy from the bytes of Config. It is a decider.Factory but
// for its result's type. Unknown fields are faults.
func Parse(config []byte) (*Policy, error) {
	c, err := settings.Decode[Config](config, ErrConfig)
	if err != nil {
		return nil, err
	}
	return New(c)
}

// usable is capacity × (1 − headroom), rounded down to whole bytes.
func usable(capacity int64, headroom float64) int64 {
	if headroom == 0 {
		return capacity
	}
	return int64(math.Floor(float64(capacity) * (1 - headroom)))
}

func (t *Policy) addVector(v sphere.Vector) {
	t.vectors = append(t.vectors, v)
	for i, c := range t.corners {
		if c == v {
			t.corner = append(t.corner, i)
			return
		}
	}
	t.corner = append(t.corner, len(t.corners))
	t.corners = append(t.corners, v)
}

func (t *Policy) importLocations() {
	s, owners := t.state, sortedKeys(t.config.Locations)
	ids := s.names.intern(owners, t.workers)
	s.grow()
	for i, owner := range owners {
		l, id := t.config.Locations[owner], ids[i]
		s.changeOwner(id, func() {
			s.flags[id] |= isOwner | imported
			if l.Pinned {
				s.flags[id] |= pinned
			}
			s.site[id], s.stored[id] = t.siteIndex[l.Site], t.config.Stored[owner]
		})
		if l.Version > 0 {
			s.changeMove(id, func(m *moveRecord) { m.version = l.Version })
		}
	}
	t.follow()
}

func (t *Policy) importFriends() {
	s, friends := t.state, t.config.Friends
	var owners, users event.Dict
	levels := make([]int64, len(friends))
	for i, f := range friends {
		owners.Append(f.Owner)
		users.Append(f.User)
		levels[i] = max(f.Level, 1)
	}
	of, by := s.names.intern(owners.Values, t.workers), s.names.intern(users.Values, t.workers)
	s.grow()
	t.follow()
	delta := collect(rows{
		owner: owners.Codes, user: users.Codes, of: of, by: by, number: levels, owners: s.names.len(), workers: t.workers,
	}, s.names.rank)
	t.addSocial(delta)
}

// follow extends what follows from the state to the number of names.
func (t *Policy) follow() {
	t.near = extend(t.near, t.state.names.len()*t.words, farAway)
	t.growRules()
}

// Kind returns placement.
func (t *Policy) Kind() control.Kind { return control.Placement }

// Groups returns the one group that the policy reads.
func (t *Policy) Groups() []string { return []string{window.Owners} }

// Width returns the width of the windows.
func (t *Policy) Width() time.Duration { return t.config.Window }

// Config returns the canonical JSON of the configuration, defaults filled in.
func (t *Policy) Config() []byte { return bytes.Clone(t.configJSON) }

// SetWorkers sets how many goroutines a decision uses, at least 1; the default
// is one a processor, at most 8. Results don't depend on it.
func (t *Policy) SetWorkers(n int) { t.workers = max(1, min(n, maxWorkers)) }

// Decide decides a closed window: see the package's documentation.
func (t *Policy) Decide(in decider.Input) decider.Output {
	t.takeImports()
	s, r := t.state, &reasons{optimal: t.config.Policy == Optimal}
	s.now = in.Window.End.UnixMicro()
	t.last = lastPlan{}
	t.forget()
	l := t.learn(in.Tables)
	l.report(r)
	if len(in.Incomplete) > 0 {
		r.add(IncompleteWindow, "", int64(len(in.Incomplete)), nil, "events of the window are missing; nothing is decided on it")
		return decider.Output{Reasons: r.list(s.names)}
	}
	p := &plan{t: t, in: &in, reasons: r}
	p.evacuate(in.Operator.Evacuate)
	enough := l.requests >= max(t.config.MinRequests, 1)
	var broken *control.Reason
	if enough {
		broken = p.keep()
		p.classify()
	} else {
		r.add(InsufficientSamples, "", 0, map[string]any{"requests": l.requests, "least": max(t.config.MinRequests, 1)},
			"%d requests, at least %d are needed; the last match stays", l.requests, max(t.config.MinRequests, 1))
	}
	switch {
	case in.Operator.Mode == control.Observe:
		r.add(Observing, "", 0, nil, "%s", codeTexts[Observing])
	case in.Operator.Rollback != nil:
		p.rollback(in.Operator.Rollback.UnixMicro())
	case enough:
		p.match()
	}
	commands := p.commands()
	return decider.Output{Case: caseNames[p.kind], Reasons: r.list(s.names), Commands: commands, Broken: broken}
}

// report says which rows could not be used.
func (l *learned) report(r *reasons) {
	if l.bad > 0 {
		r.add(BadRow, "", l.bad, nil, "rows without an owner, with a negative number, or with a place that is none")
	}
	const most = 20
	names := sortedKeys(l.unknown)
	var rest int64
	for i, name := range names {
		if i < most {
			r.add(UnknownSite, name, l.unknown[name], nil, "requests served by a site that the configuration doesn't name")
		} else {
			rest += l.unknown[name]
		}
	}
	if rest > 0 {
		r.add(UnknownSite, "", rest, nil, "requests served by %d more sites that the configuration doesn't name", len(names)-most)
	}
}

// forget drops the history that is older than historyWindows.
func (t *Policy) forget() {
	s := t.state
	oldest := s.now - historyWindows*t.config.Window.Microseconds()
	keep := s.history[:0]
	for _, h := range s.history {
		if h.window >= oldest {
			keep = append(keep, h)
			continue
		}
		s.digest.set.drop(s.historyHash(h))
		s.forgotten = max(s.forgotten, h.window)
	}
	s.history = keep
}
