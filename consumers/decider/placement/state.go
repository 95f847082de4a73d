package placement

import (
	"math"

	"penstock/schemas/control"
	"penstock/schemas/event"
	"penstock/schemas/sphere"
)

// maxSites bounds the sites of a configuration: a site is a uint16 column.
const maxSites = 4096

// maxWeight bounds alpha + beta, so that weights in units of 1e-9 fit an int64.
const maxWeight = 1e6

// noTime is the absent time.
const noTime = event.NullInt

// What is known of an id, as bits of state.flags.
const (
	isOwner  = 1 << iota // it has data: seen as an owner, or imported
	pinned               // never moved by a decision
	matched              // a decision has placed it: it isn't new any more
	stale                // best and ties are to be computed again
	ties                 // its site weighs no more than its L-match
	seen                 // it has rows of traffic in this window
	imported             // its site was imported
	moved                // its site was reached by a move
)

// How the last move of an owner stands.
const (
	movePending = iota + 1
	moveDone
	moveFailed
	moveRefused
	moveExpired
	moveAdvised
)

var statusNames = [...]string{
	movePending: "under way", moveDone: string(control.Done), moveFailed: string(control.Failed),
	moveRefused: string(control.Refused), moveExpired: string(control.Expired), moveAdvised: string(control.Advised),
}

// moveRecord is the last decided move of an owner; version 0 if there is none
// yet and only the imported version is known.
type moveRecord struct {
	version  uint64 // the last one issued or imported
	window   int64  // end (µs) of the window that decided it
	changed  int64  // event time (µs) of the owner's last real change, or noTime
	bytes    int64
	from, to uint16
	status   uint8 // 0: none decided
	code     Code  // why it was decided
	fails    uint8 // moves in a row that failed or expired
	failed   int64 // event time (µs) of the last of them; noTime without
}

// doneMove is a line of the history that a rollback inverts.
type doneMove struct {
	window   int64 // end (µs) of the window that decided it
	owner    int32
	from, to uint16
}

// state is all that the policy remembers, in columns by id. Sites are numbered
// from 1 in siteNames, 0 is none: first those of the configuration in its order,
// then sites of earlier configurations at which data still is.
type state struct {
	names     *names
	siteNames []string

	flags  []uint8
	site   []uint16 // where its data is
	stored []int64  // bytes written since the beginning, at least what an import said
	move   []int32  // index into moves, −1: none
	moves  []moveRecord
	social edges // owner → user: social level

	// Where a user is. Both kinds are kept, so that a change of the
	// configuration finds what it needs.
	at        []int64   // time (µs) of latest, noTime: never located
	lat, lon  []float32 // latest
	x, y, z   []int64   // sum of unit vectors in units of 1e-9
	history   []doneMove
	forgotten int64 // history below and at this window end (µs) is gone, or noTime

	now      int64  // end (µs) of the last window, noTime before the first
	lastCase caseOf // of the last window that was decided
	promises promises
	digest   digest

	// Of the last window, for explanations and for the next plan. They follow
	// from the rest and are not part of the digest.
	traffic            []int64 // t(u)
	why                []Code  // why the owner was not moved by the last plan
	best               []uint16
	planned            int64 // end (µs) of the last planned window, or noTime
	observed, expected []int64
	prices             []float64 // weight of one byte at a site, by site number; of optimal
}

func newState(sites []Site) *state {
	s := &state{names: newNames(), now: noTime, planned: noTime, forgotten: noTime}
	for _, site := range sites {
		s.siteNames = append(s.siteNames, site.Name)
	}
	s.observed, s.expected = make([]int64, len(sites)+1), make([]int64, len(sites)+1)
	s.prices, s.promises.loads = make([]float64, len(sites)+1), make([]int64, len(sites)+1)
	s.digest.sites(s.siteNames)
	return s
}

// grow extends the columns to the number of names.
func (s *state) grow() { s.growTo(s.names.len()) }

func (s *state) growTo(n int) {
	s.flags = extend(s.flags, n, stale)
	s.site, s.best = extend(s.site, n, 0), extend(s.best, n, 0)
	s.stored, s.traffic = extend(s.stored, n, 0), extend(s.traffic, n, 0)
	s.move = extend(s.move, n, -1)
	s.why = extend(s.why, n, 0)
	s.at = extend(s.at, n, noTime)
	s.lat, s.lon = extend(s.lat, n, 0), extend(s.lon, n, 0)
	s.x, s.y, s.z = extend(s.x, n, 0), extend(s.y, n, 0), extend(s.z, n, 0)
	s.social.grow(n)
}

// siteNumber returns the number of a site, adding it if it is a new one.
func (s *state) siteNumber(name string) uint16 {
	for i, n := range s.siteNames {
		if n == name {
			return uint16(i + 1)
		}
	}
	s.siteNames = append(s.siteNames, name)
	s.digest.sites(s.siteNames)
	return uint16(len(s.siteNames))
}

func (s *state) siteName(n uint16) string {
	if n == 0 {
		return ""
	}
	return s.siteNames[n-1]
}

// record returns the move record of an owner, making one if need be. The
// pointer is good until the next call.
func (s *state) record(id int32) *moveRecord {
	if s.move[id] < 0 {
		s.move[id] = int32(len(s.moves))
		s.moves = append(s.moves, moveRecord{changed: noTime, window: noTime, failed: noTime})
	}
	return &s.moves[s.move[id]]
}

// pending returns the destination of the owner's move under way, 0 if there is
// none.
func (s *state) pending(id int32) uint16 {
	if m := s.move[id]; m >= 0 && s.moves[m].status == movePending {
		return s.moves[m].to
	}
	return 0
}

// standing returns where the owner's data is, a move under way counted as done.
func (s *state) standing(id int32) uint16 {
	if to := s.pending(id); to != 0 {
		return to
	}
	return s.site[id]
}

// place returns where a user is as a unit vector, false if that isn't known.
func (s *state) place(id int32, mean bool) (sphere.Vector, bool) {
	if !mean {
		if s.at[id] == noTime {
			return sphere.Vector{}, false
		}
		return sphere.FromDegrees(float64(s.lat[id]), float64(s.lon[id])), true
	}
	x, y, z := float64(s.x[id]), float64(s.y[id]), float64(s.z[id])
	norm := math.Sqrt(float64(x*x) + float64(y*y) + float64(z*z))
	if norm == 0 {
		return sphere.Vector{}, false
	}
	return sphere.Vector{X: x / norm, Y: y / norm, Z: z / norm}, true
}
