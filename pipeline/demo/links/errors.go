package links

import "errors"

// ErrNoLink is returned for a pair of places of which the mesh doesn't know one.
var ErrNoLink = errors.New("there is no such link")
