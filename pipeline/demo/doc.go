// Package demo shows Penstock at work on one machine, with real processes, and
// checks what it promises while it does.
//
// [Live] is placement (DESIGN §4.1) under live traffic: three sites whose distances
// are real (package links delays what goes between them), each with a notes
// service on a store of its own and an entry point in front, one bus with
// aggregator, decider and mover, and a redirector. People read and write their
// own notebooks and their friends' from where they are. Then a crowd of them is
// somewhere else, and its data follows while writes go on.
//
//	preparing ──▶ running (crowd at a site ⇄ crowd moved, data behind) ──▶ settled ──▶ judged
//
// Everything that a client does is in the books of package ledger, and in the end
// the stores are compared with them. A run fails ([ErrPromise]) if a request
// failed, an answer took more than one hop, an acknowledged write is not exactly
// once at its owner's live copy, the crowd's data took more than two windows, or
// the account does not hold.
//
// The demonstration of the split (DESIGN §4.2) is package split below. The other
// packages there are the parts of which demonstrations are made: processes, links,
// load, screen, stage; notes and services are what is served; ledger keeps books.
package demo
