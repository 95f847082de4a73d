package solve

import "errors"

var (
	// ErrInstance is returned by Prepare for an instance with a number that is
	// none, out of range, or of a component or site that it does not have.
	ErrInstance = errors.New("split instance")
	// ErrCycle is returned by Prepare when components call each other in a circle:
	// the caller has to make a source of one of the calls.
	ErrCycle = errors.New("call graph with a cycle")
	// ErrUnsolved is returned by Optimal when its numbers leave it without a basis.
	// There is no plan.
	ErrUnsolved = errors.New("linear programme not solved")
)
