package chunks

import "errors"

var (
	// ErrNotFound is returned by Get for a key without a blob. Nothing was written.
	ErrNotFound = errors.New("no such blob")
	// ErrKey is returned for a key that no store takes, see CheckKey. Nothing changed.
	ErrKey = errors.New("not a key of a blob")
	// ErrSize is returned by Put when the reader has fewer or more bytes than was
	// said. The key holds what it held before.
	ErrSize = errors.New("blob is not of the size that was said")
	// ErrRange is returned by Get and List for negative numbers. Nothing was written.
	ErrRange = errors.New("not a range")
)
