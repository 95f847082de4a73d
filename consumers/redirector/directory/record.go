package directory

import (
	"encoding/binary"
	"math"
	"time"

	"penstock/schemas/control"
)

// A record is an owner's location in an arena, written once and never changed:
//
//	owner    uvarint length, bytes
//	flags    bits 0–1 state, bit 2 pinned, bit 3 nanoseconds follow
//	site     uvarint, index in the table of names
//	version  uvarint
//	since    varint seconds since 1970, then uvarint nanoseconds if flagged
//
// An owner of 12 bytes that was moved a few times takes 21.

// maxOwner is the longest id (DESIGN §3), in bytes.
const maxOwner = 1024

// maxRecord is the most bytes that a record takes.
const maxRecord = maxOwner + 2 + 1 + 4*binary.MaxVarintLen64

const (
	flagState  = 0b11
	flagPinned = 1 << 2
	flagNanos  = 1 << 3
	flagAll    = flagState | flagPinned | flagNanos
)

var states = [...]control.LocationState{control.Live, control.Moving, control.Retired}

// place is a location with its site as an index.
type place struct {
	site    uint32
	version uint64
	state   uint8
	pinned  bool
	since   time.Time
}

// appendRecord appends the record of an owner.
func appendRecord(b []byte, owner string, p place) []byte {
	b = binary.AppendUvarint(b, uint64(len(owner)))
	b = append(b, owner...)
	flags := p.state
	if p.pinned {
		flags |= flagPinned
	}
	nanos := p.since.Nanosecond()
	if nanos != 0 {
		flags |= flagNanos
	}
	b = append(b, flags)
	b = binary.AppendUvarint(b, uint64(p.site))
	b = binary.AppendUvarint(b, p.version)
	b = binary.AppendVarint(b, p.since.Unix())
	if nanos != 0 {
		b = binary.AppendUvarint(b, uint64(nanos))
	}
	return b
}

// ownerOf returns the owner of the record at the beginning of b and where its
// place begins. The record must be one that appendRecord made.
func ownerOf(b []byte) (owner []byte, at int) {
	if n := int(b[0]); n < 0x80 { // nearly every one
		return b[1 : 1+n], 1 + n
	}
	n, w := binary.Uvarint(b)
	return b[w : w+int(n)], w + int(n)
}

// placeOf reads what follows the owner, and returns its length.
func placeOf(b []byte) (p place, n int) {
	flags := b[0]
	p.state, p.pinned = flags&flagState, flags&flagPinned != 0
	n = 1
	site, w := binary.Uvarint(b[n:])
	p.site = uint32(site)
	n += w
	p.version, w = binary.Uvarint(b[n:])
	n += w
	sec, w := binary.Varint(b[n:])
	n += w
	var nanos uint64
	if flags&flagNanos != 0 {
		nanos, w = binary.Uvarint(b[n:])
		n += w
	}
	p.since = time.Unix(sec, int64(nanos)).UTC()
	return p, n
}

// whereOf reads site and version only: what a request needs.
func whereOf(b []byte) (site uint32, version uint64) {
	s, w := binary.Uvarint(b[1:])
	version, _ = binary.Uvarint(b[1+w:])
	return uint32(s), version
}

// recordLen is the length of the record at the beginning of b.
func recordLen(b []byte) int {
	_, at := ownerOf(b)
	n := at + 1
	skip := 3
	if b[at]&flagNanos != 0 {
		skip = 4
	}
	for ; skip > 0; n++ {
		if b[n] < 0x80 {
			skip--
		}
	}
	return n
}

// checkRecord reads a record that may be anything, such as one from a file. It
// must take all of b and be spelled as appendRecord spells it.
func checkRecord(b []byte) (owner []byte, p place, ok bool) {
	n, w := binary.Uvarint(b)
	if w <= 0 || n > maxOwner || uint64(len(b)-w) < n {
		return nil, place{}, false
	}
	at := w + int(n)
	owner, rest := b[w:at], b[at:]
	if len(rest) == 0 || rest[0]&^flagAll != 0 || int(rest[0]&flagState) >= len(states) {
		return nil, place{}, false
	}
	fields := 3
	if rest[0]&flagNanos != 0 {
		fields = 4
	}
	for at = 1; fields > 0; fields-- {
		v, w := binary.Uvarint(rest[at:])
		if w <= 0 || fields == 1 && rest[0]&flagNanos != 0 && (v == 0 || v >= 1e9) {
			return nil, place{}, false
		}
		at += w
	}
	if at != len(rest) {
		return nil, place{}, false
	}
	if s, _ := binary.Uvarint(rest[1:]); s > math.MaxUint32 {
		return nil, place{}, false
	}
	p, _ = placeOf(rest)
	return owner, p, string(appendRecord(nil, string(owner), p)) == string(b)
}
