package split

import (
	"math"
	"slices"
)

// blamed is a caller whose own slowness showed on its links.
type blamed struct {
	component, site int
	each            int64 // µs a call
	total           int64 // µs of all its calls in the window
	links           int
}

// leastRise is the rise of a link, in µs, below which nobody is blamed.
const leastRise = 500.0

// riseShare is the rise of a link relative to what it was.
const riseShare = 0.1

// blame finds callers whose network rose on all their links at once (DESIGN
// §4.2). Network is what a call took the caller beyond the callee's wait and
// service: a caller that gets no processor, collects garbage or queues for
// connections shows there, on every link, while its callees have not changed. To
// move calls to other callees would not help it.
//
// Real links are noisy, so that one word does not count for much: links with
// MinSamples calls in the window vote, or all if none has so many. The network has
// risen at once if it has for each of them, but for one in four. The common part is
// their median; what a link rose beyond twice that is its own. It is the caller's if
//
//   - its links go to two sites or more: no one link or callee explains them all; or
//   - they go to one site, and another component at the caller's site calls into
//     that site over a link that has not risen by half as much; or
//   - they are two or more, stay within the caller's site, and nobody else there
//     has a link to compare.
//
// Else it is the link's or the site's, and stays where it was measured. What is
// the caller's is taken off its links, so that they keep the delays they had, and
// charged to the caller's replica, so that calls can be moved away from it.
func (t *Policy) blame(l *learned) {
	m := len(t.config.Sites)
	rise := make([]float64, len(l.rows)) // NaN: not to be told
	byCaller := map[int][]int{}
	var callers []int
	for i := range l.rows {
		rise[i] = t.rise(&l.rows[i])
		if math.IsNaN(rise[i]) {
			continue
		}
		c := l.rows[i].fromNumber*m + l.rows[i].from
		if byCaller[c] == nil {
			callers = append(callers, c)
		}
		byCaller[c] = append(byCaller[c], i)
	}
	for _, c := range callers {
		links := byCaller[c]
		common := t.common(l, links, rise)
		if common > 0 && t.isCallers(l, links, rise, common) {
			l.charge(c/m, c%m, common, rise, len(links))
		}
	}
}

// common is by how much the links of a caller have risen at once, 0 if they have not.
func (t *Policy) common(l *learned, links []int, rise []float64) float64 {
	var risen, all []float64
	voters := 0
	for _, i := range links {
		all = append(all, rise[i])
		if l.rows[i].networkN < t.config.MinSamples {
			continue
		}
		if voters++; rise[i] > 0 {
			risen = append(risen, rise[i])
		}
	}
	if voters == 0 {
		voters = len(all)
		risen = slices.DeleteFunc(all, func(d float64) bool { return d == 0 })
	}
	if len(risen) == 0 || 4*(voters-len(risen)) > voters {
		return 0
	}
	slices.Sort(risen)
	return risen[(len(risen)-1)/2]
}

// charge takes what is the caller's off its links.
func (l *learned) charge(component, site int, common float64, rise []float64, links int) {
	b := blamed{component: component, site: site, each: int64(common), links: links}
	for i := range l.rows {
		r := &l.rows[i]
		if r.fromNumber != component || r.from != site {
			continue
		}
		each := common
		if !math.IsNaN(rise[i]) {
			each = min(rise[i], 2*common)
		}
		off := min(r.network, int64(each)*r.networkN)
		r.network -= off
		b.total += off
	}
	l.blamed = append(l.blamed, b)
}

// rise is by how much a link is slower than in the windows before, 0 if hardly,
// NaN if there are too few samples now or before.
func (t *Policy) rise(r *seen) float64 {
	before, n := t.mean(t.state.edges[r.edge].links[r.from][r.to])
	if r.networkN < t.leastSamples() || n < t.leastSamples() {
		return math.NaN()
	}
	d := float64(r.network)/float64(r.networkN) - before
	if d < leastRise || d < riseShare*before {
		return 0
	}
	return d
}

// isCallers tells a slow caller from a slow link by the rules above.
func (t *Policy) isCallers(l *learned, links []int, rise []float64, common float64) bool {
	first := &l.rows[links[0]]
	for _, i := range links {
		if l.rows[i].to != first.to {
			return true
		}
	}
	others := 0
	for i := range l.rows {
		r := &l.rows[i]
		if r.fromNumber == first.fromNumber || r.from != first.from || r.to != first.to || math.IsNaN(rise[i]) {
			continue
		}
		if rise[i] < common/2 {
			return true
		}
		others++
	}
	return others == 0 && first.from == first.to && len(links) > 1
}
