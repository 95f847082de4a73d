// Package live runs the sweep of package coding with the real coder (issue: must show 4):
// coder.Coder with its queue, catalog and checksums over a store in memory whose delays
// are shaped by the model, at a few loads, tofec beside (1,1) and (12,6).
//
// Each policy has a coder and a store of its own, all at work at the same time with the
// same arrivals: an open loop, so that a coder that is behind is not asked less. What the
// machine does besides is done to all of them alike, and every figure stands beside the
// simulation's for the same model, code tables, loads and connections.
//
//	arrivals, seeded ─┬─▶ coder, (1,1)   ─▶ shaped store
//	                  ├─▶ coder, (12,6)  ─▶ shaped store
//	                  └─▶ coder, tofec   ─▶ shaped store
//
// # Scale
//
// Objects are a tenth of the paper's 3 MB and delays for a MB ten times its: chunks take
// as long as there, and the processors copy and check a tenth of the bytes. Options.Scale
// then makes all delays longer, and rates lower, by one factor: the more, the less the
// machine's own time counts. Neither changes any quotient of the model.
//
// # What counts
//
// The first requests at a load are left out, then a number of them count; a request's
// delay is from when it was due to its last byte, each of which is compared with what was
// written. Tables of codes are those of the true model: how they are learned is shown by
// penstock demo coding.
//
// # Failures
//
// [ErrOptions] for options that make no run; [ErrPromise] if something that is promised
// was not kept; [ErrVoid] if the machine was the limit, which shows nothing. The result
// is there in the latter two, and says what. With a virtual clock (testing/synctest) the
// same run takes only the time that the processors need for it.
package live
