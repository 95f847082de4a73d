package workload

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Params is all that a day follows from.
type Params struct {
	// Version of this file's fields; 1.
	Version int `yaml:"version"`
	// Seed of everything that is drawn.
	Seed uint64 `yaml:"seed"`
	// Start is the first instant of the day, in UTC. Local times follow from it
	// by the offsets that were in force in September 2016.
	Start time.Time `yaml:"start"`
	// Hours is the length of the day; all rows lie inside it.
	Hours int `yaml:"hours"`
	// Users is the number of users; each owns data of its own name.
	Users int `yaml:"users"`
	// Places says where users are.
	Places Places `yaml:"places"`
	// Activity says who writes how much, and when.
	Activity Activity `yaml:"activity"`
	// Friends is the model of the friend graph.
	Friends Friends `yaml:"friends"`
	// Reads says what a write causes.
	Reads Reads `yaml:"reads"`
	// Write is the size of a write in bytes.
	Write int64 `yaml:"write_bytes"`
	// Scale fixes the number of writes.
	Scale Scale `yaml:"scale"`
}

// Places says how users spread around the centre of their metropolitan area.
type Places struct {
	// JitterKm is the radius in km of the disk in which a user's place is drawn
	// uniformly. Greater than 10 could put users of a border town abroad.
	JitterKm float64 `yaml:"jitter_km"`
	// Towns are the metropolitan areas in which users live; none: those of the
	// contiguous United States that are built in.
	Towns []Town `yaml:"towns,omitempty"`
}

// Town is a metropolitan area: where it is, in degrees, how many people live
// there, in any unit, and what its clocks show against UTC, in minutes.
type Town struct {
	Name       string  `yaml:"name"`
	Lat        float64 `yaml:"lat"`
	Lon        float64 `yaml:"lon"`
	Population float64 `yaml:"population"`
	Offset     int     `yaml:"offset"`
}

// towns returns the areas in which users live.
func (p *Params) towns() []Town {
	if len(p.Places.Towns) > 0 {
		return p.Places.Towns
	}
	out := make([]Town, len(metros))
	for i, m := range metros {
		out[i] = m.town()
	}
	return out
}

// Activity is a Zipf–Mandelbrot law over users, 1/(rank+shift)^exponent, and the
// shape of a local day.
type Activity struct {
	Exponent float64 `yaml:"exponent"`
	Shift    float64 `yaml:"shift"`
	// LocalDay is the writing rate at the full hours 0 to 23 of the writer's
	// local time, in any unit; between them it is linear.
	LocalDay []float64 `yaml:"local_day"`
}

// Friends is the model of the friend graph. Edges are symmetric.
type Friends struct {
	// Degree is how many friends a user has: a power law d^−exponent from Least
	// to Most. Half of them it picks itself, the others pick it.
	Degree Degree `yaml:"degree"`
	// NearKm is how far the surroundings of a place reach, between the centres
	// of metropolitan areas.
	NearKm float64 `yaml:"near_km"`
	// Circles are the kinds of users by where their friends are: near, mixed,
	// far. Shares sum to 1.
	Circles []Circle `yaml:"circles"`
	// TieExponent is the tail of the social levels: a level is (1−U)^(−1/x),
	// at most TieMost.
	TieExponent float64 `yaml:"tie_exponent"`
	TieMost     float64 `yaml:"tie_most"`
}

// Degree is a bounded power law.
type Degree struct {
	Least    int     `yaml:"least"`
	Most     int     `yaml:"most"`
	Exponent float64 `yaml:"exponent"`
}

// Circle is a kind of user. A friend is picked around the user's own place with
// the probability Own, around a second place (an earlier home, drawn by
// population, outside the surroundings) with the probability Home, else
// anywhere.
type Circle struct {
	Name  string  `yaml:"name"`
	Share float64 `yaml:"share"`
	Own   float64 `yaml:"own"`
	Home  float64 `yaml:"home"`
}

// Reads says what a write causes.
type Reads struct {
	// PerWrite is R, the reads that each write causes.
	PerWrite int `yaml:"per_write"`
	// Bytes is the size of a read.
	Bytes int64 `yaml:"bytes"`
	// OwnShare is the part of the reads that the writer does itself; the rest
	// falls to its friends in proportion to the social level.
	OwnShare float64 `yaml:"own_share"`
	// After is how long after the write a read comes, log-uniform between the
	// bounds.
	After Delay `yaml:"after"`
}

// Delay is a range of durations.
type Delay struct {
	Least time.Duration `yaml:"least"`
	Most  time.Duration `yaml:"most"`
}

// Scale fixes the number of writes: in its busiest hour Site serves Peak bytes
// if each request is served by the nearest of Sites.
type Scale struct {
	Site  string `yaml:"site"`
	Peak  int64  `yaml:"peak_bytes"`
	Sites []Site `yaml:"sites"`
	// PaperWrites is what the factor in the plan is taken against.
	PaperWrites int64 `yaml:"paper_writes"`
}

// Site is a cloud: its name and where it is, in degrees.
type Site struct {
	Name string  `yaml:"name"`
	Lat  float64 `yaml:"lat"`
	Lon  float64 `yaml:"lon"`
}

// fault is one fault of the parameters: the field's path, what stands there,
// and what was expected.
type fault struct {
	path     string
	got      any
	expected string
}

func (f fault) Error() string {
	return fmt.Sprintf("%s: got %v, expected %s", f.path, f.got, f.expected)
}

