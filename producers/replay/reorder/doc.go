// Package reorder puts the rows of a recording in the order of their times, as
// far as its disorder allows, and tells which rows are late and which are in
// the future (DESIGN §3, late and future). It is pure.
//
// A [Buffer] takes rows in input order and hands them on:
//
//   - in time: ordered by (time, input position), each as soon as the horizon,
//     the greatest time so far less the disorder, has reached it;
//   - late, of a time before the horizon: at once;
//   - future: at once, when it is clear that nothing follows it.
//
// A row more than the greatest skew ahead of the last row that was in time is
// held, with the rows after it, until it is judged: one of the next ten rows
// that lies behind it by more than the skew makes it future, ten that do not
// make it the first row after a pause. If the input ends before that, it is
// future. Rows that were held are then taken one by one as if they had just
// come, so that two future rows side by side are two judgements.
//
// The first row of the input has no row to be ahead of. It is judged by what
// follows alone: it is future if all of the next ten rows lie behind it by more
// than the skew, so that one wrong clock at the beginning does not make all the
// honest rows late; else it is in time.
//
// Failures: [ErrTooMany] when more rows lie inside the disorder than the buffer
// may hold. Rows already handed on stay valid; the buffer is of no further use.
package reorder
