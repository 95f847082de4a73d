// Package directory holds where every owner's data is, in memory, as KV locations
// on the bus says (DESIGN §3, §4.1). Entry points and the redirector ask it for
// every request.
//
//	        snapshot file            bus
//	             │ at start           │ all entries, then every change
//	             ▼                    ▼
//	empty ─▶ last known ─▶ loading ─▶ in step ◀──▶ alone (the bus is away)
//	             └───────────────────────────────────┘
//
// Before the first full state (Ready) every owner is unknown. From then on it
// answers always, from what it last knew, and Freshness says how old that is.
//
// What it follows is read as a stream: an entry or deletion that is missed would
// route an owner wrongly until the next change, so nothing is taken on trust. After
// each lost connection, and every Check, the bus must still hold the last message
// that was applied, with the same time, in a stream that was made at the same
// time; and it must hold as many keys as were seen. If not, it was purged, made
// anew or set back, and everything is read again. Meanwhile lookups are answered
// as before; what was not seen again is removed at the end.
//
// Learn adds hints: an entry point heard from another, sooner than from the bus,
// that an owner is elsewhere under a greater version. A hint gives way to an entry
// of its version or later, to a deletion, and, lest a wrong one stays, after
// HintTTL with a bus that doesn't confirm it.
//
// Failures. A bus that is away or damaged never ends Run. An entry that can't be
// used is set aside, counted by reason, and the last usable one of its owner goes
// on. A snapshot that is damaged is refused, said, counted, and written anew once
// the bus was read.
package directory
