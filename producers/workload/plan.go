package workload

import (
	"fmt"
	"math"
	"strings"
	"time"

	"penstock/schemas/sphere"
)

// Plan is what a day comes to if each request is served by the nearest site:
// expected over who reads, exact in who writes and when.
type Plan struct {
	Writes   int64
	Requests int64
	// Factor is Writes against the writes of the paper's day.
	Factor float64
	Start  time.Time
	Sites  []SitePlan
	// Total is the bytes of all sites by hour, counted from Start.
	Total []float64
	// Trough and Peak are the hours of the day, UTC, with the least and the
	// most bytes.
	Trough, Peak int
}

// SitePlan is the part of a plan that falls to one site.
type SitePlan struct {
	Name  string
	Bytes []float64 // by hour, counted from the start
	// PeakHour is the busiest hour, of the day in UTC; PeakBytes its bytes.
	PeakHour  int
	PeakBytes float64
	Users     int // users to whom it is the nearest
}

// tally adds up the hours of a plan.
type tally struct {
	p       *Params
	day     *day
	delays  *delays
	nearest []int       // by user: site
	reads   [][]float64 // by user: part of the reads of its data by site
	users   []int       // by site
}

func newTally(p *Params, pop *population, d *day, l *delays) *tally {
	t := &tally{p: p, day: d, delays: l, nearest: make([]int, p.Users), users: make([]int, len(p.Scale.Sites))}
	at := make([]sphere.Vector, len(p.Scale.Sites))
	for i, s := range p.Scale.Sites {
		at[i] = sphere.FromDegrees(s.Lat, s.Lon)
	}
	for u := range t.nearest {
		here := sphere.FromDegrees(float64(pop.lat[u]), float64(pop.lon[u]))
		best := 0
		for i := range at {
			if sphere.Distance(here, at[i]) < sphere.Distance(here, at[best]) {
				best = i
			}
		}
		t.nearest[u] = best
		t.users[best]++
	}
	t.reads = make([][]float64, p.Users)
	for u := range t.reads {
		t.reads[u] = make([]float64, len(at))
		for i, r := range pop.readers[u] {
			t.reads[u][t.nearest[r]] += pop.levels[u][i]
		}
	}
	return t
}

// hours returns the bytes by site and hour of a day with n writes.
func (t *tally) hours(n int64) [][]float64 {
	out := make([][]float64, len(t.p.Scale.Sites))
	for s := range out {
		out[s] = make([]float64, t.p.Hours)
	}
	w := t.day.writes(t.p.Seed, n)
	caused := float64(t.p.Reads.PerWrite) * float64(t.p.Reads.Bytes)
	for {
		at, u, ok := w.next()
		if !ok {
			return out
		}
		h := t.day.hourOf(at)
		out[t.nearest[u]][h] += float64(t.p.Write)
		// A read may fall into a later hour than its write.
		done, over := 0.0, 1.0
		for k := h; over > 0 && k < t.p.Hours; k++ {
			within := t.delays.within(float64(t.day.start + int64(k+1)*hour - at))
			for s, part := range t.reads[u] {
				out[s][k] += float64(caused * part * (within - done))
			}
			done, over = within, 1-within
		}
	}
}

// scale returns the number of writes with which the busiest hour of the scaled
// site has the bytes that the parameters ask for.
func (t *tally) scale() (int64, error) {
	site := 0
	for i, s := range t.p.Scale.Sites {
		if s.Name == t.p.Scale.Site {
			site = i
		}
	}
	peak := func(n int64) float64 {
		most := 0.0
		for _, b := range t.hours(n)[site] {
			most = max(most, b)
		}
		return most
	}
	want := float64(t.p.Scale.Peak)
	// A site that is nobody's nearest never gets busy, however many writes.
	n := int64(1000)
	if t.users[site] == 0 && peak(n) == 0 {
		return 0, fmt.Errorf("%w: scale.site: %s is the nearest site of nobody", ErrParams, t.p.Scale.Site)
	}
	best, off := n, math.Inf(1)
	for range 24 {
		got := peak(n)
		if d := math.Abs(got-want) / want; d < off {
			best, off = n, d
		}
		next := int64(math.Round(float64(n) * want / max(got, 1)))
		if off < 1e-4 || next == n || next < 1 || next > 1e10 {
			break
		}
		n = next
	}
	if off > 0.01 {
		return 0, fmt.Errorf("%w: scale.peak_bytes: the nearest to %d is off by %.1f %%, expected a peak that a whole number of writes reaches",
			ErrParams, t.p.Scale.Peak, 100*off)
	}
	return best, nil
}

func (t *tally) plan(n int64) Plan {
	hours := t.hours(n)
	pl := Plan{
		Writes: n, Requests: n * int64(1+t.p.Reads.PerWrite),
		Factor: float64(n) / float64(t.p.Scale.PaperWrites), Start: t.p.Start,
		Total: make([]float64, t.p.Hours),
	}
	for s, site := range t.p.Scale.Sites {
		sp := SitePlan{Name: site.Name, Bytes: hours[s], Users: t.users[s]}
		for h, b := range hours[s] {
			pl.Total[h] += b
			if b > sp.PeakBytes {
				sp.PeakHour, sp.PeakBytes = t.utcHour(h), b
			}
		}
		pl.Sites = append(pl.Sites, sp)
	}
	least, most := math.Inf(1), 0.0
	for h, b := range pl.Total {
		if b < least {
			pl.Trough, least = t.utcHour(h), b
		}
		if b > most {
			pl.Peak, most = t.utcHour(h), b
		}
	}
	return pl
}

func (t *tally) utcHour(h int) int { return utc(t.day.start + int64(h)*hour).Hour() }

// String returns the plan for people: the factor, peaks, and a line an hour.
func (pl Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d writes (%.4f of the paper's), %d requests from %s; least busy %d h, busiest %d h UTC\n",
		pl.Writes, pl.Factor, pl.Requests, pl.Start.UTC().Format(time.RFC3339), pl.Trough, pl.Peak)
	for _, s := range pl.Sites {
		fmt.Fprintf(&b, "%s: nearest to %d users, busiest %d h with %.1f MB\n", s.Name, s.Users, s.PeakHour, s.PeakBytes/1e6)
	}
	for h, total := range pl.Total {
		fmt.Fprintf(&b, "%2d h %7.1f MB  ", pl.Start.UTC().Add(time.Duration(h)*time.Hour).Hour(), total/1e6)
		for _, s := range pl.Sites {
			fmt.Fprintf(&b, " %s %.1f", s.Name, s.Bytes[h]/1e6)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
