package manifest

import "errors"

var (
	// ErrConflict is returned by Backend.Set when the document isn't at the
	// revision that the caller knows. This call wrote nothing. A Store returns it
	// only when it has lost Options.Tries times in a row; nothing was changed.
	ErrConflict = errors.New("another write came first")
	// ErrTooLarge is returned when an owner's document would be larger than
	// Options.MaxDocument, which is to say that the owner has too many objects.
	// Nothing was changed.
	ErrTooLarge = errors.New("too many objects for one owner's document")
	// ErrCollected is returned by Put when the object was deleted as a leftover
	// before the document named it: the owner's copy was deleted meanwhile, or
	// the write took longer than Options.Orphan. The object is as it was; write
	// it again.
	ErrCollected = errors.New("the write was overtaken by a deletion")
	// ErrMissing is returned by Open and Digest when the document names a blob
	// that isn't there: somebody deleted it past the Store. The object's content
	// is lost; the document is left as it is.
	ErrMissing = errors.New("the content of the object is missing")
	// ErrUnknown is returned when the backend failed and so many changes followed
	// that it can't be told any more whether this one was made.
	ErrUnknown = errors.New("the outcome of the write is unknown")
)
