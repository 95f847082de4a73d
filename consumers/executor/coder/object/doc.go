// Package object holds the coded object (DESIGN §4.4, PAPERS §3.2): how the bytes of
// one object version lie in the blobs that stores keep, how they are coded, how damage
// is found and how any k chunks give them back. It is pure: what reads and writes
// stores lies above it.
//
// A version is cut into segments (8 MiB by default), so that memory is bounded whatever
// the size. Every segment is K strips of data, the last ones padded with zeros, and
// N−K strips of parity (klauspost/reedsolomon, its default matrix, systematic). A strip
// is stored as a frame: the strip, and a trailer of 16 bytes that names the version and
// the position. The version document holds an XXH3-64 of every frame.
//
//	layout  strips N,K  blobs           a chunk of (n,k)
//	shared  120, 60     2·Cut, meant 2  60/k frames on end, for k = 1 … 6 and n ≤ 2k
//	spread  n, k        n               frame i, in blob i
//
// In shared chunk c of (n,k) is the frames c·60/k … (c+1)·60/k−1: the n chunks are
// disjoint, the first k hold the data themselves, and any k are 60 strips, which is what
// decoding needs. A version is meant to lie in two blobs, one of the data strips and one
// of the parity, all segments on end: every chunk is a range of one of them, and all
// codings of a read are there at once. A write with k > 1 leaves a version of one segment
// staged, in blobs of 60/k strips (Shape.Cut = k): it is read with k a multiple of Cut
// until it is settled, which puts the same frames into the two blobs. Frames, and so
// checksums, don't depend on Cut. In spread a version is bound to its (n,k); blob i holds
// strip i of every segment.
//
// Blobs that haven't landed. A write is answered when as many blobs are in as rebuild
// the version. A version says which ones landed: the others have the zero Place, and
// Version.Clamp and Version.Chunks choose around them.
//
// Tiny objects. Where a strip would be shorter than 64 bytes the version has one strip
// (K = 1) in copies: two in shared, n in spread. A chunk's delay is the constant part
// of the model there, so that cutting saves no time and costs requests; in shared two
// copies, in a blob each, also take the space that rate 1/2 takes. Shape.Clamp turns the (n,k) in force
// into one that the version has. An empty object has a document and nothing else.
//
// Checksums. XXH3-64 rather than CRC32C: twice as fast here, and 64 bits, so that the
// chance that a damaged frame passes is 2⁻⁶⁴ rather than 2⁻³². It guards against decay
// and mistakes, not against a store that forges on purpose; the SHA-256 of the whole,
// which the document also holds, is there for that. A frame covers its trailer, so a
// strip of another version or position fails even with the same content, and its
// trailer tells what it is.
//
// States. Encoder: Reset, Expect where the size is known, Next for each segment, then
// Finish; Reset begins another version in the same memory. Decoder: Begin a segment, Fill
// or Add what stores answered, WriteRange; each may be used by one goroutine at a time. Version and Shape are values and safe.
//
// Failures. Nothing is handed out that has not passed its checksum: WriteRange returns
// ErrTooFew and no byte when less than K strips of a segment are whole. What is wrong
// is told per strip as a Fault (missing, truncated, damaged, misplaced, foreign). A
// document that is not whole, not canonical or of another schema version is refused as
// ErrDocument or ErrSchema. Documents record the shape, so that no later change of
// codings, segments or the rule for tiny objects makes a version unreadable.
package object
