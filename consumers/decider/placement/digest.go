package placement

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/bits"

	"github.com/cespare/xxhash/v2"
)

// sums is a hash of a set: the sum of the hashes of its members, twice over, so
// that members come and go in any order and from any worker at a few
// nanoseconds each.
type sums struct{ a, b uint64 }

func (s *sums) add(h uint64)  { s.a += h; s.b += mix(h, 0x9e3779b97f4a7c15) }
func (s *sums) drop(h uint64) { s.a -= h; s.b -= mix(h, 0x9e3779b97f4a7c15) }
func (s *sums) join(o sums)   { s.a += o.a; s.b += o.b }

// digest is the incremental digest of a state.
type digest struct {
	set   sums
	names []uint64 // hashes of site names by number; [0] is none
}

func (d *digest) sites(names []string) {
	d.names = make([]uint64, len(names)+1)
	for i, n := range names {
		d.names[i+1] = xxhash.Sum64String(n)
	}
}

// mix folds a word into a hash.
func mix(h, v uint64) uint64 {
	hi, lo := bits.Mul64(h^0xa0761d6478bd642f, v^0xe7037ed1a0b428db)
	return hi ^ lo ^ bits.RotateLeft64(h, 29) ^ v
}

// What a member of the set is about: the first word of its hash.
const (
	aboutOwner = iota + 1
	aboutPlace
	aboutMove
	aboutSocial
	aboutHistory
)

func member(about, name uint64, words ...uint64) uint64 {
	h := mix(about*0x2545f4914f6cdd1d, name)
	for _, w := range words {
		h = mix(h, w)
	}
	return h
}

// ownerHash is the member for an owner's data: where, what, how it came there.
// It is 0, that is nothing, for an id that has no data.
func (s *state) ownerHash(id int32) uint64 {
	f := s.flags[id]
	if f&isOwner == 0 {
		return 0
	}
	return member(aboutOwner, s.names.hash[id], s.digest.names[s.site[id]], uint64(s.stored[id]), uint64(f&(pinned|matched|imported|moved)))
}

// placeHash is the member for where a user is, 0 if it was never located.
func (s *state) placeHash(id int32) uint64 {
	if s.at[id] == noTime && s.x[id] == 0 && s.y[id] == 0 && s.z[id] == 0 {
		return 0
	}
	spot := uint64(math.Float32bits(s.lat[id]))<<32 | uint64(math.Float32bits(s.lon[id]))
	return member(aboutPlace, s.names.hash[id], uint64(s.at[id]), spot, uint64(s.x[id]), uint64(s.y[id]), uint64(s.z[id]))
}

// moveHash is the member for an owner's move record, 0 if it has none.
func (s *state) moveHash(id int32) uint64 {
	if s.move[id] < 0 {
		return 0
	}
	m := &s.moves[s.move[id]]
	h := member(aboutMove, s.names.hash[id], m.version, uint64(m.window), uint64(m.changed), uint64(m.bytes),
		s.digest.names[m.from], s.digest.names[m.to], uint64(m.status)<<8|uint64(m.code))
	if m.fails == 0 {
		return h
	}
	return mix(mix(h, uint64(m.fails)), uint64(m.failed))
}

// pairHash begins the member for a social level, and levelHash ends it: 0 for
// level 0.
func (s *state) pairHash(owner, user int32) uint64 {
	return mix(mix(aboutSocial, s.names.hash[owner]), s.names.hash[user])
}

func levelHash(pair uint64, level int64) uint64 {
	if level == 0 {
		return 0
	}
	return mix(pair, uint64(level))
}

func (s *state) historyHash(h doneMove) uint64 {
	return member(aboutHistory, s.names.hash[h.owner], uint64(h.window), s.digest.names[h.from], s.digest.names[h.to])
}

// swap replaces a member of the set.
func (s *sums) swap(before, after uint64) {
	if before != 0 {
		s.drop(before)
	}
	if after != 0 {
		s.add(after)
	}
}

// changeOwner does f and keeps the digest right for what it changes of one
// owner's data; changeMove likewise for its move record.
func (s *state) changeOwner(id int32, f func()) {
	before := s.ownerHash(id)
	f()
	s.digest.set.swap(before, s.ownerHash(id))
}

func (s *state) changeMove(id int32, f func(*moveRecord)) {
	before := s.moveHash(id)
	f(s.record(id))
	s.digest.set.swap(before, s.moveHash(id))
}

// recount computes the set from nothing.
func (s *state) recount(workers int) {
	parts := make([]sums, workers)
	inParts(workers, s.names.len(), func(w, lo, hi int) {
		p := &parts[w]
		for id := int32(lo); id < int32(hi); id++ {
			p.swap(0, s.ownerHash(id))
			p.swap(0, s.placeHash(id))
			p.swap(0, s.moveHash(id))
			for i := s.social.start[id]; i < s.social.start[id+1]; i++ {
				p.swap(0, levelHash(s.pairHash(id, s.social.list[i].user), s.social.at(id, i)))
			}
		}
	})
	s.digest.set = sums{}
	for _, p := range parts {
		s.digest.set.join(p)
	}
	for _, h := range s.history {
		s.digest.set.add(s.historyHash(h))
	}
}

// Digest returns "sha256:" and the digest of the state: places, locations,
// versions, moves, failures in a row, social levels, the case of the last
// window, the history for rollbacks, and, of policy optimal, windows in a row
// that broke promises: tmatch has the digests that it had before there were any,
// so that what it recorded then is decided again. It takes the same time however
// large the state is.
func (t *Policy) Digest() string {
	t.takeImports()
	s := t.state
	words := []uint64{s.digest.set.a, s.digest.set.b, uint64(s.now), uint64(s.lastCase), uint64(s.forgotten)}
	if p := &s.promises; t.config.Policy == Optimal && (p.badMoves > 0 || p.badSites > 0) {
		words = append(words, uint64(p.badMoves)<<8|uint64(p.badSites))
	}
	h := sha256.New()
	var b [8]byte
	for _, w := range words {
		binary.LittleEndian.PutUint64(b[:], w)
		h.Write(b[:])
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}
