package accesslog

import (
	"errors"
	"fmt"
)

var (
	// ErrMalformed is wrapped by every *LineError: the line is not of the
	// format. The request that was to be filled holds nothing of use.
	ErrMalformed = errors.New("malformed access log line")

	// ErrHeader is returned by Parse for a line that says what the columns are,
	// or is the log's own remark. It is no row, and nothing is wrong.
	ErrHeader = errors.New("header of an access log")

	// ErrFormat is returned by Open and Decode for a format that is none: a file
	// that cannot be read, a format string or a mapping with a fault. The text
	// says where.
	ErrFormat = errors.New("invalid access log format")

	// ErrOption is returned by Open and NewParser for options that cannot be used.
	ErrOption = errors.New("invalid access log option")
)

// LineError says where a line departs from its format.
type LineError struct {
	Field    string // the first field that did not match
	Column   int    // byte of the line at which it begins, from 1; of a JSON object its first
	Got      string // what is there, at most maxGot bytes
	Expected string
}

// maxGot bounds what an error repeats of a line.
const maxGot = 80

func (e *LineError) Error() string {
	return fmt.Sprintf("column %d, field %s: got %q, expected %s", e.Column, e.Field, e.Got, e.Expected)
}

func (e *LineError) Unwrap() error { return ErrMalformed }

func mismatch(field string, line []byte, at int, expected string) *LineError {
	return lineError(field, at+1, line[min(at, len(line)):], expected)
}

func lineError(field string, column int, got []byte, expected string) *LineError {
	if len(got) > maxGot {
		got = got[:maxGot]
	}
	return &LineError{Field: field, Column: column, Got: string(got), Expected: expected}
}
