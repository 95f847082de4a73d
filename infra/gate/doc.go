// Package gate is the mover's write barrier at entry points: while an owner's data
// changes its site, the entry points of the old one keep writes to it waiting
// (DESIGN §4.1).
//
// A store that has a barrier of its own refuses a writer who is a moment too late.
// One that has none (objects in a bucket that somebody else's service writes, a
// folder on a file system without locks) can't, and a write that is acknowledged
// there after the owner has left is lost. But if all writes come through entry
// points, these can do it: each lets the writes that are running end, then says
// that it holds the owner, and lets nobody in until it knows where the owner is.
//
// # The two sides
//
// A [Keeper] sits in each entry point, a [Barrier] in each process with a mover;
// [Barrier.Store] wraps a site's store so that its Hold asks the site's entry
// points first.
//
//	entry point                                   mover
//	  │ entry.<site>.<name> ──────▶ KV entries ◀────── hold.<site>.<mover>.<n>
//	  │◀──────────── gate.<site>.<name>: hold ────────│   writes the slot, reads the
//	  │ waits for running writes                      │   registry up to that, asks all
//	  │───────────────── held ───────────────────────▶│
//	  │◀──────────────── hold (again, to renew) ──────│   copies, flips locations
//	  │◀──────────────── release: site, version ──────│   clears the slot
//
// An entry point is registered from its first start until it has drained, also
// while it is down: a mover that gets no answer from one that is registered can't
// know that it isn't writing, and the move fails ([SilentError]). It comes back
// under its name; an operator may [Forget] one that won't.
//
// # Why no write is lost
//
//   - Who comes late: a slot is written before the registry is read, and an entry
//     point registers before it reads the slots, both in one stream. So a mover
//     knows of an entry point, or that one finds the slot and holds the owner from
//     its start. Before it has looked it lets no write in.
//   - Who is writing: Enter counts before it looks whether its owner is held, and a
//     hold is there before it looks at the counts.
//   - Whose mover dies: a hold has a lease, which the mover renews. When it runs
//     out, the entry point still lets nobody in. It asks any mover where the owner
//     is (gate.where), and that one writes locations once more under a new revision
//     before it says "still there": a flip that is under way is refused then. Nor
//     does a mover itself release a hold after a flip of which it doesn't know
//     whether it arrived without doing so.
//   - Who can't know: while no mover answers, or the bus is away, the owner's
//     writes stay held, and the entry point answers 503. Only that owner's.
//
// What a hold can't cover: writes that don't come through a registered entry point.
// An entry point that starts for the first time while the bus is away from it, and
// not from the movers, is known to none of them; it lets writes in all the same
// after [KeeperOptions.Away], unless that is negative.
//
// # Bus
//
// Plain requests on gate.<site>.<name> and gate.where (with the prefix of the bus),
// JSON bodies, and the bucket entries. What the user of a role must be allowed:
//
//	entry   subscribe gate.SITE.NAME, publish gate.where; read the bucket entries
//	        and write its key entry.SITE.NAME
//	mover   publish gate.>, subscribe gate.where; read the bucket entries and write
//	        its keys hold.*.NAME.* and mover.NAME; read and write locations
//
// and both their inboxes. An entry point has no right to write locations: it asks.
package gate
