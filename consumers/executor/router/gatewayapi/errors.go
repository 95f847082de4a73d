package gatewayapi

import (
	"errors"

	"penstock/consumers/executor/kubeapi"
)

var (
	// ErrRefused is returned for what the API server, an admission hook or all the
	// gateways of a route would not take, with their words. The weights of before were
	// written back.
	ErrRefused = kubeapi.ErrRefused
	// ErrState is returned if the state file can't be read. Nothing was started.
	ErrState = errors.New("state of HTTPRoutes")

	// errConflict is what a patch ends in when somebody else wrote meanwhile: it is
	// made again.
	errConflict = kubeapi.ErrConflict
)
