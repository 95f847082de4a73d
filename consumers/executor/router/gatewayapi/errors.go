package gatewayapi

import "errors"

var (
	// ErrRefused is returned for what the API server, an admission hook or all the
	// gateways of a route would not take, with their words. The weights of before were
	// written back.
	ErrRefused = errors.New("the cluster refused it")
	// ErrState is returned if the state file can't be read. Nothing was started.
	ErrState = errors.New("state of HTTPRoutes")

	// errConflict is what a patch ends in when somebody else wrote meanwhile: it is
	// made again.
	errConflict = errors.New("somebody else wrote meanwhile")
)
