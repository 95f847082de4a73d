package processor

import "errors"

// ErrUnknown is returned for a process whose times the system does not show: it
// has ended, or the system shows nobody's.
var ErrUnknown = errors.New("the processor time of the process is not known")
