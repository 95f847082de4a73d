package serverswitch

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// want is what a table wants of a server.
type want uint8

const (
	wantNothing want = iota // it is none of the table's concern
	wantOn
	wantOff
)

// unit is a server with what is known of it.
type unit struct {
	Server
	fixed  bool // nobody turns it on and off
	memo   *memo
	kick   chan struct{} // something has changed for it
	asked  bool          // the backend was asked since the start, with or without an answer
	seen   time.Time     // when
	power  Power         // what it said
	silent int           // looks in a row at which it was on and not ready
	proven bool          // it was found to be ready since the table that is in force came
	look   time.Time     // nothing is done for it before
	detail string        // what a drain waits for
}

// site is a site's servers and what is wanted of them. All of it is under the switch's
// lock.
type site struct {
	name    string
	page    *page
	units   []*unit // in the order of the options
	most    int     // tries after which a server counts as failed, if another is on
	least   int
	expired Expiry
	resumed bool // the bus was read: there is no later table than the page's
	wants   map[string]want
	open    bool          // servers may be drained and stopped
	ready   bool          // all backends were asked: hooks may be called
	changed chan struct{} // closed at each change
	refused uint64        // epoch of the last table that was rejected
	fault   string        // why
}

// unitOf returns a server by its name; nil if it is not configured.
func (s *site) unitOf(name string) *unit {
	i := slices.IndexFunc(s.units, func(u *unit) bool { return u.Name == name })
	if i < 0 {
		return nil
	}
	return s.units[i]
}

// epoch is that of the table which orders are for; 0 for the default.
func (s *site) epoch() uint64 {
	if s.page.Lapsed {
		return 0
	}
	return s.page.Epoch
}

// decide finds out what is wanted of each server.
func (s *site) decide() {
	s.wants = make(map[string]want, len(s.units))
	if s.page.Epoch == 0 {
		return
	}
	if s.page.Lapsed {
		for _, u := range s.units {
			if s.expired == AllOn {
				s.wants[u.Name] = wantOn
			}
		}
		return // Kept, what is draining takes requests again: nobody goes by the table any more.
	}
	for _, name := range s.page.On {
		s.wants[name] = wantOn
	}
	for _, name := range s.page.Off {
		s.wants[name] = wantOff
	}
}

// settle is called after each change: it sees what may be done now and wakes those who
// wait for it. all wakes everyone.
func (s *site) settle(all bool) {
	open, ready := s.mayStop(), !slices.ContainsFunc(s.units, func(u *unit) bool { return !u.asked && !u.fixed })
	if all || open != s.open || ready != s.ready {
		for _, u := range s.units {
			if all {
				u.look = time.Time{}
			}
			select {
			case u.kick <- struct{}{}:
			default: // It has not looked since the last one.
			}
		}
	}
	s.open, s.ready = open, ready
	close(s.changed)
	s.changed = make(chan struct{})
}

// failed says whether a server counts as failed on its way to what is wanted. One that is to
// be on has as soon as one try has, while none is on: clients wait, and whoever made the table
// can name another. It is tried again all the same.
func (s *site) failed(u *unit) bool {
	stopping, most := u.memo.Phase == Stopping, s.most
	switch s.wants[u.Name] {
	case wantOn:
		if !s.serves(nil) {
			most = 1
		}
		return u.memo.Tries >= most && !stopping
	case wantOff:
		return u.memo.Tries >= most && stopping
	}
	return false
}

// serves says whether a server but for one is on, to be so or not yet stopped.
func (s *site) serves(but *unit) bool {
	return slices.ContainsFunc(s.units, func(u *unit) bool {
		return u != but && (u.memo.Phase == On || u.fixed && s.wants[u.Name] == wantOn)
	})
}

// mayStop says whether servers may be drained and stopped: all that are to be on are, or
// have failed, and enough are. One that was on before the table came may have died since, and
// whoever made the table need not have known: it counts once it was found to be ready.
func (s *site) mayStop() bool {
	on := 0
	for _, u := range s.units {
		switch {
		case s.wants[u.Name] != wantOn:
		case u.fixed || u.memo.Phase == On && u.proven:
			on++
		case !s.failed(u):
			return false
		}
	}
	return s.resumed && on >= s.least
}

// up are the names of the servers that are to run as things stand.
func (s *site) up() []string {
	return s.those(func(u *unit) bool {
		return s.wants[u.Name] == wantOn || u.memo.Phase != Off && u.memo.Phase != Stopping
	})
}

// wanted are the names of those that are wanted on.
func (s *site) wanted() []string {
	return s.those(func(u *unit) bool { return s.wants[u.Name] == wantOn })
}

