package simservers

import "errors"

// ErrSwitch is returned where a second-level switch has broken its contract. There is no
// outcome.
var ErrSwitch = errors.New("second-level switch")
