// Package processor tells what processes use of the machine's processors.
//
// It keeps no state. Only Linux shows the times of other processes: elsewhere each
// call fails with [ErrUnknown], and so does that for a process which has ended.
package processor

import "errors"

// ErrUnknown is returned for a process whose times the system does not show: it
// has ended, or the system shows nobody's.
var ErrUnknown = errors.New("the processor time of the process is not known")
