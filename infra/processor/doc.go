// Package processor tells what processes use of the machine's processors.
//
// It keeps no state. Only Linux shows the times of other processes: elsewhere each
// call fails with [ErrUnknown], and so does that for a process which has ended.
package processor
