// Package control holds what deciders, executors and operators say to each
// other in JSON: the decision record, the command, the outcome, the location of
// an owner and the operator's switches (DESIGN §3.3, §3.4).
//
// Encoding is canonical: fields in the order of the structs, times in UTC,
// map keys sorted, no HTML escapes. The same decision has the same bytes,
// whatever the partitions and cuts; bus coordinates travel in headers.
//
// Failures: decoders return errors that wrap [ErrUndecodable] and name the
// field and what was expected.
package control
