package mover

import (
	"penstock/schemas/control"
)

// Reasons of outcomes that are not done.
const (
	// refused: the move contradicts locations or the configuration.
	ReasonOldVersion  = "old-version"  // the owner is at this version or a later one already
	ReasonNotAtSource = "not-at-from"  // the owner's data is at another site than the move's from
	ReasonPinned      = "pinned"       // the operator pinned the owner
	ReasonUnknownSite = "unknown-site" // from or to is no site of this mover's

	// failed: the move could not be carried out.
	ReasonSourceMissing = "source-missing"       // the store at from has no data of the owner
	ReasonSourceClosed  = "source-not-live"      // it has a copy, but not a live one
	ReasonOccupied      = "destination-occupied" // to has data of the owner that no move brought there
	ReasonUnfit         = "destination-unfit"    // the store at to can't take this data; the log says why
	ReasonBusy          = "source-busy"          // writes never paused for long enough
	ReasonStore         = "store"                // a store failed again and again
	ReasonUnreadable    = "location-unreadable"  // the entry in locations can't be decoded
	// ReasonEntrySilent, with ": " and its name: an entry point of from that may be
	// writing doesn't answer, and the store there has no barrier of its own.
	ReasonEntrySilent = "entry-silent"

	// ReasonNoBarrier is said of a done move whose source has no write barrier:
	// a write during the flip may have been left behind.
	ReasonNoBarrier = "no-write-barrier"
)

// ruling is what the version rules say about a move.
type ruling int

const (
	proceed ruling = iota
	flipped        // locations says that this very move was done
	refuse
)

func (r ruling) String() string { return [...]string{"proceed", "flipped", "refuse"}[r] }

// judge applies the version rules of DESIGN §3.3 to a move: it is done if its
// version is above that in locations (absent = 0) and its from is the site there
// (absent: believed). known says whether there is an entry.
func judge(l control.Location, known bool, m control.Move) (ruling, string) {
	switch {
	case known && m.Version == l.Version && m.To == l.Site:
		return flipped, ""
	case known && m.Version <= l.Version:
		return refuse, ReasonOldVersion
	case known && l.Pinned:
		return refuse, ReasonPinned
	case known && m.From != l.Site:
		return refuse, ReasonNotAtSource
	default:
		return proceed, ""
	}
}
