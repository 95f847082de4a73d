package placement

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/cespare/xxhash/v2"
)

// magic names the format and its version; firstMagic is the version before
// failures in a row, promises and prices, which is read too.
const (
	magic      = "penstock/placement/2\n"
	firstMagic = "penstock/placement/1\n"
)

// lasting are the flags that are in a snapshot; the others follow from the rest.
const lasting = isOwner | pinned | matched | imported | moved

// What follows a name in a snapshot.
const (
	hasPlace = 1 << iota
	hasMove
)

// writer writes numbers and texts and adds up what it wrote. The first error
// stays; what comes after it goes nowhere.
type writer struct {
	w   io.Writer
	sum *xxhash.Digest
	buf []byte
	err error
}

func (w *writer) flush() {
	if w.err == nil {
		_, _ = w.sum.Write(w.buf) // never fails
		_, w.err = w.w.Write(w.buf)
	}
	w.buf = w.buf[:0]
}

func (w *writer) room() {
	if len(w.buf) > 60<<10 {
		w.flush()
	}
}

func (w *writer) uint(v uint64)   { w.buf = binary.AppendUvarint(w.buf, v) }
func (w *writer) int(v int64)     { w.buf = binary.AppendVarint(w.buf, v) }
func (w *writer) fixed(v uint64)  { w.buf = binary.LittleEndian.AppendUint64(w.buf, v) }
func (w *writer) short(v uint32)  { w.buf = binary.LittleEndian.AppendUint32(w.buf, v) }
func (w *writer) text(v string)   { w.uint(uint64(len(v))); w.buf = append(w.buf, v...); w.room() }
func (w *writer) bytes(v ...byte) { w.buf = append(w.buf, v...) }

// Snapshot writes the state, ids in byte order: equal states have equal bytes,
// however they came about.
func (t *Policy) Snapshot(out io.Writer) error {
	t.takeImports()
	s := t.state
	w := &writer{w: out, sum: xxhash.New(), buf: make([]byte, 0, 64<<10)}
	w.bytes([]byte(magic)...)
	w.uint(uint64(len(s.siteNames)))
	for _, n := range s.siteNames {
		w.text(n)
	}
	w.int(s.now)
	w.bytes(byte(s.lastCase))
	w.int(s.planned)
	w.int(s.forgotten)
	w.uint(uint64(len(s.observed)))
	for i := range s.observed {
		w.int(s.observed[i])
		w.int(s.expected[i])
		if i > 0 && t.evacuated[i-1] {
			w.bytes(1)
		} else {
			w.bytes(0)
		}
	}
	s.writePromises(w)
	w.uint(uint64(s.names.len()))
	for _, id := range s.names.sorted {
		s.writeID(w, id)
	}
	for _, id := range s.names.sorted {
		s.writeSocial(w, id)
	}
	w.uint(uint64(len(s.history)))
	for _, h := range s.history {
		w.int(h.window)
		w.uint(uint64(s.names.rank[h.owner]))
		w.uint(uint64(h.from))
		w.uint(uint64(h.to))
		w.room()
	}
	w.fixed(s.digest.set.a)
	w.fixed(s.digest.set.b)
	w.flush()
	w.buf = binary.LittleEndian.AppendUint64(w.buf, w.sum.Sum64())
	w.flush()
	if w.err != nil {
		return fmt.Errorf("write placement snapshot: %w", w.err)
	}
	return nil
}

func (s *state) writeID(w *writer, id int32) {
	w.text(s.names.at(id))
	var has byte
	if s.placeHash(id) != 0 {
		has |= hasPlace
	}
	if s.move[id] >= 0 {
		has |= hasMove
	}
	w.bytes(s.flags[id]&lasting, has, byte(s.why[id]))
	w.uint(uint64(s.site[id]))
	w.int(s.stored[id])
	w.int(s.traffic[id])
	if has&hasPlace != 0 {
		w.int(s.at[id])
		w.short(math.Float32bits(s.lat[id]))
		w.short(math.Float32bits(s.lon[id]))
		w.int(s.x[id])
		w.int(s.y[id])
		w.int(s.z[id])
	}
	if has&hasMove != 0 {
		m := &s.moves[s.move[id]]
		w.uint(m.version)
		w.int(m.window)
		w.int(m.changed)
		w.int(m.bytes)
		w.uint(uint64(m.from))
		w.uint(uint64(m.to))
		w.bytes(m.status, byte(m.code), m.fails)
		if m.fails > 0 {
			w.int(m.failed)
		}
	}
	w.room()
}

// writePromises writes what was promised and what became of it, and the prices
// of the last plan, by site number.
func (s *state) writePromises(w *writer) {
	p := &s.promises
	w.bytes(p.badMoves, p.badSites)
	w.int(p.ended)
	w.int(p.bad)
	w.int(p.total)
	for i, load := range p.loads {
		w.int(load)
		w.fixed(math.Float64bits(s.prices[i]))
	}
}

// writeSocial writes an owner's users as steps of rank: 1 to 2 bytes each.
func (s *state) writeSocial(w *writer, id int32) {
	lo, hi := s.social.of(id)
	w.uint(uint64(hi - lo))
	last := int32(-1)
	for i := lo; i < hi; i++ {
		rank := s.names.rank[s.social.list[i].user]
		w.uint(uint64(rank - last))
		w.uint(uint64(s.social.at(id, i)))
		last = rank
		w.room()
	}
	w.room()
}
