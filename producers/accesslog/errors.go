package accesslog

import (
	"errors"
	"fmt"
)

var (
	// ErrMalformed is wrapped by every *LineError: the line is not of the
	// format. The request that was to be filled holds nothing of use.
	ErrMalformed = errors.New("malformed access log line")

	// ErrFormat is returned by Compile for a pattern that is no format.
	ErrFormat = errors.New("invalid access log format")

	// ErrOption is returned by NewParser for options that cannot be used.
	ErrOption = errors.New("invalid access log option")
)

// LineError says where a line departs from its format.
type LineError struct {
	Field    string // the first field that did not match
	Column   int    // byte of the line at which it begins, from 1
	Got      string // what is there, at most maxGot bytes
	Expected string
}

// maxGot bounds what an error repeats of a line.
const maxGot = 80

func (e *LineError) Error() string {
	return fmt.Sprintf("column %d, field %s: got %q, expected %s", e.Column, e.Field, e.Got, e.Expected)
}

func (e *LineError) Unwrap() error { return ErrMalformed }

func mismatch(f Field, line []byte, at int, expected string) *LineError {
	got := line[min(at, len(line)):]
	if len(got) > maxGot {
		got = got[:maxGot]
	}
	return &LineError{Field: f.String(), Column: at + 1, Got: string(got), Expected: expected}
}
