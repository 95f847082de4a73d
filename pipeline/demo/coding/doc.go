// Package coding is the demonstration of coded object storage (DESIGN §4.4) under live
// traffic, which checks what it promises while it runs.
//
// A coder is a process with an S3 API, and behind it an S3 service whose answers take as
// long as the delay model says (package delayed). Clients read and overwrite objects: an
// open loop, so that a coder that is behind is not asked less. There are three coders,
// each with a store of its own, all at the same time and with the same requests: one by
// the decider's tables, and two whose own configuration says (1,1) and (12,6).
//
//	              ┌─▶ coder tofec ─▶ store, delayed     ◀─ tables ─ serve: bus,
//	clients, S3 ──┼─▶ coder (1,1) ─▶ store, delayed                 aggregator, decider
//	              └─▶ coder (12,6) ▶ store, delayed     ─ events ─▶
//
// The load rises and falls; later each request to the stores takes longer, whatever its
// size. Nobody tells the decider of it: it learns delays from the coder's events.
//
//	preparing ──▶ light ──▶ … heavy … ──▶ light ──▶ slower stores ──▶ ended ──▶ judged
//
// # Scale
//
// Objects have a tenth of the paper's 3 MB, and a MB takes ten times as long; all delays
// are twice the paper's. Two processors then have time to spare: what takes time is what
// the model says. No quotient of the model is changed by it.
//
// # What is judged
//
// The mean delay of reads at a light load against (1,1); what is answered at a heavy load
// against (12,6); each byte that was read, which must be of a version that was written
// and not older than what was acknowledged before; the account of all events; the delays
// that were learned against the true ones; and that nothing is left over: no object in
// another coding than its own, no connection in use.
//
// The run is void ([ErrVoid]) if the machine was its limit: if sleepers woke up late, or
// requests were not sent when they were due. It fails ([ErrPromise]) unless everything
// that is promised was kept. Each figure is printed either way.
package coding
