// Package executor carries commands out: the loop that is the same for every
// kind, and, in packages of their own, the targets that know how (mover for
// placement; router and serverswitch for tables that others are told; inforce for
// those that a process goes by itself).
//
//	COMMANDS ──▶ [pull one] ──▶ decode ──▶ mode, ttl ──▶ Target ──▶ OUTCOMES ──▶ [ack]
//	                              └─ undecodable ──▶ REJECTS, once
//
// A command is acknowledged after all its outcomes are, never before: a kill at
// any instant leaves it to be delivered again, AckWait later at most, to whoever
// is there. Several processes of one role share one durable consumer; each
// worker pulls one command at a time and says every quarter of AckWait that it is
// still at it, so that nothing waits unseen in a buffer and nothing that is
// worked on is given to another (PROBLEMS P20). Where every process has to carry out
// every table (Options.Own: routers), each has a durable consumer and outcomes of its
// own, which begins with the last table of each scope.
//
// # Once
//
// Delivery is at least once and acknowledgements prove nothing (P21), so targets
// are idempotent: moves by (owner, version), tables by (kind, scope, epoch), for
// which Epochs is the memory. Outcomes carry a message id of the same parts; what
// the bus had already is counted already-applied. A command that was delivered
// before is first compared with the outcomes that are on the bus. A table that was
// answered and comes again after a later one, or after its ttl, keeps its answer: it is
// only counted, for refused or expired would say of it what was not so.
//
// # States
//
// Run first lets the target resume what it had begun, then works, until its
// context ends; then it stops pulling, finishes what is in flight within Grace,
// and returns. Ready reports whether it can be relied on: not before resuming is
// done, and not while the watchdog (P22) sees commands pending and none
// delivered.
//
// # Failures
//
// Trouble with the bus while answering is waited out, in place, so that a blip
// uses no delivery up. A target's error gives the command back with a growing
// delay. Nothing is given back while stopping: it would come to the same dying
// process (P25).
package executor
