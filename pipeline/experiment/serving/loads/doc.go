// Package loads makes the requests of a run: when each comes, what page it is, how large,
// and how long it takes at each station of a nominal server. They are drawn by a seed,
// from a course of the load or from a recording; the same seed gives the same requests. It
// keeps no state.
//
// # Failures
//
// A course that is none ([ErrCourse]) and a recording that cannot be read
// ([ErrRecording]).
package loads
