package baselines

// None stands for no owner, no user, no place and no site.
const None = -1

// Site is a site of the configuration.
type Site struct {
	Lat, Lon float64 // degrees
	Capacity int64   // bytes a window both ways, 0 for none
}

// Access is a request for an owner's data, or many of one user in one window.
type Access struct {
	// Owner and User are numbers from 0 that the caller gives to ids, the same one
	// for an owner and a user of the same id; None where there is none.
	Owner, User int32
	// Place of the user, by [Places.Find]; None if unknown.
	Place int32
	// Requests that this stands for, 1 for a row.
	Requests int64
	// Bytes of all of them, both ways, and Written those of them that writes
	// bring: they stay with the owner's data.
	Bytes, Written int64
}

// Moved is what goes from one site to another at the end of a window.
type Moved struct {
	// Owner whose data moves; None for the copies of what was written at From,
	// sent to all others.
	Owner    int32
	From, To int16 // To is None for copies
	Bytes    int64
}

// Strategy says where data is and who serves. It is fed by a [Box], in one
// goroutine.
type Strategy interface {
	// Name as in reports.
	Name() string
	// Text says in a few words what it does.
	Text() string
	// Copies of each owner's data that it keeps.
	Copies() int
	// Access returns the site that serves an access, None if nobody can be named.
	// The ledger has counted the access already.
	Access(a *Access) int16
	// Stand says where an owner's data is, before it is first served.
	Stand(owner int32, site int16)
	// Close ends a window at that time (µs) and returns what moves, by ascending
	// owner. It is valid until the next call.
	Close(end int64) []Moved
}

// standing is where each owner's one copy is.
type standing []int16

// at returns the owner's site, None if it is not known.
func (s standing) at(owner int32) int16 {
	if int(owner) >= len(s) {
		return None
	}
	return s[owner]
}

func (s *standing) set(owner int32, site int16) {
	for int(owner) >= len(*s) {
		*s = append(*s, None)
	}
	(*s)[owner] = site
}

// serve returns the site of an access's owner, and places a new one.
func (s *standing) serve(l *Ledger, a *Access) int16 {
	if a.Owner < 0 {
		return None
	}
	if at := s.at(a.Owner); at >= 0 {
		return at
	}
	home := l.home(a)
	if home >= 0 {
		s.set(a.Owner, home)
	}
	return home
}
