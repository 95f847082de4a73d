package kubeapi

import (
	"errors"
	"fmt"

	"penstock/consumers/executor"
)

var (
	// ErrUnreachable is returned if the API server can't be asked now. It wraps
	// executor.ErrAgain. What was to be written may have been.
	ErrUnreachable = fmt.Errorf("no way to the API server: %w", executor.ErrAgain)
	// ErrAbsent is returned for an object that isn't there.
	ErrAbsent = errors.New("no such object in the cluster")
	// ErrConflict is returned for a write that somebody else's was before. Nothing was
	// written.
	ErrConflict = errors.New("somebody else wrote meanwhile")
	// ErrRefused is returned for what the API server or an admission hook would not take,
	// with their words. Nothing was written.
	ErrRefused = errors.New("the cluster refused it")
	// ErrOptions is returned for options that can't work.
	ErrOptions = errors.New("options of the API server")
)
