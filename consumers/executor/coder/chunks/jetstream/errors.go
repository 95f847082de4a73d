package jetstream

import "errors"

var (
	// ErrOption is returned by Open for options that can't be: no connection, no usable
	// name. Nothing was made.
	ErrOption = errors.New("unusable option")
	// ErrBucket is returned by Open for a stream that was made by somebody else and
	// forgets what it is given, or that can't be changed. It is left as it is.
	ErrBucket = errors.New("the stream does not keep what it is given")
	// ErrTooLarge is returned by Put for a blob with more pieces than its entry can
	// name. Nothing was sent.
	ErrTooLarge = errors.New("blob too large for its entry")
	// ErrPieces is returned by Get when an entry doesn't make sense or pieces that it
	// names aren't there: the blob is damaged, or was replaced while it was read.
	ErrPieces = errors.New("pieces of the blob are missing")
)
