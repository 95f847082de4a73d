// Package delayed is the object store of the demonstration of coding: an S3 service in
// memory whose answers take as long as a model says (PAPERS §3.2). Clients that nobody
// here wrote, and the coder, talk to it as to any other.
//
//	request ──▶ body read ──▶ Delta(B) + Exp(Psi(B)) ──▶ carried out, answered
//	                                │
//	                                └─ its client goes away: not carried out, counted
//
// B is the bytes that a reading will give, or those that came with a writing; all else is
// of none. Delays are drawn by a seeded generator in the order in which requests come.
//
// # States and failures
//
// A Server may be told other models at any time: requests that wait go by what held when
// they came. A body of more than 64 MiB is refused with EntityTooLarge. The rest is
// answered by gofakes3, without looking at signatures.
package delayed
