// Package event holds what entry points publish: requests and gauges in
// columns, the headers of a batch, and marks (DESIGN §3, §3.1, §3.4).
//
// A [Request] is one row as a producer fills it. [Requests] is the same in
// columns: what is encoded, sent, decoded and aggregated. Strings are interned
// once a batch ([Dict]), so that neither encoding nor decoding allocates per
// row.
//
// Absent values have one spelling each: an empty string, [NullInt], NaN for a
// position, [NullStatus], an all-zero trace, and n or k of 0. An absent value
// is never 0.
//
// Failures: every decoder returns an error that wraps [ErrUndecodable] and
// leaves its result empty; none panics, whatever the bytes.
package event
