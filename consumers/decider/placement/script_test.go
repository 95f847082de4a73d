package placement

import (
	"bytes"
	"strconv"
	"strings"
	"testing"
	"time"

	"penstock/consumers/decider"
	"penstock/infra/golden"
	"penstock/schemas/control"
	"penstock/schemas/window"
)

// script runs the commands of one golden script (package golden).
//
//	site NAME LAT LON CAPACITY
//	config KEY=VALUE…             alpha beta headroom tie place traffic moves bytes cooldown min
//	                              policy overload gb usd margin backoff
//	egress SITE USD               dollars a GB that leaves the site
//	rule PATTERN SITE…            residency
//	friend OWNER USER LEVEL
//	location OWNER SITE VERSION [pinned]
//	traffic OWNER SITE REQUESTS BYTES [WRITTEN]     - is no site
//	asks USER OWNER REQUESTS
//	place USER LAT LON
//	decide [N] [advise|observe] [freeze] [incomplete] [evacuate=SITE] [rollback=N]   window N, the next one by default
//	outcome OWNER VERSION STATUS
//	done                          every move under way has that outcome
//	fail                          every move under way has failed
//	imported OWNER SITE VERSION [pinned] [BYTES]
//	plan                          what the last plan is worth
//	restart                       goes on from a snapshot
//	explain OWNER
type script struct {
	t      *testing.T
	config Config
	policy *Policy
	tables map[string]*window.Table
	window int
}

// hour is the start of window n, in µs; window 1 is the first.
func hour(n int) int64 {
	return time.Date(2026, 1, 1, n-1, 0, 0, 0, time.UTC).UnixMicro()
}

func TestGoldenScripts(t *testing.T) {
	golden.Scripts(t, "testdata/*.txt", func(t *testing.T) golden.Step {
		return golden.EachLine((&script{t: t}).do)
	})
}

func (s *script) number(text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return v
}

func (s *script) do(line string) string {
	f := strings.Fields(line)
	switch f[0] {
	case "site":
		s.config.Sites = append(s.config.Sites, Site{Name: f[1], Lat: s.number(f[2]), Lon: s.number(f[3]), Capacity: int64(s.number(f[4]))})
	case "config":
		s.configure(f[1:])
	case "rule":
		s.config.Residency = append(s.config.Residency, Rule{Match: f[1], Sites: f[2:]})
	case "friend":
		s.config.Friends = append(s.config.Friends, Friend{Owner: f[1], User: f[2], Level: int64(s.number(f[3]))})
	case "location":
		if s.config.Locations == nil {
			s.config.Locations = make(map[string]control.Location)
		}
		s.config.Locations[f[1]] = control.Location{Site: f[2], Version: uint64(s.number(f[3])), State: control.Live, Pinned: len(f) > 4}
	case "traffic", "asks", "place":
		s.row(f)
	case "decide":
		return s.decide(f[1:])
	case "outcome":
		s.outcome(f[1], uint64(s.number(f[2])), control.Status(f[3]))
	case "done":
		s.end(control.Done)
	case "fail":
		s.end(control.Failed)
	case "egress":
		if s.config.Egress == nil {
			s.config.Egress = make(map[string]float64)
		}
		s.config.Egress[f[1]] = s.number(f[2])
	case "imported":
		s.start()
		o := &control.Outcome{Kind: control.Placement, Owner: f[1], Scope: f[2], Move: uint64(s.number(f[3])), Status: control.Imported}
		for _, more := range f[4:] {
			if more == "pinned" {
				o.Pinned = true
			} else {
				o.Bytes = int64(s.number(more))
			}
		}
		s.policy.Apply(o)
	case "plan":
		return shownPlan(s.policy.LastPlan())
	case "restart":
		s.restart()
	case "explain":
		return s.explain(f[1])
	default:
		s.t.Fatalf("command %q", f[0])
	}
	return ""
}

