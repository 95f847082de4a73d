// Package bus is Penstock's hold on NATS JetStream: it runs a server inside the
// process or connects to one, makes and checks the streams of DESIGN §3, and
// offers the few operations that the roles need.
//
// A [Bus] is one server (embedded) or one address (DESIGN's --nats URL). A
// [Client] is a connection of one role. Callers name streams, subjects and
// buckets without the prefix; this package adds it and takes it off again.
//
//	Open ─▶ Bus ─▶ Init (make what is missing) or Check (only compare)
//	          │
//	          └──▶ Client ─▶ Read            every message once, in order
//	                      ─▶ Publish         one message, acknowledged
//	                      ─▶ PublishFenced   all or nothing, if nobody wrote since
//	                      ─▶ Last, Trim, KV, Objects
//
// What is acknowledged has been synced to disk, unless [SyncInterval] was asked
// for. An embedded bus opens no port unless Options.Listen names one.
//
// With Options.Patient a process starts although its bus is away: clients are made
// at once, [Client.Ready] waits for the bus, [Client.Fault] says if the one that
// came is another than was meant, and nothing is sent to that one.
//
// Failures. A connection that is lost is made again for ever; what was under
// way then ends at once in an error that says nothing about whether it happened
// ([ErrLost], "unknown"), and the caller sends it again. Nothing is held back to
// be sent later: without a connection each call fails at once. [ErrConflict]
// alone says that a write was refused because another came first. A [Reader]
// lives through lost connections and restarts of the server, and ends with an
// error only where it cannot go on without a gap ([ErrTrimmed], [ErrBeyond]).
package bus
