package join

import (
	"fmt"
	"strings"
)

// Fate is what became of a span: each has one.
type Fate uint8

// The fates.
const (
	// Called: a call was made of it. There are as many as calls.
	Called Fate = iota
	// Half: it is the client's half of a call that was made of the server's.
	Half
	// Inside a process: no call.
	Inside
	// Root of a trace that does not say that it serves anybody.
	Root
	// Message: a producer's or a consumer's side of one.
	Message
	// Duplicate: the same half of the same span again, or a fragment of it.
	Duplicate
	// Orphan: its parent isn't here, and nothing says who called.
	Orphan
	// Unnamed: one side of the call has no component.
	Unnamed
	// Timeless: a call of which neither half says when.
	Timeless
	// Late: the other half of a call that was made before.
	Late
	// Malformed: not usable as a span.
	Malformed
	numFates
)

var fateNames = [numFates]string{
	"call", "half", "inside", "root", "message", "duplicate", "orphan", "unnamed", "timeless", "late", "malformed",
}

// String returns the fate's name, as in reports and metrics.
func (f Fate) String() string { return fateNames[f] }

// Fates are all fates in order.
func Fates() []Fate {
	out := make([]Fate, numFates)
	for i := range out {
		out[i] = Fate(i)
	}
	return out
}

// Account is how many spans had which fate.
type Account [numFates]int64

// Sum is the number of spans that have a fate.
func (a *Account) Sum() (n int64) {
	for _, c := range a {
		n += c
	}
	return n
}

// String writes the account in one line, without what is 0.
func (a *Account) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d spans", a.Sum())
	sep := " = "
	for f, n := range a {
		if n > 0 {
			fmt.Fprintf(&b, "%s%d %s", sep, n, Fate(f))
			sep = " + "
		}
	}
	return b.String()
}

// Stats are totals of a Joiner. All but Read count calls or traces.
type Stats struct {
	// Read are the spans that came. Those without a fate are in traces that are
	// still open.
	Read int64
	Account
	// NoDuration and Backwards count spans without a duration, and spans that end
	// before they begin, whatever their fate.
	NoDuration, Backwards int64
	// Entries are calls from outside, OneSided those with one half alone.
	Entries, OneSided int64
	// Skewed calls are of clocks that differ; Negative ones took longer at the
	// server than at the client.
	Skewed, Negative int64
	// Asynchronous is how many calls a server made but did not wait for.
	Asynchronous int64
	// Gaps are spans in another process than their parent that aren't its callee:
	// a server's half is missing between.
	Gaps int64
	// Traces that were resolved; Forced of them to make room.
	Traces, Forced int64
}
