// Package pace says when a row of a recording is due, and how late rows were
// sent. It is pure: it is told what time it is.
//
// The schedule is absolute: a row at event time t is due (t − t0)/speed after
// the start, t0 being the first row's time. What delays one row delays no other
// for long, and there is no drift, whatever the disorder (PROBLEMS P27). The
// lag of a row is from its scheduled instant, not from the one before it, so
// that a stall is seen in every row that it held up (P29).
//
// Failures: [ErrSpeed] for a speed that can't be kept, before anything is sent;
// [ErrLag] from [Pacer.Check] where a limit was set and passed.
package pace
