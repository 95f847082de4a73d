package catalog

import (
	"time"

	"penstock/consumers/executor/coder/object"
)

// Intent says which blobs are about to be written.
type Intent struct {
	// ID is of the caller's choosing, often the version's. Two open intents never
	// have the same.
	ID string
	// Since is when it began, UTC in whole microseconds.
	Since  time.Time
	Places []object.Place
}

// Rest is what is left to do with a version that can already be read. The zero Rest is
// nothing.
type Rest struct {
	// Staged tells that it doesn't lie in its intended coding yet.
	Staged bool
	// Lacking are the blobs that aren't in their store, or not for certain, ascending:
	// indices of the version's places.
	Lacking []int
}

// None tells that nothing is left to do.
func (r Rest) None() bool { return !r.Staged && len(r.Lacking) == 0 }

// Resting is a version with something left to do.
type Resting struct {
	Version string
	Rest    Rest
}

// Deletion is a blob to delete.
type Deletion struct {
	Place object.Place
	// Version is the id of the version or intent that the blob was of.
	Version string
	seq     uint64
}
