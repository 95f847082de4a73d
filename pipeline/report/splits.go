package report

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"penstock/infra/bus"
	"penstock/schemas/control"
)

// SplitReport is what was decided of kind split: the section split of report.json,
// of replays that decide it.
type SplitReport struct {
	Config string `json:"config"` // digest of the policy's configuration
	Policy string `json:"policy"`
	// Windows is how many were decided, Incomplete how many of them lack events, on
	// which nothing is decided.
	Windows    int `json:"windows"`
	Incomplete int `json:"windows_incomplete"`
	// Tables is how many were ordered; Changes how many of them give a link other
	// shares than the one before: the rest are sent again or order other probes.
	Tables  int         `json:"tables"`
	Changes int         `json:"changes"`
	Largest *SplitShift `json:"largest_shift,omitempty"`
	// Links are those that have a table, by calling component, its site, and callee.
	Links   []SplitLink      `json:"links"`
	Reasons map[string]int64 `json:"reasons"`

	from, upto time.Time // of the windows with delays
	sites      []string
}

// SplitShift is one change of a link's shares.
type SplitShift struct {
	Window   time.Time `json:"window_end"`
	From     string    `json:"from"` // calling component
	FromSite string    `json:"from_site"`
	To       string    `json:"to"`
	// Moved is the share of the link's calls that goes to other sites: most of it
	// leaves Off and goes Onto.
	Moved float64 `json:"moved"`
	Off   string  `json:"off"`
	Onto  string  `json:"onto"`
	Code  string  `json:"code"` // of the table's reason
}

// SplitLink is how the calls of a component at a site to another were shared out.
type SplitLink struct {
	From     string `json:"from"`
	FromSite string `json:"from_site"`
	To       string `json:"to"`
	// Changes is how often the shares changed after the first table, Moved the sum of
	// what they moved.
	Changes int     `json:"changes"`
	Moved   float64 `json:"moved"`
	// Shares are those of the last table.
	Shares []control.SplitRatio `json:"shares"`
	// Calls are what the recording has, by the site that was called: the traffic that
	// was measured, wherever the tables would have sent it.
	Calls []SplitCalls `json:"calls,omitempty"`
	// Series are the shares over time: each table that changed them.
	Series []SplitPoint `json:"series"`

	drawn  bool
	delays map[string][]delayPoint // by the site that was called, of links that are drawn
}

// SplitCalls are the calls of a link that went to one site. The means are null where
// no call says how long it took.
type SplitCalls struct {
	Site      string `json:"site"`
	Calls     int64  `json:"calls"`
	Errors    int64  `json:"errors"`
	ServiceMS Figure `json:"service_ms"` // mean of wait and service
	NetworkMS Figure `json:"network_ms"` // mean
}

// SplitPoint is a link's shares from the end of a window on.
type SplitPoint struct {
	Window time.Time            `json:"window_end"`
	Shares []control.SplitRatio `json:"shares"`
}

// SplitsOf says whose tables are reported.
type SplitsOf struct {
	Config string // digest
	Policy string
	Sites  []string // in config order
}

// linkKey names a link.
type linkKey struct{ from, fromSite, to string }

// Splits gathers the section from what is on a bus. Its methods do nothing on nil,
// so that a replay without split has none.
type Splits struct {
	report SplitReport
	sites  []string
	links  map[linkKey]*SplitLink
	sums   map[linkKey][]linkSums // by site
	number map[string]int         // of sites
	from   time.Time              // of the first window with delays
	upto   time.Time              // end of the last one
}

// ReadSplits reads the decisions and tables of split.
func ReadSplits(ctx context.Context, client *bus.Client, of SplitsOf) (*Splits, error) {
	s := &Splits{
		report: SplitReport{Config: of.Config, Policy: of.Policy, Links: []SplitLink{}, Reasons: map[string]int64{}},
		sites:  of.Sites, links: map[linkKey]*SplitLink{}, sums: map[linkKey][]linkSums{}, number: map[string]int{},
	}
	for i, name := range of.Sites {
		s.number[name] = i
	}
	if err := eachDecided(ctx, client, control.Split, s.decided, s.commanded); err != nil {
		return nil, err
	}
	s.choose()
	return s, nil
}

func (s *Splits) decided(d *control.Decision) {
	s.report.Windows++
	if d.Incomplete {
		s.report.Incomplete++
	}
	for _, r := range d.Reasons {
		s.report.Reasons[r.Code] += max(r.Count, 1)
	}
}