// Validate returns all faults of the parameters, joined, or nil.
func (p *Params) Validate() error {
	var errs []error
	for _, f := range p.faults() {
		errs = append(errs, f)
	}
	if errs == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrParams, errors.Join(errs...))
}

func (p *Params) faults() []fault {
	var fs []fault
	need := func(ok bool, path string, got any, expected string) {
		if !ok {
			fs = append(fs, fault{path, got, expected})
		}
	}
	need(p.Version == 1, "version", p.Version, "1")
	need(p.Start.Year() > 1970 && p.Start.Year() < 2100, "start", p.Start, "a time such as 2016-09-14T08:00:00Z")
	need(p.Hours >= 1 && p.Hours <= 24*366, "hours", p.Hours, "1 to 8784")
	need(p.Users >= 2 && p.Users <= 10_000_000, "users", p.Users, "2 to 10000000")
	need(p.Places.JitterKm >= 0 && p.Places.JitterKm <= 10, "places.jitter_km", p.Places.JitterKm, "0 to 10")
	p.townFaults(need)
	need(p.Write > 0, "write_bytes", p.Write, "more than 0")
	a := &p.Activity
	need(a.Exponent >= 0 && a.Exponent <= 5, "activity.exponent", a.Exponent, "0 to 5")
	need(a.Shift >= 0, "activity.shift", a.Shift, "0 or more")
	need(len(a.LocalDay) == 24, "activity.local_day", len(a.LocalDay), "24 rates")
	sum := 0.0
	for i, v := range a.LocalDay {
		need(v >= 0 && !math.IsInf(v, 0), fmt.Sprintf("activity.local_day[%d]", i), v, "0 or more")
		sum += v
	}
	need(sum > 0, "activity.local_day", sum, "rates that are not all 0")
	p.friendFaults(need)
	r := &p.Reads
	need(r.PerWrite >= 0 && r.PerWrite <= 100_000, "reads.per_write", r.PerWrite, "0 to 100000")
	need(r.Bytes > 0, "reads.bytes", r.Bytes, "more than 0")
	need(r.OwnShare >= 0 && r.OwnShare <= 1, "reads.own_share", r.OwnShare, "0 to 1")
	need(r.After.Least >= time.Microsecond, "reads.after.least", r.After.Least, "at least 1us")
	need(r.After.Most >= r.After.Least && r.After.Most <= time.Duration(p.Hours)*30*time.Minute,
		"reads.after.most", r.After.Most, "at least reads.after.least and at most half of the day")
	p.scaleFaults(need)
	return fs
}

func (p *Params) townFaults(need func(ok bool, path string, got any, expected string)) {
	for i, t := range p.Places.Towns {
		path := fmt.Sprintf("places.towns[%d]", i)
		// Nearer to a pole the disk of the jitter would not be one.
		need(t.Lat >= -85 && t.Lat <= 85, path+".lat", t.Lat, "-85 to 85")
		need(t.Lon >= -179 && t.Lon <= 179, path+".lon", t.Lon, "-179 to 179")
		need(t.Population > 0 && !math.IsInf(t.Population, 0), path+".population", t.Population, "more than 0")
		need(t.Offset > -24*60 && t.Offset < 24*60, path+".offset", t.Offset, "minutes, less than a day")
	}
}

func (p *Params) friendFaults(need func(ok bool, path string, got any, expected string)) {
	f := &p.Friends
	need(f.Degree.Least >= 1, "friends.degree.least", f.Degree.Least, "at least 1")
	need(f.Degree.Most >= f.Degree.Least && f.Degree.Most < p.Users, "friends.degree.most", f.Degree.Most,
		"at least friends.degree.least and fewer than users")
	need(f.Degree.Exponent >= 0 && f.Degree.Exponent <= 10, "friends.degree.exponent", f.Degree.Exponent, "0 to 10")
	need(f.NearKm >= 0, "friends.near_km", f.NearKm, "0 or more")
	need(f.TieExponent > 0, "friends.tie_exponent", f.TieExponent, "more than 0")
	need(f.TieMost >= 1, "friends.tie_most", f.TieMost, "at least 1")
	sum := 0.0
	for i, c := range f.Circles {
		path := fmt.Sprintf("friends.circles[%d]", i)
		need(c.Share >= 0, path+".share", c.Share, "0 or more")
		need(c.Own >= 0 && c.Home >= 0 && c.Own+c.Home <= 1+1e-9, path, c.Own+c.Home, "own + home of at most 1")
		sum += c.Share
	}
	need(math.Abs(sum-1) < 1e-9, "friends.circles", sum, "shares that sum to 1")
}

func (p *Params) scaleFaults(need func(ok bool, path string, got any, expected string)) {
	s := &p.Scale
	need(s.Peak > 0, "scale.peak_bytes", s.Peak, "more than 0")
	need(s.PaperWrites > 0, "scale.paper_writes", s.PaperWrites, "more than 0")
	found := false
	for i, site := range s.Sites {
		path := fmt.Sprintf("scale.sites[%d]", i)
		need(site.Lat >= -90 && site.Lat <= 90, path+".lat", site.Lat, "-90 to 90")
		need(site.Lon >= -180 && site.Lon <= 180, path+".lon", site.Lon, "-180 to 180")
		found = found || site.Name == s.Site
	}
	need(found, "scale.site", s.Site, "the name of one of scale.sites")
}
