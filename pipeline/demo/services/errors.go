package services

import "errors"

var (
	// ErrComponent is returned for a component that the graph lacks.
	ErrComponent = errors.New("there is no such component")
	// ErrCallee is what a request fails with whose callee did not answer with 200.
	// It may have been carried out there.
	ErrCallee = errors.New("the callee did not answer as asked")
)
