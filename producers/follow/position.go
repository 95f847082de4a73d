package follow

import (
	"encoding/binary"
	"fmt"
)

// positionVersion is the first byte of a position.
const positionVersion = 1

// known is what of a stream survives a crash.
type known struct {
	pattern    string // the glob that matched
	path, real string // as matched; with symbolic links followed
	state      state
	id         fileID // none once other content lies there
	head, tail fingerprint
	start      []byte // the first of head's bytes
	from       spot   // where reading goes on
	offset     int64  // up to which rows are published; at least from
	within     int64  // records of the line there that are published too
	last       int64  // greatest time of a row in time, µs; 0 none
	since      int64  // µs: rotated files that changed later are of this family's time
	rested     int64  // µs: when it was done
	good       bool   // a line was a row
}

// spot is a place in a stream between two lines.
type spot struct {
	offset   int64
	lines    int64
	skipping bool // in the middle of a line that is too long
}

// position is what is committed with the rows.
type position struct {
	horizon int64 // µs
	scanned int64 // µs: when the folders were last looked at
	streams []known
}

func (p *position) append(b []byte) []byte {
	b = append(b, positionVersion)
	b = binary.AppendVarint(b, p.horizon)
	b = binary.AppendVarint(b, p.scanned)
	b = binary.AppendUvarint(b, uint64(len(p.streams)))
	for i := range p.streams {
		b = p.streams[i].append(b)
	}
	return b
}

func (k *known) append(b []byte) []byte {
	b = appendText(appendText(appendText(b, k.pattern), k.path), k.real)
	flags := byte(0)
	if k.good {
		flags |= 1
	}
	if k.from.skipping {
		flags |= 2
	}
	b = appendText(b, string(k.start))
	b = append(b, byte(k.state), flags)
	for _, u := range [...]uint64{
		k.id.dev, k.id.ino, uint64(k.head.length), k.head.sum, uint64(k.tail.length), k.tail.sum,
		uint64(k.from.offset), uint64(k.from.lines), uint64(k.offset), uint64(k.within),
	} {
		b = binary.AppendUvarint(b, u)
	}
	for _, v := range [...]int64{k.last, k.since, k.rested} {
		b = binary.AppendVarint(b, v)
	}
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// parsePosition reads what append wrote. No bytes are the very first start.
func parsePosition(b []byte) (position, error) {
	var p position
	if len(b) == 0 {
		return p, nil
	}
	if b[0] != positionVersion {
		return p, fmt.Errorf("version %d, expected %d: %w", b[0], positionVersion, ErrPosition)
	}
	r := reader{b: b[1:]}
	p.horizon, p.scanned = r.int(), r.int()
	for n := r.uint(); n > 0 && !r.bad; n-- {
		p.streams = append(p.streams, r.known())
	}
	if r.bad || len(r.b) > 0 {
		return position{}, fmt.Errorf("%d bytes: %w", len(b), ErrPosition)
	}
	return p, nil
}

// reader reads fields; bad once one was none.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) known() (k known) {
	k.pattern, k.path, k.real = r.text(), r.text(), r.text()
	k.start = []byte(r.text())
	k.state = state(r.byte())
	flags := r.byte()
	k.good, k.from.skipping = flags&1 != 0, flags&2 != 0
	k.id = fileID{r.uint(), r.uint()}
	k.head = fingerprint{int(r.uint()), r.uint()}
	k.tail = fingerprint{int(r.uint()), r.uint()}
	k.from.offset, k.from.lines, k.offset, k.within = int64(r.uint()), int64(r.uint()), int64(r.uint()), int64(r.uint())
	k.last, k.since, k.rested = r.int(), r.int(), r.int()
	r.bad = r.bad || k.state > done || k.head.length < 0 || k.head.length > headMost || k.tail.length < 0 ||
		k.tail.length > tailMost || k.from.offset < 0 || k.from.lines < 0 || k.within < 0 || k.offset < k.from.offset
	return k
}

func (r *reader) byte() byte {
	if len(r.b) == 0 {
		r.bad = true
		return 0
	}
	v := r.b[0]
	r.b = r.b[1:]
	return v
}

func (r *reader) uint() uint64 {
	v, n := binary.Uvarint(r.b)
	return advance(r, v, n)
}

func (r *reader) int() int64 {
	v, n := binary.Varint(r.b)
	return advance(r, v, n)
}

func advance[T any](r *reader, v T, n int) T {
	var zero T
	if n <= 0 {
		r.bad, r.b = true, nil
		return zero
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) text() string {
	n := r.uint()
	if n > uint64(len(r.b)) {
		r.bad, r.b = true, nil
		return ""
	}
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}
