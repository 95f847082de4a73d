package objectstore

import "fmt"

// State is what a copy is.
type State string

// The states of a copy. Unmarked is the zero value.
const (
	Unmarked State = ""         // never moved: may be written to
	Absent   State = "absent"   // there is no copy
	Incoming State = "incoming" // being made by a mover: may not be written to yet
	Live     State = "live"     // arrived by a move: may be written to
	Retired  State = "retired"  // was moved away: may not be written to any more
)

// Mark is what a copy says of itself. Marks are compared as a whole.
type Mark struct {
	State State `json:"state"`
	// Version is the move's number: the one that brings or brought the copy
	// here, or, when retired, the one that took the data away.
	Version uint64 `json:"version,omitempty"`
	// Site is where the data went, on a retired copy.
	Site string `json:"site,omitempty"`
	// By is the mover that makes an incoming copy.
	By string `json:"by,omitempty"`
}

// Writable reports whether a copy with this mark may be written to by those who
// serve it.
func (m Mark) Writable() bool { return m.State == Unmarked || m.State == Live }

// String returns the mark in words.
func (m Mark) String() string {
	switch m.State {
	case Unmarked:
		return "unmarked"
	case Absent:
		return "absent"
	case Retired:
		return fmt.Sprintf("retired by move %d to %s", m.Version, m.Site)
	case Incoming:
		return fmt.Sprintf("incoming by move %d of %s", m.Version, m.By)
	default:
		return fmt.Sprintf("%s since move %d", m.State, m.Version)
	}
}
