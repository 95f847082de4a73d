package s3

import "errors"

var (
	// ErrOption is wrapped by what Open returns for options that can't be used.
	// Nothing was sent.
	ErrOption = errors.New("unusable option")
	// ErrOverwritten is returned when a plain object, of the time before Penstock,
	// is read after somebody has replaced it who doesn't go through Penstock. The
	// object is as they left it.
	ErrOverwritten = errors.New("replaced by a writer who does not go through Penstock")
	// ErrParts is returned by Put for content with more than 10,000 parts of
	// Options.PartSize. What was sent is removed.
	ErrParts = errors.New("too large for uploads of this part size")
	// ErrUnknown is returned by writes of a document that may have been made or
	// not: the service gave no clear answer, and others have written since.
	ErrUnknown = errors.New("the outcome of the write is unknown")

	// errSilent: nothing was heard of a request.
	errSilent = errors.New("no answer in time")
	// errClosed: a closed reader was read.
	errClosed = errors.New("the reader is closed")
	// errRange: a reading can't go on where it was cut off.
	errRange = errors.New("the service does not send parts of objects")
	// errChanging: readings of a document never agreed.
	errChanging = errors.New("content and ETag do not belong together")
)
