package report

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"penstock/consumers/decider/servers"
	"penstock/infra/bus"
	"penstock/schemas/control"
	"penstock/schemas/window"
)

// ServersReport is what was decided of kind servers: the section servers of report.json,
// of replays that decide it.
type ServersReport struct {
	Config string `json:"config"` // digest of the policy's configuration
	Policy string `json:"policy"`
	// Windows is how many were decided, Incomplete how many of them lack events. From and
	// Upto are the begin of the first and the end of the last.
	Windows    int       `json:"windows"`
	Incomplete int       `json:"windows_incomplete"`
	From       time.Time `json:"from,omitzero"`
	Upto       time.Time `json:"upto,omitzero"`
	// Tables is how many were ordered; Changes how many of them turn servers on or off: the
	// rest are first ones, sent again, or weigh zones anew.
	Tables  int `json:"tables"`
	Changes int `json:"changes"`
	// StepS is how many seconds a point of the series covers.
	StepS   float64          `json:"step_s"`
	Sites   []SiteServers    `json:"sites"` // in config order
	Reasons map[string]int64 `json:"reasons"`
}

// SiteServers is how many servers of a site the tables had on, beside what was recorded.
type SiteServers struct {
	Site   string `json:"site"`
	Policy string `json:"policy"`
	Tables int    `json:"tables"`
	// On counts a server from the end of the window whose table turns it on to that of the
	// one whose table turns it off; before the first table, the configuration's.
	On      ServersOn      `json:"on"`
	Changes []ServersShift `json:"changes"`
	// Cost is server time only.
	Cost ServersCost `json:"cost"`
	// Recorded is the traffic as it was, with the servers that ran then.
	Recorded ServersRecorded `json:"recorded"`
	Series   []ServersPoint  `json:"series"`
}

// ServersOn is how many servers were on.
type ServersOn struct {
	Configured int     `json:"configured"`
	Mean       float64 `json:"mean"` // over time
	Least      int     `json:"least"`
	Most       int     `json:"most"`
	Last       int     `json:"last"`
}

// ServersShift is a table that turns servers on or off.
type ServersShift struct {
	Window time.Time `json:"window_end"`
	On     int       `json:"on"` // from then
	Up     []string  `json:"turned_on,omitempty"`
	Down   []string  `json:"turned_off,omitempty"`
	Code   string    `json:"code"` // of the table's reason
	Text   string    `json:"text"`
}

// ServersCost is what servers cost, in cost units, for the time that they were on. What
// lateness cost is not in it: with other servers, another part of the requests would have
// been late.
type ServersCost struct {
	Hours float64 `json:"server_hours"`
	// ServerTime is of those that the tables had on, AllOn what all of the site would cost.
	ServerTime float64 `json:"server_time"`
	AllOn      float64 `json:"server_time_all_on"`
}

// ServersRecorded is the traffic of a site as it was recorded.
type ServersRecorded struct {
	Requests int64 `json:"requests"`
	// Turned are those that no server got; the policy counts each as late by its limit.
	Turned int64 `json:"turned_away"`
	// Limited have a limit, of which Late were beyond it.
	Limited   int64  `json:"limited"`
	Late      int64  `json:"late"`
	LateShare Figure `json:"late_share"`
	// Penalties is the sum over requests of the penalty of their class × by how much they
	// were late, in cost units.
	Penalties float64 `json:"penalties"`
	// Potential is what the waiting requests were going to cost; nil: no queue told.
	Potential *PotentialSeen `json:"potential,omitempty"`
}

// PotentialSeen are the potential penalties by the gauges of a site, in cost units.
type PotentialSeen struct {
	Mean float64 `json:"mean"` // of the site
	Most float64 `json:"most"` // of one queue
}

// ServersPoint is a step of time.
type ServersPoint struct {
	Start    time.Time `json:"start"`
	On       float64   `json:"on"` // mean
	Requests int64     `json:"requests"`
	Late     int64     `json:"late"`
	// Penalties and ServerTime are sums, in cost units.
	Penalties  float64 `json:"penalties"`
	ServerTime float64 `json:"server_time"`
	// Utilisation is the recorded time in service over the places of the servers that were
	// on by the tables, so that it may be above 1. Null where it is not known.
	Utilisation Figure `json:"utilisation"`
	Potential   Figure `json:"potential"` // mean; null without gauges
}

// ServersOf says whose tables are reported.
type ServersOf struct {
	Config string // digest
	// Policy is the policy's configuration, with its defaults.
	Policy servers.Config
}

// Servers gathers the section from what is on a bus. Its methods do nothing on nil, so
// that a replay without servers has none.
type Servers struct {
	report  ServersReport
	classes map[string]servers.Class
	penalty float64 // of other classes
	sites   map[string]*siteServers
	order   []*siteServers
	step    int64 // µs
}

// siteServers is a site while it is gathered.
type siteServers struct {
	SiteServers
	machines map[string]machine
	names    []string // in config order
	on       []string // by the last table
	spells   []spell  // in order of time
	steps    []stepSums
	gauged   int64   // start of the last window with gauges, µs
	gauges   int64   // windows with gauges
	waiting  float64 // potential penalties, summed
	mostWait int64   // µs
}

// machine is what is configured of a server.
type machine struct{ places, cost float64 }

// spell is a time without change, from an instant (µs) to that of the next.
type spell struct {
	from         int64
	on           int
	places, cost float64 // of those on
}

