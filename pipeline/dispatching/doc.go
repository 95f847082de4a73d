// Package dispatching puts a dispatcher of consumers into the pool of servers of an entry
// point: neither side imports the other.
//
//	entry ─▶ upstream.Pool ──Admit, Done──▶ [Dispatcher] ──▶ dispatcher.Site
//	              │   ▲                                            │ table: who is on
//	              │   └───────── drained, proven ◀── Switched ─────┘
//	              └───────── health ──▶ Usable
//
// A server that a table turns off is drained in the pool of connections too, so that its
// health, which ends with the machine, says nothing of the others. One that it turns on is
// proven there first: the table doesn't say that it has started.
package dispatching
