// Package panes puts windows together again from what aggregators publish
// (DESIGN §3.2): deciders, the report, audit and explain read WINDOWS through
// it.
//
// [Assembler] is pure. It keeps the panes of a flush until the flush's commit is
// there, keeps committed panes until their window closes, and merges them then.
// A window closes when the watermark of every partition has passed its end, so
// what it holds does not depend on how rows were cut into flushes, on the number
// of partitions, or on the order in which partitions are read. [Reader] feeds it
// from the bus.
//
// States of a flush: panes pending → committed, or abandoned when a message of
// another flush or a commit that counts fewer panes follows. States of a window:
// open → closed (handed out once, ascending by end). A window without panes does
// not exist.
//
// Failures: a message that cannot be decoded stops the reader with an error that
// wraps window.ErrUndecodable and names its sequence. Flushes that are gone from
// the stream (trimmed, or cut at its beginning) show in the account's running
// total or in the commit's count of panes; every window that they may have
// belonged to is then incomplete, and no policy acts on it. Everything that is
// set aside is counted in [Stats].
package panes