// commanded takes in a table.
func (s *Splits) commanded(c *control.Command) {
	s.report.Tables++
	changed := false
	for i := range c.Split.Table {
		row := &c.Split.Table[i]
		key := linkKey{c.Scope, row.FromSite, row.To}
		l := s.links[key]
		if l == nil {
			l = &SplitLink{From: c.Scope, FromSite: row.FromSite, To: row.To}
			s.links[key] = l
		}
		moved, off, onto := ShiftOf(l.Shares, row.Ratios)
		if l.Shares != nil && moved == 0 {
			continue
		}
		if l.Shares != nil {
			changed = true
			l.Changes++
			l.Moved = rounded(l.Moved + moved)
			if big := s.report.Largest; big == nil || moved > big.Moved {
				s.report.Largest = &SplitShift{
					Window: c.Window.End, From: c.Scope, FromSite: row.FromSite, To: row.To, Moved: moved, Off: off, Onto: onto, Code: c.Reason.Code,
				}
			}
		}
		l.Shares = row.Ratios
		l.Series = append(l.Series, SplitPoint{Window: c.Window.End, Shares: row.Ratios})
	}
	if changed {
		s.report.Changes++
	}
}

// ShiftOf is what part of a link's calls another table sends to other sites, and the
// sites that lose and win most.
func ShiftOf(was, is []control.SplitRatio) (moved float64, off, onto string) {
	change := map[string]float64{}
	var order []string
	add := func(list []control.SplitRatio, sign float64) {
		for _, r := range list {
			if _, ok := change[r.Site]; !ok {
				order = append(order, r.Site)
			}
			change[r.Site] += sign * r.Share
		}
	}
	add(was, -1)
	add(is, 1)
	var least, most float64
	for _, site := range order {
		c := rounded(change[site])
		if c > 0 {
			moved += c
		}
		if c < least {
			least, off = c, site
		}
		if c > most {
			most, onto = c, site
		}
	}
	return rounded(moved), off, onto
}

// Fill adds the section to a report.
func (s *Splits) Fill(r *Report) {
	if s == nil {
		return
	}
	for key, l := range s.links {
		l.Calls = s.calls(key)
		s.report.Links = append(s.report.Links, *l)
	}
	slices.SortFunc(s.report.Links, func(a, b SplitLink) int { return s.compare(&a, &b) })
	s.report.from, s.report.upto, s.report.sites = s.from, s.upto, s.sites
	r.Split = &s.report
}

// compare orders links by calling component, its site and callee.
func (s *Splits) compare(a, b *SplitLink) int {
	return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(s.numberOf(a.FromSite), s.numberOf(b.FromSite)), cmp.Compare(a.FromSite, b.FromSite), cmp.Compare(a.To, b.To))
}

// choose chooses the links that are drawn: those that moved most.
func (s *Splits) choose() {
	var moved []*SplitLink
	for _, l := range s.links {
		if l.Moved > 0 {
			moved = append(moved, l)
		}
	}
	slices.SortFunc(moved, func(a, b *SplitLink) int { return cmp.Or(cmp.Compare(b.Moved, a.Moved), s.compare(a, b)) })
	for _, l := range moved[:min(len(moved), maxDrawn)] {
		l.drawn = true
	}
}

// numberOf is the place of a site in the configuration, after all for one that it
// lacks.
func (s *Splits) numberOf(site string) int {
	if n, ok := s.number[site]; ok {
		return n
	}
	return len(s.sites)
}

// listed are the links for a page: all, or those that moved most.
func (s *SplitReport) listed() []SplitLink {
	if len(s.Links) <= maxListed {
		return s.Links
	}
	out := slices.Clone(s.Links)
	slices.SortStableFunc(out, func(a, b SplitLink) int { return cmp.Compare(b.Moved, a.Moved) })
	return out[:maxListed]
}

// summary is what a person is told at a terminal.
func (s *SplitReport) summary(b *strings.Builder) {
	moved := 0
	for i := range s.Links {
		if s.Links[i].Changes > 0 {
			moved++
		}
	}
	fmt.Fprintf(b, "split    %d windows decided by policy %s, %d tables, %d of them with other shares; %d of %d links moved", s.Windows, s.Policy, s.Tables, s.Changes, moved, len(s.Links))
	if s.Incomplete > 0 {
		fmt.Fprintf(b, "; %d windows lack events", s.Incomplete)
	}
	if x := s.Largest; x != nil {
		fmt.Fprintf(b, "\n  largest shift: %.1f %% of %s at %s → %s, %s to %s, %s, window to %s", 100*x.Moved, x.From, x.FromSite, x.To, x.Off, x.Onto, x.Code, Instant(x.Window))
	}
	fmt.Fprintf(b, "\n  reasons: %s\n", Reasons(s.Reasons))
}
