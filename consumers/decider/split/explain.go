package split

import (
	"math"
	"slices"
	"time"
)

// Explanation says what is known of a component and how its calls are shared
// out. Delays are in µs, rates in calls a second, smoothed over History.
type Explanation struct {
	Component string        `json:"component"`
	Policy    string        `json:"policy"`
	Replicas  []ReplicaView `json:"replicas,omitempty"`
	Calls     []RowView     `json:"calls,omitempty"`
	// Epoch is that of the last table; Sent is the end of the window of the last
	// one that was to be applied.
	Epoch uint64     `json:"epoch,omitempty"`
	Sent  *time.Time `json:"sent,omitempty"`
	// Refused: no executor has taken the last table; it is not sent again until it
	// changes. Failed is how many in a row were refused or failed everywhere.
	Refused bool `json:"refused,omitempty"`
	Failed  int  `json:"failed,omitempty"`
}

// ReplicaView is a component at a site, as a callee.
type ReplicaView struct {
	Site      string  `json:"site"`
	Allowed   bool    `json:"allowed"`
	ServiceUS int64   `json:"service_us"`
	Errors    float64 `json:"errors"`
	Samples   int64   `json:"samples"`
	Known     bool    `json:"known"`
	Load      float64 `json:"load"`
	// Capacity is nil while nothing has shown a limit.
	Capacity *float64 `json:"capacity,omitempty"`
}

// RowView is a row of the component's table.
type RowView struct {
	FromSite string      `json:"from_site"`
	To       string      `json:"to"`
	Sites    []ShareView `json:"sites"`
	Rate     float64     `json:"rate"`    // calls a second
	Samples  int64       `json:"samples"` // calls in History windows
	// Thin: too few samples, or none in the last window, so that no plan moves it.
	Thin bool `json:"thin,omitempty"`
	// Fast: the target is worth a command, and the way there leaves something that got
	// worse.
	Fast    bool `json:"fast,omitempty"`
	Expired bool `json:"expired,omitempty"`
	// WritesAt is the site of all calls that write, whatever the shares.
	WritesAt string `json:"writes_at,omitempty"`
}

// ShareView is a site of a row.
type ShareView struct {
	Site      string     `json:"site"`
	Share     float64    `json:"share"`
	Target    float64    `json:"target"`
	NetworkUS int64      `json:"network_us"`
	Samples   int64      `json:"samples"`  // of the link, for its network
	Measured  bool       `json:"measured"` // the network is the link's own, not assumed
	CostUS    int64      `json:"cost_us"`  // of the last plan, with the calls further on
	Probe     float64    `json:"probe,omitempty"`
	Rose      *time.Time `json:"rose,omitempty"` // the share, last
	Fell      *time.Time `json:"fell,omitempty"`
	// HeldUntil is until when the share goes on in the direction in which it last
	// went, or stays; nil if no cooldown holds it.
	HeldUntil *time.Time `json:"held_until,omitempty"`
}

// Scopes are the components that are known, ascending, and the scope of the calls
// from outside: what Explain explains.
func (t *Policy) Scopes() []string {
	out := []string{t.config.EntryScope}
	for j := range t.state.components {
		if j != entryComponent {
			out = append(out, t.state.components[j].name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Explain returns an Explanation of a component, or of the calls from outside by
// their scope; false for a component that was never seen.
func (t *Policy) Explain(name string) (any, bool) {
	s := t.state
	j := entryComponent
	if name != t.config.EntryScope {
		var ok bool
		if j, ok = s.index[name]; !ok || j == entryComponent {
			return nil, false
		}
	}
	sc := &s.scopes[j]
	out := Explanation{
		Component: name, Policy: t.config.Policy, Epoch: sc.standing.Epoch, Sent: instant(sc.sent),
		Refused: sc.standing.Refused != "" && sc.standing.Refused == sc.table, Failed: sc.standing.Failed,
	}
	if s.now == noTime {
		return out, true
	}
	e, m := t.estimate(), len(t.config.Sites)
	ok := t.allowed(j)
	for n := range m {
		r := j*m + n
		if j == entryComponent || !s.replicas[j][n].present && !ok[n] {
			continue
		}
		v := ReplicaView{
			Site: t.config.Sites[n].Name, Allowed: ok[n], ServiceUS: int64(e.service[r]), Errors: round(e.errors[r]),
			Samples: e.samples[r], Known: e.known[r], Load: round(e.load[r]),
		}
		if !math.IsInf(e.limit[r], 1) {
			limit := round(e.limit[r])
			v.Capacity = &limit
		}
		out.Replicas = append(out.Replicas, v)
	}
	for i := range s.edges {
		for a := range s.edges[i].rows {
			if s.edges[i].from == j && s.edges[i].rows[a].parts != nil {
				out.Calls = append(out.Calls, t.explainRow(e, i, a))
			}
		}
	}
	return out, true
}

func (t *Policy) explainRow(e *estimates, i, a int) RowView {
	x := &t.state.edges[i]
	row := &x.rows[a]
	whole := float64(t.config.Resolution)
	now, all, _ := t.traffic(i, a)
	out := RowView{
		FromSite: t.config.Sites[a].Name, To: t.state.components[x.to].name, Rate: round(t.rate(x.links[a]...)), Samples: all,
		Thin: now == 0 || all < t.config.MinSamples, Fast: row.fast && float64(distance(row.parts, row.target)) > whole*max(0, t.config.DeadBand), Expired: row.expired,
	}
	if told := t.state.components[x.to].told; told != nil {
		out.WritesAt = told.WritesAt
	}
	ok := t.allowed(x.to)
	for b := range row.parts {
		if !ok[b] && row.parts[b] == 0 {
			continue
		}
		v := ShareView{
			Site: t.config.Sites[b].Name, Share: float64(row.parts[b]) / whole, Target: float64(row.target[b]) / whole,
			NetworkUS: int64(t.network(e, i, a, b)), Rose: instant(row.up[b]), Fell: instant(row.down[b]),
		}
		_, v.Samples = t.mean(x.links[a][b])
		v.Measured = v.Samples >= t.leastSamples() && t.config.Policy != LocalityFailover
		if held := max(row.up[b], row.down[b]) + max(0, t.config.Cooldown.Microseconds()); held > t.state.now {
			v.HeldUntil = instant(held)
		}
		if row.last != nil {
			v.CostUS = int64(row.last[b])
		}
		if row.probes != nil {
			v.Probe = float64(row.probes[b]) / probeParts
		}
		out.Sites = append(out.Sites, v)
	}
	return out
}

func instant(us int64) *time.Time {
	if us == noTime {
		return nil
	}
	at := time.UnixMicro(us).UTC()
	return &at
}
