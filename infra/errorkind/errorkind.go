// Package errorkind makes errors of a kind: errors.Is finds the sentinel that a
// package's errors.go describes, but the text does not repeat it where it would
// tell a person nothing beside what went wrong. It has no state and no failures.
package errorkind

import "fmt"

// Errorf is fmt.Errorf, verb %w included, for an error that wraps kind, too.
func Errorf(kind error, text string, args ...any) error {
	return &kindError{fmt.Errorf(text, args...), kind}
}

// kindError has the text of one error and is of two.
type kindError struct {
	error
	kind error
}

func (e *kindError) Unwrap() []error { return []error{e.error, e.kind} }
