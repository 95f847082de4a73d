package spanfile

import "errors"

var (
	// ErrFormat is returned for a name that is no format's, and for a file whose
	// format can't be told or that lacks what its format needs. What was emitted
	// stands.
	ErrFormat = errors.New("not a format of spans")
	// ErrNothing is returned when files had contents and no span could be read.
	ErrNothing = errors.New("nothing of the spans can be read")
)
