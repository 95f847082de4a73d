package window

import "time"

// Merging says how two values of one key become one.
type Merging uint8

const (
	// Sum adds; the column is an int64.
	Sum Merging = iota
	// Min keeps the least; NullInt is neutral.
	Min
	// Max keeps the greatest; NullInt is neutral.
	Max
	// Latest keeps the values of the row that is greatest in lexicographic
	// order of all of the rollup's Latest columns, as they stand in Values:
	// the first of them is a time. NullInt in the first is neutral.
	Latest
	// Hist adds histograms bin by bin.
	Hist
)

// Kind is the type of a value column outside memory.
type Kind uint8

// The kinds of value columns. Float32 values are held as the bits of the
// float32 in an int64 (Table.Float32); a histogram as bins and counts.
const (
	Int64 Kind = iota
	Float32
	Timestamp // µs since 1970 UTC
	Histogram
)

// Value is one value column of a rollup.
type Value struct {
	Name    string
	Merging Merging
	Kind    Kind
}

// Rollup says what is added up, by which key and for how long.
type Rollup struct {
	Name   string
	Group  string        // the group whose aggregator owns it
	Width  time.Duration // of its windows, aligned to 1970 UTC, unless the bus says otherwise (Widths)
	Keys   []string
	Values []Value
}

// The groups of rollups: one aggregator owns one group on one partition.
const (
	Owners = "owners"
	Fast   = "fast"
)

// Groups lists the groups.
var Groups = []string{Owners, Fast}

// The rollups of DESIGN §3.2. Late has the shape of Traffic and holds the rows
// that came late; no policy reads it.
var (
	Traffic = &Rollup{
		Name: "traffic", Group: Owners, Width: time.Hour, Keys: []string{"owner", "site"},
		Values: []Value{
			{"requests", Sum, Int64},
			{"reads", Sum, Int64},
			{"writes", Sum, Int64},
			{"bytes", Sum, Int64},
			{"bytes_written", Sum, Int64},
		},
	}
	Interactions = &Rollup{
		Name: "interactions", Group: Owners, Width: time.Hour, Keys: []string{"user", "owner"},
		Values: []Value{{"requests", Sum, Int64}},
	}
	// Places holds where a user was last seen, and the sum of the unit vectors
	// of where it was seen, in units of 1e-9, over located requests.
	Places = &Rollup{
		Name: "places", Group: Owners, Width: time.Hour, Keys: []string{"user"},
		Values: []Value{
			{"time", Latest, Timestamp},
			{"lat", Latest, Float32},
			{"lon", Latest, Float32},
			{"requests", Sum, Int64},
			{"x", Sum, Int64},
			{"y", Sum, Int64},
			{"z", Sum, Int64},
		},
	}
	Late = &Rollup{
		Name: "late", Group: Owners, Width: time.Hour, Keys: []string{"owner", "site"},
		Values: Traffic.Values,
	}
	// Delay holds wait + service (callee) and network (link) apart, so that a
	// slow link is not taken for a slow callee. Counts of samples are the sums
	// of the histograms' counts; a request without a sample counts in requests.
	Delay = &Rollup{
		Name: "delay", Group: Fast, Width: 10 * time.Second,
		Keys: []string{"from_component", "from_site", "to_component", "to_site"},
		Values: []Value{
			{"requests", Sum, Int64},
			{"errors", Sum, Int64},
			{"service_us", Sum, Int64},
			{"service", Hist, Histogram},
			{"network_us", Sum, Int64},
			{"network", Hist, Histogram},
		},
	}
)

// Rollups lists what aggregators add up now, in the order of their matrices.
var Rollups = []*Rollup{Traffic, Interactions, Places, Late, Delay, Service, Storage}

// Named returns the rollup of that name, nil if there is none.
func Named(name string) *Rollup {
	for _, r := range Rollups {
		if r.Name == name {
			return r
		}
	}
	return nil
}

// Of returns the rollups of a group.
func Of(group string) []*Rollup {
	var out []*Rollup
	for _, r := range Rollups {
		if r.Group == group {
			out = append(out, r)
		}
	}
	return out
}

// Start returns the start (µs) of the window of that width in which time (µs)
// lies. Windows are aligned to 1970 UTC and half open: [start, start+width).
func Start(time int64, width time.Duration) int64 {
	w := width.Microseconds()
	s := time - time%w
	if time%w < 0 {
		s -= w
	}
	return s
}

// Ceil returns time (µs) rounded up to a boundary of windows of that width.
func Ceil(time int64, width time.Duration) int64 {
	s := Start(time, width)
	if s < time {
		s += width.Microseconds()
	}
	return s
}
