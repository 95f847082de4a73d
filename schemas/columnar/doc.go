// Package columnar reads and writes Arrow IPC streams of one record batch, the
// bodies of what travels in columns on the bus (DESIGN §3), and converts such
// columns to and from arrow.Record for recordings and matrices.
//
// A [Column] is a view: byte slices in Arrow's layout, of which the codecs of
// schemas/event and schemas/window fill and read typed slices. Neither way
// allocates per row.
//
// The [Reader] is strict and bounded, for it reads what others sent: every
// offset is checked before use, a message is refused when it claims more than
// is there, and work is limited to a small multiple of the bytes given,
// whatever they are. It reads little-endian streams of metadata version 4 or 5
// without body compression and without delta dictionaries, and it can step
// over columns of types that it does not read, so that a later version may add
// some. Arrow's own reader trusts lengths and nesting, which a stranger's bytes
// may not be trusted with. Where that reader is needed, for recordings of any
// making, [Check] and [CheckBody] see each message first.
//
// Failures: all errors of the Reader wrap [ErrCorrupt] or, where a column alone is
// at fault, [ErrColumn].
package columnar
