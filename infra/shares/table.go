package shares

import (
	"fmt"
	"slices"

	"penstock/schemas/control"
)

// Row and Ratio are a link of a table and its shares, as they travel.
type (
	// Row is what calls from one site to one component are split into.
	Row = control.SplitRow
	// Ratio is a site's share of them.
	Ratio = control.SplitRatio
)

// Table is what one calling component's calls are split by. It is not changed
// once it was handed over.
type Table struct {
	// From is the calling component.
	From string
	// Epoch is the command's; 0 is the configured default's.
	Epoch uint64
	Rows  []Row
	// Probes are what requests are to be copied to.
	Probes []Probe
}

// Link is where calls come from and which component they are for.
type Link struct {
	From, FromSite, To string
}

// Replica is a component at a site.
type Replica struct {
	Component, Site string
}

// MaxSites is the most sites of a row.
const MaxSites = control.MaxSplitSites

// Check says whether the table can be brought into force at all. The error names
// the row and wraps ErrTable or ErrShares.
func (t Table) Check() error {
	if t.From == "" {
		return fmt.Errorf("a table of no component: %w", ErrTable)
	}
	seen := make(map[Link]bool, len(t.Rows))
	for _, row := range t.Rows {
		l := Link{t.From, row.FromSite, row.To}
		if row.To == "" || seen[l] || len(row.Ratios) > MaxSites {
			return fmt.Errorf("table of %.80q: from %.80q to %.80q: expected one row, a component, and at most %d sites: %w",
				t.From, row.FromSite, row.To, MaxSites, ErrTable)
		}
		seen[l] = true
		sites := make(map[string]bool, len(row.Ratios))
		for _, ratio := range row.Ratios {
			if ratio.Site == "" || sites[ratio.Site] {
				return fmt.Errorf("table of %.80q: from %.80q to %.80q: site %.80q: expected each site once, by name: %w",
					t.From, row.FromSite, row.To, ratio.Site, ErrTable)
			}
			sites[ratio.Site] = true
		}
		if _, _, err := total(sharesOf(row)); err != nil {
			return fmt.Errorf("table of %.80q: from %.80q to %.80q: %w", t.From, row.FromSite, row.To, err)
		}
	}
	return t.checkProbes()
}

// sites returns the sites that the table names.
func (t Table) sites() []string {
	var sites []string
	for _, row := range t.Rows {
		for _, ratio := range row.Ratios {
			sites = append(sites, ratio.Site)
		}
		if row.WritesAt != "" {
			sites = append(sites, row.WritesAt)
		}
	}
	for _, p := range t.Probes {
		sites = append(sites, p.Site)
	}
	slices.Sort(sites)
	return slices.Compact(sites)
}

// Raised returns the replicas that a table gives a greater share of some link
// than they have. Shares that differ by rounding only are the same.
func (t Table) Raised(now []Row) []Replica {
	const rounding = 0.01
	have := map[Link]map[string]float64{}
	for _, row := range now {
		have[Link{t.From, row.FromSite, row.To}] = normal(row)
	}
	var raised []Replica
	for _, row := range t.Rows {
		before := have[Link{t.From, row.FromSite, row.To}]
		shares := normal(row)
		for _, ratio := range row.Ratios {
			r := Replica{row.To, ratio.Site}
			if share := shares[ratio.Site]; share > 0 && (before[ratio.Site] == 0 || share > before[ratio.Site]+rounding) && !slices.Contains(raised, r) {
				raised = append(raised, r)
			}
		}
	}
	return raised
}

// normal returns the shares of a row by site, with a sum of 1.
func normal(row Row) map[string]float64 {
	shares := make(map[string]float64, len(row.Ratios))
	sum, _, err := total(sharesOf(row))
	if err != nil {
		return shares
	}
	for _, ratio := range row.Ratios {
		shares[ratio.Site] = ratio.Share / sum
	}
	return shares
}

func sharesOf(row Row) []float64 {
	shares := make([]float64, len(row.Ratios))
	for i, ratio := range row.Ratios {
		shares[i] = ratio.Share
	}
	return shares
}

// SameRows says whether two tables have the same rows in the same order.
func SameRows(a, b []Row) bool { return slices.EqualFunc(a, b, same) }

func same(a, b Row) bool {
	return a.FromSite == b.FromSite && a.To == b.To && a.WritesAt == b.WritesAt && slices.Equal(a.Ratios, b.Ratios)
}

// concerns says whether the table has anything for a called component.
func (t Table) concerns(to string) bool {
	return slices.ContainsFunc(t.Rows, func(row Row) bool { return row.To == to }) ||
		slices.ContainsFunc(t.Probes, func(p Probe) bool { return p.To == to })
}
