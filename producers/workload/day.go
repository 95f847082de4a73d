package workload

import (
	"math"
	"time"
)

const (
	micro  = 1
	second = 1_000_000 * micro
	minute = 60 * second
	hour   = 60 * minute
)

// day is the rate of writes over the day, by minute and by zone (the users of
// one offset from UTC), and who writes within a zone.
type day struct {
	start, last int64 // µs; writes fall into [start, last)
	offsets     []int
	members     [][]int32 // by zone: users
	writers     aliases   // by zone
	mass        []float64 // by zone: sum of activity
	rate        []float64 // by hour-of-day minute: local day, 1440
	// cumulative is the writes up to each minute, of all zones, as a part of
	// the day's.
	cumulative []float64
}

// newDay spreads the writes of a population over the day. The last write comes
// as long before the end as the longest wait for a read of it.
func newDay(p *Params, pop *population) *day {
	d := &day{start: p.Start.UnixMicro()}
	d.last = d.start + int64(p.Hours)*hour - p.Reads.After.Most.Microseconds()
	d.rate = make([]float64, 24*60)
	for m := range d.rate {
		a, b := p.Activity.LocalDay[m/60], p.Activity.LocalDay[(m/60+1)%24]
		d.rate[m] = a + float64((b-a)*(float64(m%60)/60))
	}
	zone := map[int]int{}
	for u, m := range pop.metro {
		off := pop.towns[m].Offset
		z, ok := zone[off]
		if !ok {
			z = len(d.offsets)
			zone[off] = z
			d.offsets, d.members, d.mass = append(d.offsets, off), append(d.members, nil), append(d.mass, 0)
		}
		d.members[z] = append(d.members[z], int32(u))
		d.mass[z] += pop.weight[u]
	}
	for _, users := range d.members {
		weights := make([]float64, len(users))
		for i, u := range users {
			weights[i] = pop.weight[u]
		}
		d.writers.add(weights)
	}
	d.accumulate()
	return d
}

func (d *day) accumulate() {
	minutes := int((d.last - d.start + minute - 1) / minute)
	d.cumulative = make([]float64, minutes+1)
	for m := range minutes {
		part := 1.0
		if end := d.start + int64(m+1)*minute; end > d.last {
			part = float64(minute-(end-d.last)) / float64(minute)
		}
		sum := 0.0
		for z := range d.offsets {
			sum += d.share(z, m)
		}
		d.cumulative[m+1] = d.cumulative[m] + float64(sum*part)
	}
	total := d.cumulative[minutes]
	for m := range d.cumulative {
		d.cumulative[m] /= total
	}
}

// share is how much of a minute's writes come from zone z, in any unit. A
// minute is counted from the start of the day.
func (d *day) share(z, m int) float64 {
	at := int((d.start/minute + int64(m) + int64(d.offsets[z])) % (24 * 60))
	return d.mass[z] * d.rate[(at+24*60)%(24*60)]
}

// writes hands out the n writes of a day in time order: the k-th falls at the
// time at which a part (k + U)/n of the day's writes is over. So the count of
// an hour is what the local days say, to within one write, and only who writes
// is chance.
type writes struct {
	day   *day
	rnd   source
	n, k  int64
	at    int // minute in which the last one fell
	zones []float64
}

func (d *day) writes(seed uint64, n int64) *writes {
	return &writes{day: d, rnd: newSource(seed, streamWrites), n: n, zones: make([]float64, len(d.offsets))}
}

// next returns the next write; ok is false after the last.
func (w *writes) next() (at int64, user int32, ok bool) {
	if w.k >= w.n {
		return 0, 0, false
	}
	d := w.day
	target := (float64(w.k) + w.rnd.float()) / float64(w.n)
	w.k++
	for w.at+2 < len(d.cumulative) && d.cumulative[w.at+1] <= target {
		w.at++
	}
	low, high := d.cumulative[w.at], d.cumulative[w.at+1]
	at = d.start + int64(w.at)*minute + int64(math.Min((target-low)/(high-low), 1)*float64(minute))
	sum := 0.0
	for z := range w.zones {
		sum += d.share(z, w.at)
		w.zones[z] = sum
	}
	x, z := w.rnd.float()*sum, 0
	for z < len(w.zones)-1 && x >= w.zones[z] {
		z++
	}
	user = d.members[z][d.writers.draw(z, w.rnd.pcg.Uint64())]
	return min(at, d.last-1), user, true
}

// delays is the law of the time between a write and a read of it: log-uniform
// between two bounds. Quantiles come from a table, so that a row costs no
// logarithm.
type delays struct {
	least, most float64 // µs
	quantile    []float64
}

const delaySteps = 4096

func newDelays(d Delay) *delays {
	l := &delays{least: float64(d.Least.Microseconds()), most: float64(d.Most.Microseconds())}
	l.quantile = make([]float64, delaySteps+1)
	for i := range l.quantile {
		l.quantile[i] = l.least * math.Pow(l.most/l.least, float64(i)/delaySteps)
	}
	return l
}

// draw returns a delay in µs for 64 random bits.
func (l *delays) draw(bits uint64) int64 {
	const below = 64 - 12 // delaySteps is 2^12
	i := bits >> below
	f := float64(bits<<12>>12) / (1 << below)
	a, b := l.quantile[i], l.quantile[i+1]
	return int64(a + float64((b-a)*f))
}

// within is the part of the delays that are shorter than us.
func (l *delays) within(us float64) float64 {
	switch {
	case us <= l.least:
		return 0
	case us >= l.most:
		return 1
	}
	return math.Log(us/l.least) / math.Log(l.most/l.least)
}

// hourOf returns the hour of the day, from its start, in which a time falls.
func (d *day) hourOf(at int64) int { return int((at - d.start) / hour) }

func utc(us int64) time.Time { return time.UnixMicro(us).UTC() }
