package multitier

import "errors"

// ErrApp is returned for an application or options that cannot be simulated:
// nothing was run.
var ErrApp = errors.New("application to simulate")
