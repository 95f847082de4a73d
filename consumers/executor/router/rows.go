package router

import (
	"maps"
	"slices"

	"penstock/infra/shares"
)

// Wanted returns the shares by site that a row asks of what carries its calls: for
// what carries the writes, and they alone, all at the row's site for them if it has
// one.
func Wanted(row shares.Row, writes bool) map[string]float64 {
	if writes && row.WritesAt != "" {
		return map[string]float64{row.WritesAt: 1}
	}
	wanted := make(map[string]float64, len(row.Ratios))
	for _, ratio := range row.Ratios {
		wanted[ratio.Site] = ratio.Share
	}
	return wanted
}

// Shown returns the row in which a target shows the shares of a link.
func Shown(l shares.Link, split map[string]float64) shares.Row {
	row := shares.Row{FromSite: l.FromSite, To: l.To}
	for _, site := range slices.Sorted(maps.Keys(split)) {
		row.Ratios = append(row.Ratios, shares.Ratio{Site: site, Share: split[site]})
	}
	return row
}

// Those returns what satisfies a condition, of the things that a target may set.
func Those[T any](all []T, is func(*T) bool) []*T {
	var some []*T
	for i := range all {
		if is(&all[i]) {
			some = append(some, &all[i])
		}
	}
	return some
}
