package objectstore

import (
	"errors"
	"fmt"
)

var (
	// ErrNoOwner is returned where an owner's data was asked for and this store
	// has no copy of it, not even an empty one.
	ErrNoOwner = errors.New("no data of this owner here")
	// ErrNoObject is returned where the owner is there and the object is not.
	ErrNoObject = errors.New("no such object")
	// ErrName is returned for an owner id or an object name that a store cannot
	// hold: empty, too long, or a path that leaves the owner's own data. Nothing
	// was done.
	ErrName = errors.New("not a usable name")
	// ErrMarked is wrapped by every MarkedError. Nothing was written.
	ErrMarked = errors.New("the copy bears another mark")
	// ErrChanged is returned by Hold when the data is no longer at the version
	// that the caller asked for. The barrier is not held.
	ErrChanged = errors.New("the data has changed")
	// ErrNoBarrier is returned by Hold of a backend that has none (see
	// Capabilities). Writers can't be kept out.
	ErrNoBarrier = errors.New("the backend has no write barrier")
	// ErrHoldLost is returned by the methods of a Held whose barrier was lost
	// before they were called: a lease that its holder could not renew in time, a
	// connection that broke. Writers may have written since. Nothing was done;
	// what an earlier call did stays done. Hold again.
	ErrHoldLost = errors.New("the barrier was lost")
	// ErrUnfit is returned by Put for what this store can't take as it is, and won't
	// when it is tried again: a row whose key belongs to another owner here, that
	// refers to a row that isn't here, of a table or with columns that this site
	// doesn't have. Somebody must change the data or the store. Nothing was
	// written; unless ErrChanged is returned with it: then a part was, and the rest
	// may be sent again after what it refers to.
	ErrUnfit = errors.New("the store can't take this data")
	// ErrCorrupt is returned when bytes in the middle of a record file are not
	// what was written. The file is left as it is; nothing was appended.
	ErrCorrupt = errors.New("damaged record")
	// ErrTorn is returned by Scan after the last whole record when bytes of an
	// unfinished one follow. The next append cuts them off.
	ErrTorn = errors.New("unfinished record at the end")
	// ErrOrder is returned when records of one call do not ascend by number.
	// Nothing was appended.
	ErrOrder = errors.New("record numbers must ascend")
)

// MarkedError says that a copy was not in the state that the caller needed, and
// in which it is instead.
type MarkedError struct {
	Owner string
	Have  Mark
	Want  Mark // the zero Mark: any copy that may be written to
}

// Error names the owner and both marks.
func (e *MarkedError) Error() string {
	want := "a live copy"
	if e.Want != (Mark{}) {
		want = e.Want.String()
	}
	return fmt.Sprintf("owner %.80q: %v: it is %s, not %s", e.Owner, ErrMarked, e.Have, want)
}

// Unwrap makes errors.Is(err, ErrMarked) true.
func (*MarkedError) Unwrap() error { return ErrMarked }