func (s *site) those(are func(u *unit) bool) []string {
	var names []string
	for _, u := range s.units {
		if are(u) {
			names = append(names, u.Name)
		}
	}
	slices.Sort(names)
	return names
}

// step is what is to be done for a server.
type step uint8

const (
	rest step = iota
	ask
	start
	warm
	undrain
	drain
	wait // for the end of a drain
	stop
)

// plan says what is to be done for a server now, or, at rest, when to look again if
// nothing changes before; never if that is zero.
func (s *site) plan(u *unit, now time.Time, every time.Duration) (step, time.Time) {
	if u.fixed || s.page.Epoch == 0 {
		return rest, time.Time{}
	}
	if now.Before(u.look) {
		return rest, u.look
	}
	if !u.asked {
		return ask, time.Time{}
	}
	next, again := s.towards(u)
	switch {
	case next == ask && now.Before(u.seen.Add(every)) && !s.unproven(u) && !s.mute(u):
		return rest, u.seen.Add(every)
	case (next == start || next == stop) && !s.ready:
		return rest, time.Time{}
	case now.Before(again):
		return rest, again
	}
	return next, time.Time{}
}

// unproven says whether it is still to be found out if a server that is to be on is ready.
func (s *site) unproven(u *unit) bool {
	return s.wants[u.Name] == wantOn && u.memo.Phase == On && !u.proven
}

// towards says what brings a server nearer to what is wanted, and not before when.
func (s *site) towards(u *unit) (step, time.Time) {
	m := u.memo
	switch s.wants[u.Name] {
	case wantOn:
		return s.towardsOn(m)
	case wantOff:
		return s.towardsOff(m)
	}
	switch m.Phase { // What was begun is brought to an end.
	case Starting, Warming, Draining:
		return s.towardsOn(m)
	case Stopping:
		return s.towardsOff(m)
	}
	return rest, time.Time{}
}

// mute says whether the only server that is on was not ready when it was looked at last: it
// is looked at again soon.
func (s *site) mute(u *unit) bool {
	return u.silent > 0 && s.wants[u.Name] == wantOn && u.memo.Phase == On && !s.serves(u)
}

func (s *site) towardsOn(m *memo) (step, time.Time) {
	switch m.Phase {
	case On:
		return ask, time.Time{}
	case Draining:
		return undrain, m.Next
	case Warming:
		return warm, time.Time{}
	case Starting:
		return start, m.Next
	}
	return start, time.Time{} // Failures to stop it are no reason to wait.
}

func (s *site) towardsOff(m *memo) (step, time.Time) {
	switch {
	case m.Phase == Off:
		return ask, time.Time{}
	case !s.open:
		return rest, time.Time{}
	case m.Phase == Stopping:
		return stop, m.Next
	case m.Phase == Draining:
		return wait, time.Time{}
	}
	return drain, time.Time{}
}

// verdict is how a table stands.
type verdict struct {
	settled bool
	failed  []string // those that are not as it wants them
	reason  string
}

// judge says how the table in force stands. It has failed as soon as every server that is
// to be on is, or has failed, and one of all has.
func (s *site) judge() verdict {
	var v verdict
	var texts, cuts []string
	pending, warming := false, false
	for _, u := range s.units {
		w, m := s.wants[u.Name], u.memo
		switch {
		case u.fixed, w == wantNothing, w == wantOn && m.Phase == On:
		case w == wantOff && m.Phase == Off:
			if m.Cut != "" {
				cuts = append(cuts, u.Name+" stopped at the deadline of its drain: "+m.Cut)
			}
		case s.failed(u):
			v.failed = append(v.failed, u.Name)
			texts = append(texts, u.Name+": "+m.Fault)
		case w == wantOff && s.resumed && !s.open && s.tried():
			v.failed = append(v.failed, u.Name)
			texts = append(texts, fmt.Sprintf("%s: %v", u.Name, errNotOn))
		default:
			pending = true
			warming = warming || w == wantOn
		}
	}
	v.settled = !pending || len(v.failed) > 0 && !warming
	v.reason = bounded(strings.Join(append(texts, cuts...), "; "), mostReason)
	return v
}

// tried says whether every server that is to be on is, or has failed.
func (s *site) tried() bool {
	return !slices.ContainsFunc(s.units, func(u *unit) bool {
		return s.wants[u.Name] == wantOn && !u.fixed && (u.memo.Phase != On || !u.proven) && !s.failed(u)
	})
}

// Lengths of texts, in bytes: of a fault, and of an outcome's reason.
const (
	mostFault  = 300
	mostReason = 2000
)

// bounded cuts a text, between characters.
func bounded(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
