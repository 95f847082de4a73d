package report

import (
	"time"

	"penstock/consumers/decider/baselines"
)

// Played is what several strategies showed over the same windows: what a
// replay's collector saw, or what playing closed windows through policies gave.
// [Played.Fill] turns it into a report.
type Played struct {
	// Sites in config order.
	Sites []Site
	// PerThousand is the price of a thousand requests, in US dollars.
	PerThousand float64
	// Windows in ascending order; strategies have figures for each.
	Windows []Span
	// Strategies to compare. The first is the one that the report is about (this
	// replay; Penstock's own policy); the others stand beside it.
	Strategies []Strategy
	// Unlocated is how many requests have no place and so no latency delay under
	// any strategy; UnlocatedReads of them are reads.
	Unlocated, UnlocatedReads int64
}

// Span is a placement window, half open, in UTC.
type Span struct{ Start, End time.Time }

// Strategy is what one strategy showed.
type Strategy struct {
	Name string // as in the report: replay, as-it-was, nearest-replica, …
	Text string // what it does, in a few words
	// Unknown says why nothing is known of it; its figures then are unknown, not
	// 0. Empty for a strategy that was played.
	Unknown string
	// Unmoved is set for a strategy of which only the serving is known: its
	// moves, their bytes and their money are unknown.
	Unmoved bool
	Copies  int // of each owner's data
	// Windows has the figures of each of Played.Windows.
	Windows []StrategyWindow
	// All and Reads are the latency delays of all located requests and of the
	// reads among them; nil is unknown.
	All, Reads *Delays
}

// StrategyWindow is one placement window under one strategy.
type StrategyWindow struct {
	// Traffic is by site, in config order: bytes both ways of the requests with an
	// owner that it serves, and Written those of them that writes bring. Nil is
	// none.
	Traffic, Written []int64
	// Requests that it serves: those with an owner whose site is known.
	Requests int64
	// Moves are the owners whose data moves at the window's end, Bytes what goes
	// from site to site for it (or, under several copies, for the copies of what
	// was written), EgressUSD what that costs in US dollars.
	Moves     int
	Bytes     int64
	EgressUSD float64
	// Located requests have a latency delay; DelayUS is the sum of theirs, in µs.
	Located, DelayUS int64
}

// EgressUSD returns what it costs in US dollars that bytes leave a site.
func (s *Site) EgressUSD(bytes int64) float64 { return s.Egress * float64(bytes) / 1e9 }

// Moved adds what a baseline moves to its window.
func (w *StrategyWindow) Moved(sites []Site, m baselines.Moved) {
	if m.Owner >= 0 {
		w.Moves++
	}
	w.Bytes += m.Bytes
	w.EgressUSD += sites[m.From].EgressUSD(m.Bytes)
}
