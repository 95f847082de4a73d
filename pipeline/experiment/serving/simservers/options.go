package simservers

import (
	"penstock/consumers/executor/dispatcher/pool"
	"penstock/pipeline/experiment/serving/loads"
)

// Switch is what the simulation needs of a second-level switch; *pool.Pool is one.
type Switch interface {
	Arrive(now int64, r pool.Request, starts []pool.Start) (pool.Placed, []pool.Start, error)
	Done(now int64, id uint64, o pool.Outcome, starts []pool.Start) []pool.Start
	SetServers(now int64, servers []pool.Server, moved []pool.Placed, starts []pool.Start) ([]pool.Placed, []pool.Start, error)
	Potential(now int64) float64
	Len() (queued, inService int)
}

// Class is what a page was promised.
type Class struct {
	Limit   float64 // s
	Penalty float64 // for each second beyond it
}

// Options of a run.
type Options struct {
	// Requests in order of their coming.
	Requests []loads.Request
	// Length of the load, ns: servers cost at least until then.
	Length int64
	// Classes of pages, by their index.
	Classes []Class
	// Servers in order of zones; Zones have a switch each.
	Servers []Server
	Zones   []Switch
	// Databases of a zone, M of a server, Hop in ns.
	Databases, M int
	Hop          int64
	// ByPenalty chooses the zone with the least potential penalty per request, where the
	// penalty is as old as the last period's end; otherwise that with the least requests
	// for the places that are on.
	ByPenalty bool
	// Cost of a server for each second.
	Cost float64
	// Switcher turns servers on and off; nil: all are on.
	Switcher Switcher
	// Period between looks and its steps, and StartDelay of a server, ns.
	Period, StartDelay int64
	// Watch is told what is seen at the end of each period; nil: nobody is.
	Watch func(*Look)
}

// Look is what is seen of a run at the end of a period; it is valid until the next.
type Look struct {
	At      int64 // ns
	Zones   []Load
	Servers []State
}

// Load is what a zone did in a period.
type Load struct {
	// Requests that came back, their seconds in service summed, and their penalties.
	Requests         int
	Service, Penalty float64
	// Queued requests and their potential penalty, at the end of the period; InService is
	// a mean over it.
	Queued               int
	Potential, InService float64
}

// Switcher decides once a period which servers, by index, to turn on and off. A server
// that is told to turn off gets no more requests, and is off when none is in it.
type Switcher interface {
	// First are the servers that are on at the beginning.
	First() []int
	Step(l *Look) (on, off []int)
}
