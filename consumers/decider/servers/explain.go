package servers

import (
	"time"

	"penstock/consumers/decider/servers/switching"
	"penstock/schemas/control"
)

// Explanation says what is known of a site and which table it has.
type Explanation struct {
	Site   string `json:"site"`
	Policy string `json:"policy"`
	// Code is what the rule says of now: what it would do, or why it does nothing.
	Code  string         `json:"code"`
	Text  string         `json:"text"`
	By    map[string]any `json:"by"`
	Least int            `json:"least"`
	Most  int            `json:"most"`
	Zones []ZoneView     `json:"zones"`
	// Dispatchers is how many send gauges of each server; 0 if no gauge of the site has ever
	// come, as of recordings without: then nobody knows what waits and is in service.
	Dispatchers float64 `json:"dispatchers"`
	// Table is the one in force, Sent the end of the window in which it was last sent,
	// Epoch the last epoch.
	Table *control.ServersTable `json:"table,omitempty"`
	Sent  *time.Time            `json:"sent,omitempty"`
	Epoch uint64                `json:"epoch,omitempty"`
	// Refused: no dispatcher has taken the last table; Failed is how many in a row.
	Refused bool `json:"refused,omitempty"`
	Failed  int  `json:"failed,omitempty"`
}

// ZoneView is what is known of a zone.
type ZoneView struct {
	Zone    string       `json:"zone"`
	Weight  float64      `json:"weight"`
	Servers []ServerView `json:"servers"`
}

// ServerView is what is known of a server.
type ServerView struct {
	Server string     `json:"server"`
	State  string     `json:"state"`
	Since  *time.Time `json:"since,omitempty"` // nil: from the beginning
	Slots  int        `json:"slots"`
	Cost   float64    `json:"cost_per_s"`
	// Queue is by the last gauge, nil if that is too old.
	Queue *QueueView `json:"queue,omitempty"`
}

// QueueView is what waits in front of a server.
type QueueView struct {
	Queued    float64 `json:"queued"`
	InService float64 `json:"in_service"`
	Potential float64 `json:"potential"` // penalty, in cost units
}

var stateNames = map[switching.State]string{
	switching.Off: "off", switching.Starting: "starting", switching.On: "on", switching.Draining: "draining", switching.Failed: "failed",
}

// Explain tells what the policy knows of a site, by its name or that of one of its servers;
// false if neither is configured. A server's name of several sites is the first one's.
func (t *Policy) Explain(name string) (any, bool) {
	i, ok := t.index[name]
	for j := 0; !ok && j < len(t.servers); j++ {
		_, ok = t.servers[j][name]
		i = j
	}
	if !ok {
		return nil, false
	}
	return t.view(i), true
}

// Sites are the names that Explain knows as scopes.
func (t *Policy) Sites() []string {
	out := make([]string, len(t.config.Sites))
	for i := range t.config.Sites {
		out[i] = t.config.Sites[i].Name
	}
	return out
}

func (t *Policy) view(i int) *Explanation {
	x, s, o := &t.config.Sites[i], &t.state.sites[i], &t.options[i]
	d := t.rules[i].Decide(t.observation(i, make([]switching.Load, len(x.Zones))))
	text, ok := counted[d.Code]
	if !ok {
		text = texts[string(d.Code)]
	}
	e := &Explanation{
		Site: x.Name, Policy: t.config.Policy, Code: string(d.Code), Text: text, By: figures(&d), Least: o.Least, Most: o.Most,
		Dispatchers: rounded(s.pace), Table: s.inForce(), Sent: at(s.sent), Epoch: max(s.served.Epoch, s.switched.Epoch),
		Failed: max(s.served.Failed, s.switched.Failed), Refused: s.served.Refused != "" && s.served.Refused == s.last,
	}
	if e.Most == 0 {
		e.Most = len(s.servers)
	}
	n := 0
	for z := range x.Zones {
		v := ZoneView{Zone: x.Zones[z].Name, Weight: d.Weights[z]}
		for range x.Zones[z].Servers {
			v.Servers = append(v.Servers, t.server(i, n))
			n++
		}
		e.Zones = append(e.Zones, v)
	}
	return e
}

func (t *Policy) server(i, n int) ServerView {
	x, o := &t.state.sites[i].servers[n], &t.options[i]
	v := ServerView{Server: t.names[i][n], State: stateNames[x.state], Since: at(x.since), Slots: o.Servers[n].Slots, Cost: o.Servers[n].Cost}
	if v.Cost == 0 {
		v.Cost = o.Cost
	}
	if x.fresh(t.state.now) {
		v.Queue = &QueueView{Queued: rounded(x.queued), InService: rounded(x.inService), Potential: rounded(x.potential)}
	}
	return v
}

func at(us int64) *time.Time {
	if us == noTime {
		return nil
	}
	v := time.UnixMicro(us).UTC()
	return &v
}