// ReadServers reads the decisions and tables of servers.
func ReadServers(ctx context.Context, client *bus.Client, of ServersOf) (*Servers, error) {
	c := &of.Policy
	s := &Servers{
		report:  ServersReport{Config: of.Config, Policy: c.Policy, Sites: []SiteServers{}, Reasons: map[string]int64{}},
		classes: map[string]servers.Class{}, penalty: c.Penalty, sites: map[string]*siteServers{},
	}
	for _, k := range c.Classes {
		s.classes[k.Name] = k
	}
	for i := range c.Sites {
		x := newSiteServers(c, &c.Sites[i])
		s.sites[x.Site] = x
		s.order = append(s.order, x)
	}
	if err := eachDecided(ctx, client, control.Servers, s.decided, s.commanded); err != nil {
		return nil, err
	}
	s.divide()
	return s, nil
}

func newSiteServers(c *servers.Config, site *servers.Site) *siteServers {
	x := &siteServers{
		SiteServers: SiteServers{Site: site.Name, Policy: c.Policy, Changes: []ServersShift{}, Series: []ServersPoint{}},
		machines:    map[string]machine{}, gauged: window.NullInt,
	}
	for _, z := range site.Zones {
		for _, v := range z.Servers {
			m := machine{float64(c.Slots), c.ServerCost}
			if v.Slots > 0 {
				m.places = float64(v.Slots)
			}
			if v.Cost > 0 {
				m.cost = v.Cost
			}
			x.machines[v.Name], x.names = m, append(x.names, v.Name)
			if !v.Off {
				x.on = append(x.on, v.Name)
			}
		}
	}
	x.spells = []spell{x.spell(window.NullInt)}
	return x
}

// spell begins with the servers that are on.
func (x *siteServers) spell(from int64) spell {
	sp := spell{from: from, on: len(x.on)}
	for _, name := range x.on {
		sp.places += x.machines[name].places
		sp.cost += x.machines[name].cost
	}
	return sp
}

func (s *Servers) decided(d *control.Decision) {
	r := &s.report
	r.Windows++
	if d.Incomplete {
		r.Incomplete++
	}
	if r.From.IsZero() || d.Window.Start.Before(r.From) {
		r.From = d.Window.Start.UTC()
	}
	if d.Window.End.After(r.Upto) {
		r.Upto = d.Window.End.UTC()
	}
	for _, v := range d.Reasons {
		r.Reasons[v.Code] += max(v.Count, 1)
	}
}

// commanded takes in a table.
func (s *Servers) commanded(c *control.Command) {
	s.report.Tables++
	x := s.sites[c.Scope]
	if x == nil {
		return // of a site that the configuration had before
	}
	x.Tables++
	v := ServersShift{
		Window: c.Window.End, On: len(c.Servers.On), Up: without(c.Servers.On, x.on), Down: without(x.on, c.Servers.On), Code: c.Reason.Code, Text: c.Reason.Text,
	}
	if len(v.Up)+len(v.Down) == 0 {
		return
	}
	x.on = c.Servers.On
	x.spells = append(x.spells, x.spell(c.Window.End.UnixMicro()))
	x.Changes = append(x.Changes, v)
	s.report.Changes++
}

// without are the names that others lack.
func without(names, others []string) (out []string) {
	for _, n := range names {
		if !slices.Contains(others, n) {
			out = append(out, n)
		}
	}
	return out
}

// Fill adds the section to a report.
func (s *Servers) Fill(r *Report) {
	if s == nil {
		return
	}
	from, upto := s.report.From.UnixMicro(), s.report.Upto.UnixMicro()
	if s.report.Windows == 0 {
		from, upto = 0, 0
	}
	for _, x := range s.order {
		x.fill(from, upto, s.step)
		s.report.Sites = append(s.report.Sites, x.SiteServers)
	}
	r.Servers = &s.report
}

// summary is what a person is told at a terminal.
func (s *ServersReport) summary(b *strings.Builder) {
	fmt.Fprintf(b, "servers  %d windows decided by policy %s, %d tables, %d of them turn servers on or off", s.Windows, s.Policy, s.Tables, s.Changes)
	if s.Incomplete > 0 {
		fmt.Fprintf(b, "; %d windows lack events", s.Incomplete)
	}
	b.WriteString("\n")
	for i := range s.Sites {
		x := &s.Sites[i]
		fmt.Fprintf(b, "  %s: of %d servers %d to %d on, %s on average, %d changes; server time costs %s, with all on %s\n", x.Site,
			x.On.Configured, x.On.Least, x.On.Most, trimmed(x.On.Mean), len(x.Changes), amount(x.Cost.ServerTime), amount(x.Cost.AllOn))
		fmt.Fprintf(b, "    %s\n", x.Recorded.text())
	}
	if len(s.Sites) > 0 {
		fmt.Fprintf(b, "    %s\n", notSaid)
	}
	fmt.Fprintf(b, "  reasons: %s\n", Reasons(s.Reasons))
}

// notSaid is what no report of a recording can say.
const notSaid = "Recorded traffic goes where it went: what penalties other servers would have brought is not known."

// text says what was recorded, in a line.
func (r *ServersRecorded) text() string {
	text := fmt.Sprintf("as recorded: %s requests", grouped(fmt.Sprint(r.Requests)))
	if r.Limited > 0 {
		text += fmt.Sprintf(", %s %% of those with a limit late", trimmed(100*float64(r.LateShare)))
	} else {
		text += ", none with a limit"
	}
	if r.Limited > 0 || r.Penalties > 0 {
		text += ", penalties of " + amount(r.Penalties)
	}
	if r.Turned > 0 {
		text += fmt.Sprintf("; %s turned away", grouped(fmt.Sprint(r.Turned)))
	}
	if p := r.Potential; p != nil {
		text += fmt.Sprintf("; what waited was going to cost %s on average, at one queue %s at most", amount(p.Mean), amount(p.Most))
	}
	return text
}

// amount prints cost units.
func amount(x float64) string { return grouped(trimmed(x)) }
