package line

import "math"

// Item is a request that waits. What no quantity can be (a penalty, a time or a
// size that is negative or not a number) counts as 0, and what is absurdly
// large as the largest that is told here; see [Line.Insert].
type Item struct {
	// ID is unique among the requests of a pool.
	ID uint64
	// Arrived is when it came to the second-level switch (the paper's τ), in ns.
	Arrived int64
	// Deadline is the latest instant in ns at which it may start on this server
	// without a penalty: d = τ + t_max − t̂. Less than 2^62 either way.
	Deadline int64
	// Penalty is p, in units of cost per second of lateness; at most 1e15.
	Penalty float64
	// Service is the estimate t̂ of its time on this server, in s, counted in
	// whole ns; at most 1e5.
	Service float64
	// Static and Dynamic are the request's bytes, one of them 0; at most 1e15.
	Static, Dynamic float64
}

// Wait is what the server's queue perceptron makes of the bytes ahead (PAPERS
// §2.2): a request with S static and D dynamic bytes ahead of it starts at
//
//	σ = now + max(0, Bias + PerStatic·S + PerDynamic·D)
//
// in s and s per byte. Any of them may be negative; one that is no number
// counts as 0, and none is more than 1e15 either way.
type Wait struct{ Bias, PerStatic, PerDynamic float64 }

// Place is where a request goes in a line.
type Place struct {
	// Index counts from the head, which is 0.
	Index int
	// Static and Dynamic are the bytes ahead of it: what the queue perceptron
	// learns its waiting time by.
	Static, Dynamic float64
}

// Discipline says where a request is put in and which one is taken out. Equal
// deadlines are always served in the order in which they were put in.
type Discipline uint8

const (
	// FIFO puts in at the tail and takes the head.
	FIFO Discipline = iota
	// Deadline is A1's (PAPERS §2.4): in order of deadlines, the head is taken.
	Deadline
	// Cheapest is A2's: put in behind the last one that would lose more by
	// letting it pass than it loses by waiting, and never before one whose place
	// by deadline is ahead; the head is taken. See [Line.Insert].
	Cheapest
	// Lateness is A3's: taken is whoever leaves the least penalties of being late
	// now to the others, thus has the greatest p·max(0, now − d). When nobody is
	// late it is the earliest deadline. In order of deadlines.
	Lateness
	// Cost is the dequeue of iCBS for a penalty that grows linearly (PAPERS
	// §2.7): the greatest p/(a·t̂)·exp(−a·max(0, d − now)) is taken, where a is
	// [Line.SetDecay]'s. In order of deadlines, the earlier of equal ones.
	Cost
)

// String returns the discipline's name.
func (d Discipline) String() string {
	switch d {
	case FIFO:
		return "fifo"
	case Deadline:
		return "deadline"
	case Cheapest:
		return "cheapest"
	case Lateness:
		return "lateness"
	case Cost:
		return "cost"
	}
	return "unknown"
}

// sorted reports whether a line of the discipline is in order of deadlines.
func (d Discipline) sorted() bool { return d != FIFO && d != Cheapest }

const (
	mostInstant = int64(1)<<62 - 1 // so that the difference of two fits
	mostAmount  = 1e15
	mostService = 1e5  // s, so that the sum of 90,000 such fits in ns
	perSecond   = 1e9  // ns
	leastNs     = 1e-9 // s, what no service takes less than, for dividing by it
)

// clean returns the item with amounts that can be.
func (it Item) clean() Item {
	it.Deadline = instant(it.Deadline)
	it.Penalty = amount(it.Penalty, mostAmount)
	it.Service = amount(it.Service, mostService)
	it.Static = amount(it.Static, mostAmount)
	it.Dynamic = amount(it.Dynamic, mostAmount)
	return it
}

// clean returns the wait without what is no number.
func (w Wait) clean() Wait {
	return Wait{number(w.Bias), number(w.PerStatic), number(w.PerDynamic)}
}

// of returns the line's estimate before the kink at 0, in s.
func (w Wait) of(static, dynamic float64) float64 {
	return w.Bias + w.PerStatic*static + w.PerDynamic*dynamic
}

func instant(ns int64) int64 { return max(-mostInstant, min(mostInstant, ns)) }

func amount(x, most float64) float64 {
	if !(x > 0) { // also what is not a number
		return 0
	}
	return min(x, most)
}

func number(x float64) float64 {
	if math.IsNaN(x) {
		return 0
	}
	return max(-mostAmount, min(mostAmount, x))
}

// seconds returns ns in s.
func seconds(ns int64) float64 { return float64(ns) / perSecond }

// serviceNs returns the item's service in whole ns, at least 0.
func (it *Item) serviceNs() int64 { return int64(math.Round(it.Service * perSecond)) }

// penalty returns p·max(0, σ − d) for a start wait s after now. All instants
// were limited by instant.
func (it *Item) penalty(now int64, wait float64) float64 {
	return it.Penalty * max(0, seconds(now-it.Deadline)+max(0, wait))
}

// worth returns the logarithm of p/t̂, of which the rule of Cost is made.
func (it *Item) worth() float64 { return math.Log(it.Penalty / max(it.Service, leastNs)) }

// score returns the logarithm of the rule of Cost, but for the factor 1/a that
// all have; so that what is due in an hour is not 0 like all others.
func score(worth float64, now, deadline int64, decay float64) float64 {
	return worth - decay*max(0, seconds(deadline-now))
}
