// Package serverswitch turns servers on and off as the tables of kind servers say
// (DESIGN §3.3, §4.3). Its subpackages are ways to do it: command, httphook, haproxy and
// kubernetes.
//
//	commands.servers.> ─▶ executor ─▶ Switch.Apply ─▶ wanted ─▶ [a loop per server] ─▶ Backend
//	                         ▲                                     │ ready? drained?
//	                         └── done, failed: names ◀─────────────┘ journal before each step
//
// Wanted is the last table that is to be acted on; after its ttl the default. What a
// server is the backend is asked where it can tell, else the journal knows. A loop per
// server brings one to the other, as long as they differ.
//
// # States
//
// Of a server:
//
//	         hook: on          it ended well          ready
//	off ───────────────▶ starting ─────────▶ warming ───────▶ on
//	 ▲                      ▲ └ again, later ┘ not in time     │ ▲ wanted again
//	 │ hook ended well      │ wanted again                     ▼ │
//	stopping ◀──────────────────────────────────────────── draining
//	         off: hook          nobody has requests there, or the deadline
//
// unknown is a server that nobody has told us anything of: it is asked, else the hook for
// what is wanted is called, which has to be idempotent. Hooks are called at least once: a
// crash between the journal's word and the hook's end calls it again, under the same key.
//
// # Order
//
// No server of a table is drained or stopped before each server that is to be on is on, and
// was found to be ready after the table came, or has failed Tries times; and none while
// fewer than Least others, at least one, are on (PROBLEMS P31, P37). A server is stopped
// once every dispatcher has the table that takes it off and nothing is queued or in service
// there (P38), or at the drain's deadline, which is counted and said in the outcome. A hook
// that was begun is let end; then what is wanted by that time is done.
//
// # Failures
//
// A hook that fails or hangs (its timeout ends it), and a server that is not ready in time,
// is tried again after a pause that grows. After Tries the table is answered failed with
// the names of the servers that are not as it wants them, and trying goes on at the
// greatest pause; if all is as wanted after all, the table is answered done as well. While
// no server of a site is on one failed try is enough, so that another can be named at once,
// and one that was on and is not ready is looked at again after a pause. A later table
// supersedes: the one before is answered refused, older-epoch. A table with a server that
// is not configured is rejected whole. Without a journal on disk nothing is done: a step
// that can't be noted is not taken. A state folder is one process's, also of one that only
// stands by: Claim, ErrInUse.
package serverswitch
