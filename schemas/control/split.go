package control

import (
	"fmt"
	"math"
)

// Limits of one split table, so that a command stays within a message.
const (
	MaxSplitRows   = 4096
	MaxSplitSites  = 256
	MaxProbes      = 4096
	shareTolerance = 1e-6 // of the sum of a row's shares
)

// Names of callers that are no component's: no component may be called so.
const (
	// Outside is the calling component of calls from outside, and the scope of their
	// table. In rows they have none.
	Outside = "entry"
	// Unnamed is a caller that does not say who it is.
	Unnamed = "unknown"
)

// SplitTable is the payload of split: how the calls of one component (the
// command's scope) are shared out. It holds all rows of the component, so that it
// replaces the table before it.
type SplitTable struct {
	Table []SplitRow `json:"table"`
	// Probes order idempotent requests, marked as probes, to sites of which too
	// little is known.
	Probes []Probe `json:"probes,omitempty"`
}

// SplitRow shares out the calls from FromSite to component To.
type SplitRow struct {
	FromSite string       `json:"from_site"`
	To       string       `json:"to"`
	Ratios   []SplitRatio `json:"ratios"`
	// WritesAt is the site of all calls that write, whatever the ratios; "": none.
	WritesAt string `json:"writes_at,omitempty"`
}

// SplitRatio is the share of a site, 0 to 1. The shares of a row add up to 1, and
// a site that is not named has none.
type SplitRatio struct {
	Site  string  `json:"site"`
	Share float64 `json:"share"`
}

// Probe asks for probes from FromSite to component To at Site, as many as Share
// (above 0, at most 1) times the requests of the row.
type Probe struct {
	FromSite string  `json:"from_site"`
	To       string  `json:"to"`
	Site     string  `json:"site"`
	Share    float64 `json:"share"`
}

func (t *SplitTable) canonical() *SplitTable {
	out := &SplitTable{Table: make([]SplitRow, len(t.Table)), Probes: t.Probes}
	for i, r := range t.Table {
		if r.Ratios == nil {
			r.Ratios = []SplitRatio{}
		}
		out.Table[i] = r
	}
	return out
}

// split checks a table. A sum of zero would be a row without a site, which no
// router can follow (P31, P33).
func (c *checker) split(t *SplitTable) {
	if t.Table == nil {
		c.fail("split.table", "", "rows")
	}
	if len(t.Table) > MaxSplitRows || len(t.Probes) > MaxProbes {
		c.fail("split", fmt.Sprintf("%d rows and %d probes", len(t.Table), len(t.Probes)), fmt.Sprintf("at most %d and %d", MaxSplitRows, MaxProbes))
		return
	}
	rows := make(map[[2]string]bool, len(t.Table))
	for i := range t.Table {
		r := &t.Table[i]
		c.splitRow(fmt.Sprintf("split.table[%d]", i), r)
		key := [2]string{r.FromSite, r.To}
		if rows[key] {
			c.fail(fmt.Sprintf("split.table[%d]", i), r.FromSite+" to "+r.To, "each from_site and to once")
		}
		rows[key] = true
	}
	for i, p := range t.Probes {
		field := fmt.Sprintf("split.probes[%d]", i)
		c.id(field+".from_site", p.FromSite)
		c.id(field+".to", p.To)
		c.id(field+".site", p.Site)
		if !(p.Share > 0 && p.Share <= 1) {
			c.fail(field+".share", fmt.Sprint(p.Share), "more than 0, at most 1")
		}
	}
}

func (c *checker) splitRow(field string, r *SplitRow) {
	c.id(field+".from_site", r.FromSite)
	c.id(field+".to", r.To)
	if len(r.WritesAt) > MaxID {
		c.fail(field+".writes_at", r.WritesAt, fmt.Sprintf("at most %d bytes", MaxID))
	}
	if len(r.Ratios) == 0 || len(r.Ratios) > MaxSplitSites {
		c.fail(field+".ratios", fmt.Sprint(len(r.Ratios), " sites"), fmt.Sprintf("1 to %d", MaxSplitSites))
		return
	}
	var sum float64
	sites := make(map[string]bool, len(r.Ratios))
	for i, x := range r.Ratios {
		at := fmt.Sprintf("%s.ratios[%d]", field, i)
		c.id(at+".site", x.Site)
		if !(x.Share >= 0 && x.Share <= 1) {
			c.fail(at+".share", fmt.Sprint(x.Share), "0 to 1")
		}
		if sites[x.Site] {
			c.fail(at+".site", x.Site, "each site once")
		}
		sites[x.Site] = true
		sum += x.Share
	}
	if !(math.Abs(sum-1) <= shareTolerance) {
		c.fail(field+".ratios", fmt.Sprint("a sum of ", sum), "a sum of 1")
	}
}