func (s *script) configure(pairs []string) {
	for _, p := range pairs {
		key, value, _ := strings.Cut(p, "=")
		c := &s.config
		switch key {
		case "alpha":
			c.Alpha = s.number(value)
		case "beta":
			c.Beta = s.number(value)
		case "headroom":
			c.Headroom = s.number(value)
		case "tie":
			c.TieTolerance = s.number(value)
		case "place":
			c.Place = value
		case "traffic":
			c.Traffic = value
		case "moves":
			c.Limits.Moves = int(s.number(value))
		case "bytes":
			c.Limits.Bytes = int64(s.number(value))
		case "cooldown":
			d, err := time.ParseDuration(value)
			if err != nil {
				s.t.Fatal(err)
			}
			c.Cooldown = d
		case "min":
			c.MinRequests = int64(s.number(value))
		case "policy":
			c.Policy = value
		case "overload":
			c.Objective.Overload = s.number(value)
		case "gb":
			c.Objective.PerGB = s.number(value)
		case "usd":
			c.Objective.PerUSD = s.number(value)
		case "margin":
			c.Objective.Margin = s.number(value)
		case "backoff":
			c.BackOff = int(s.number(value))
		default:
			s.t.Fatalf("config %q", key)
		}
	}
}

func (s *script) start() {
	if s.policy != nil {
		return
	}
	p, err := New(s.config)
	if err != nil {
		s.t.Fatal(err)
	}
	s.policy = p
}

func (s *script) table(r *window.Rollup) *window.Table {
	if s.tables == nil {
		s.tables = make(map[string]*window.Table)
	}
	if s.tables[r.Name] == nil {
		s.tables[r.Name] = window.NewTable(r)
	}
	return s.tables[r.Name]
}

func (s *script) row(f []string) {
	start := hour(s.window + 1)
	switch f[0] {
	case "traffic":
		site, written := strings.Replace(f[2], "-", "", 1), int64(0)
		if len(f) > 5 {
			written = int64(s.number(f[5]))
		}
		n := int64(s.number(f[3]))
		s.table(window.Traffic).Append(start, []string{f[1], site}, []int64{n, n, 0, int64(s.number(f[4])), written})
	case "asks":
		s.table(window.Interactions).Append(start, []string{f[1], f[2]}, []int64{int64(s.number(f[3]))})
	case "place":
		s.table(window.Places).Append(start, []string{f[1]}, placeRow(start, s.number(f[2]), s.number(f[3]), 1))
	}
}

func (s *script) decide(options []string) string {
	s.start()
	s.window++
	in := decider.Input{Operator: control.Operator{Mode: control.Act}}
	for _, o := range options {
		key, value, _ := strings.Cut(o, "=")
		switch key {
		case "advise", "observe":
			in.Operator.Mode = control.Mode(key)
		case "freeze":
			in.Operator.Frozen = true
		case "incomplete":
			in.Incomplete = []window.Interval{{From: hour(s.window), To: hour(s.window) + 1, Reason: "lost"}}
		case "evacuate":
			in.Operator.Evacuate = append(in.Operator.Evacuate, value)
		case "rollback":
			at := time.UnixMicro(hour(int(s.number(value)) + 1)).UTC()
			in.Operator.Rollback = &at
		default:
			s.window = int(s.number(key))
		}
	}
	in.Window = control.Window{Start: time.UnixMicro(hour(s.window)).UTC(), End: time.UnixMicro(hour(s.window + 1)).UTC()}
	in.Tables = make(map[string]*window.Table)
	for name, t := range s.tables {
		in.Tables[name] = window.Merge(t.Rollup, t)
	}
	s.tables = nil
	out := s.policy.Decide(in)
	text := printed(out)
	if out.Broken != nil {
		text += "broken: " + out.Broken.Text + "\n"
	}
	return text
}

func (s *script) outcome(owner string, version uint64, status control.Status) {
	s.policy.Apply(&control.Outcome{Version: 1, Kind: control.Placement, Owner: owner, Move: version, Status: status})
}

func (s *script) end(status control.Status) {
	st := s.policy.state
	for id := range int32(st.names.len()) {
		if st.pending(id) != 0 {
			s.outcome(st.names.at(id), st.moves[st.move[id]].version, status)
		}
	}
}

func (s *script) restart() {
	var b bytes.Buffer
	if err := s.policy.Snapshot(&b); err != nil {
		s.t.Fatal(err)
	}
	again, err := Parse(s.policy.Config())
	if err != nil {
		s.t.Fatal(err)
	}
	if err := again.Restore(&b); err != nil {
		s.t.Fatal(err)
	}
	if a, b := s.policy.Digest(), again.Digest(); a != b {
		s.t.Fatalf("digest %s became %s", a, b)
	}
	s.policy = again
}
