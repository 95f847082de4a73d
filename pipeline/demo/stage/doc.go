// Package stage is what demonstrations stand on besides their processes: a folder
// of their own, and the bus as an operator and an onlooker see it.
//
// It keeps no state.
package stage

import "errors"

// ErrFolder is returned for a folder that holds something else than an earlier
// demonstration. Nothing was removed.
var ErrFolder = errors.New("name another folder")
