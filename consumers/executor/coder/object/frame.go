package object

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/zeebo/xxh3"
)

// TrailerBytes is how many bytes follow the strip in a frame, little endian: 8 of the
// version's identity, 4 of the segment, 2 of the strip, 2 of the frame's format.
const TrailerBytes = 16

// frameFormat is the last two bytes of every trailer.
const frameFormat = 1

// identity is the version's part of a trailer: the first 8 bytes of a SHA-256 of key
// and version id, each with its length before it, so that no two pairs are one text.
func identity(key, id string) uint64 {
	b := make([]byte, 0, 256)
	for _, s := range [...]string{key, id} {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(s)))
		b = append(b, s...)
	}
	sum := sha256.Sum256(b)
	return binary.LittleEndian.Uint64(sum[:])
}

// trail writes the trailer at the end of a frame.
func trail(frame []byte, identity uint64, segment, strip int) {
	t := frame[len(frame)-TrailerBytes:]
	binary.LittleEndian.PutUint64(t, identity)
	binary.LittleEndian.PutUint32(t[8:], uint32(segment))
	binary.LittleEndian.PutUint16(t[12:], uint16(strip))
	binary.LittleEndian.PutUint16(t[14:], frameFormat)
}

// sumOf is the checksum of a frame, trailer included.
func sumOf(frame []byte) uint64 { return xxh3.Hash(frame) }

// Kind says what is wrong with a strip.
type Kind uint8

const (
	// Missing says that the store had nothing there, or was not asked with success.
	Missing Kind = iota + 1
	// Truncated says that the answer ended before the frame did.
	Truncated
	// Damaged says that the trailer names this position, and the checksum fails.
	Damaged
	// Misplaced says that it is a frame of this version, of another position.
	Misplaced
	// Foreign says that the trailer names no position of this version: a frame of another
	// version or object, or bytes that are none.
	Foreign
)

// String gives the name under which faults of a kind are counted.
func (k Kind) String() string {
	switch k {
	case Missing:
		return "missing"
	case Truncated:
		return "truncated"
	case Damaged:
		return "damaged"
	case Misplaced:
		return "misplaced"
	case Foreign:
		return "foreign"
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Fault is a strip that can't be used, and why.
type Fault struct {
	Segment, Strip int
	Kind           Kind
}

// String says it for logs.
func (f Fault) String() string {
	return fmt.Sprintf("segment %d strip %d: %v", f.Segment, f.Strip, f.Kind)
}

// inspect says what is wrong with a frame whose checksum failed.
func (v *Version) inspect(frame []byte, identity uint64, segment, strip int) Kind {
	t := frame[len(frame)-TrailerBytes:]
	atSegment, atStrip := binary.LittleEndian.Uint32(t[8:]), binary.LittleEndian.Uint16(t[12:])
	switch {
	case binary.LittleEndian.Uint64(t) != identity,
		binary.LittleEndian.Uint16(t[14:]) != frameFormat,
		int64(atSegment) >= int64(v.Shape.Segments()), int(atStrip) >= v.Shape.N:
		return Foreign
	case int(atSegment) != segment || int(atStrip) != strip:
		return Misplaced
	}
	return Damaged
}

// Owns tells whether bytes end in a trailer of this version, and of which position. It
// proves nothing of the content: it is for telling orphans from chunks in use.
func (v *Version) Owns(frame []byte) (segment, strip int, ok bool) {
	if len(frame) < TrailerBytes {
		return 0, 0, false
	}
	id := identity(v.Key, v.ID)
	if v.inspect(frame, id, -1, -1) == Foreign {
		return 0, 0, false
	}
	t := frame[len(frame)-TrailerBytes:]
	return int(binary.LittleEndian.Uint32(t[8:])), int(binary.LittleEndian.Uint16(t[12:])), true
}
