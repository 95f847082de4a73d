package placement

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/cespare/xxhash/v2"
)

// reader reads what writer wrote. After the first error everything is 0.
type reader struct {
	in       io.Reader
	buf      []byte
	pos, end int // what is left is buf[pos:end]
	sum      *xxhash.Digest
	hashed   int  // buf[:hashed] is in sum
	first    bool // the format is that of firstMagic
	err      error
}

func newReader(in io.Reader) *reader {
	return &reader{in: in, buf: make([]byte, 256<<10), sum: xxhash.New()}
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
	r.pos, r.end = 0, 0
}

// total returns the sum of all that was read so far.
func (r *reader) total() uint64 {
	if r.err != nil {
		return 0
	}
	_, _ = r.sum.Write(r.buf[r.hashed:r.pos]) // never fails
	r.hashed = r.pos
	return r.sum.Sum64()
}

// need makes n bytes ready, or as many as there are; n is small. It returns how
// many there are.
func (r *reader) need(n int) int {
	if r.end-r.pos >= n || r.err != nil {
		return r.end - r.pos
	}
	r.total()
	r.end = copy(r.buf, r.buf[r.pos:r.end])
	r.pos, r.hashed = 0, 0
	for r.end < n {
		m, err := r.in.Read(r.buf[r.end:])
		r.end += m
		if err != nil {
			if err != io.EOF {
				r.fail("read: %w", err)
			}
			break
		}
	}
	return r.end - r.pos
}

// raw returns the next n bytes, good until the next call; zeros if they aren't
// there.
func (r *reader) raw(n int) []byte {
	if n > len(r.buf) {
		r.total()
		r.buf = append(make([]byte, 0, n+64<<10), r.buf...)[:n+64<<10]
	}
	if r.need(n) < n {
		r.fail("it ends early: %w", io.ErrUnexpectedEOF)
		return make([]byte, n)
	}
	r.pos += n
	return r.buf[r.pos-n : r.pos]
}

func (r *reader) byte() byte { return r.raw(1)[0] }

func (r *reader) uint() uint64 {
	r.need(binary.MaxVarintLen64)
	v, n := binary.Uvarint(r.buf[r.pos:r.end])
	if n <= 0 {
		r.fail("a number is cut or too large")
		return 0
	}
	r.pos += n
	return v
}

func (r *reader) int() int64 {
	v := r.uint()
	x := int64(v >> 1)
	if v&1 != 0 {
		x = ^x
	}
	return x
}

// below reads a number that must be less than n.
func (r *reader) below(n uint64, what string) uint64 {
	v := r.uint()
	if v >= n {
		r.fail("%s is %d, must be below %d", what, v, n)
		return 0
	}
	return v
}

func (r *reader) text() string  { return string(r.raw(int(r.below(1<<20, "length of a text")))) }
func (r *reader) short() uint32 { return binary.LittleEndian.Uint32(r.raw(4)) }
func (r *reader) fixed() uint64 { return binary.LittleEndian.Uint64(r.raw(8)) }

// Restore replaces the state by the one that a snapshot holds, of this
// configuration or of an earlier one: sites are found by name, and data at a
// site that the configuration no longer names stays known there. Imported
// locations and friends of the configuration play no part: they were taken in
// when the state began.
func (t *Policy) Restore(in io.Reader) error {
	t.imports = nil
	r := newReader(in)
	got := string(r.raw(len(magic)))
	if r.err == nil && got != magic && got != firstMagic {
		return fmt.Errorf("%w: it begins with %q, must begin with %q", ErrSnapshot, got, magic)
	}
	r.first = got == firstMagic
	s := newState(t.config.Sites)
	site := s.readSites(r)
	s.now, s.lastCase = r.int(), caseOf(r.byte())
	if int(s.lastCase) >= len(caseNames) {
		r.fail("case is %d", s.lastCase)
	}
	s.planned, s.forgotten = r.int(), r.int()
	evacuated, loads := s.readLoads(r, site)
	s.readPromises(r, site, loads)
	n := s.readNames(r, site)
	s.readSocial(r, n)
	for i, count := uint64(0), r.uint(); i < count && r.err == nil; i++ {
		h := doneMove{window: r.int(), owner: int32(r.below(uint64(n), "owner"))}
		h.from, h.to = site[r.below(uint64(len(site)), "site")], site[r.below(uint64(len(site)), "site")]
		s.history = append(s.history, h)
	}
	var want sums
	want.a, want.b = r.fixed(), r.fixed()
	sum := r.total()
	if got := r.fixed(); r.err == nil && got != sum {
		r.fail("its sum is %x, must be %x", got, sum)
	}
	if r.err != nil {
		return fmt.Errorf("%w: %w", ErrSnapshot, r.err)
	}
	return t.adopt(s, want, evacuated)
}

// adopt makes a state that was read the policy's.
func (t *Policy) adopt(s *state, want sums, evacuated []bool) error {
	s.recount(t.workers)
	if s.digest.set != want {
		return fmt.Errorf("%w: the digest of what was read is not the one it names", ErrSnapshot)
	}
	t.state = s
	t.near, t.rule, t.want, t.placeMoved, t.last = nil, nil, nil, nil, lastPlan{}
	t.evacuated = evacuated
	t.follow()
	inBlocks(t.workers, s.names.len(), func(_, lo, hi int) {
		for id := int32(lo); id < int32(hi); id++ {
			t.keepDistances(id)
		}
	})
	return nil
}

// readSites returns the numbers here of the sites of the snapshot, by theirs.
func (s *state) readSites(r *reader) []uint16 {
	number := []uint16{0}
	for i, n := uint64(0), r.below(math.MaxUint16, "number of sites"); i < n && r.err == nil; i++ {
		number = append(number, s.siteNumber(r.text()))
	}
	return number
}

// readLoads reads the figures of sites and returns which were being emptied, and
// of how many sites there are figures.
func (s *state) readLoads(r *reader, site []uint16) (evacuated []bool, n uint64) {
	evacuated = make([]bool, len(s.observed)-1)
	n = r.below(uint64(len(site))+1, "number of loads")
	for i := uint64(0); i < n && r.err == nil; i++ {
		observed, expected, empty := r.int(), r.int(), r.byte() == 1
		if to := int(site[i]); to > 0 && to < len(s.observed) {
			s.observed[to], s.expected[to], evacuated[to-1] = observed, expected, empty
		}
	}
	return evacuated, n
}

// readPromises reads what writePromises wrote. A promise of a site that the
// configuration no longer names is forgotten.
func (s *state) readPromises(r *reader, site []uint16, n uint64) {
	if r.first {
		return
	}
	p := &s.promises
	p.badMoves, p.badSites = r.byte(), r.byte()
	p.ended, p.bad, p.total = r.int(), r.int(), r.int()
	for i := uint64(0); i < n && r.err == nil; i++ {
		load, price := r.int(), math.Float64frombits(r.fixed())
		if to := int(site[i]); to > 0 && to < len(p.loads) {
			p.loads[to], s.prices[to] = load, price
		}
	}
	if p.badMoves >= brokenWindows || p.badSites >= brokenWindows {
		r.fail("%d and %d windows in a row broke promises", p.badMoves, p.badSites)
	}
}

// readNames reads the columns, ids in byte order of names: id and rank are one.
func (s *state) readNames(r *reader, site []uint16) int {
	n := int(r.below(math.MaxInt32, "number of ids"))
	var last string
	for i := 0; i < n && r.err == nil; i++ {
		name := r.text()
		if i > 0 && name <= last {
			r.fail("id %.80q comes after %.80q", name, last)
			break
		}
		last = name
		s.names.append(name)
		// Columns grow in steps, as far as bytes are there: a damaged count must
		// not take memory for what never comes.
		if len(s.flags) < s.names.len() {
			s.growTo(min(n, max(1024, 2*len(s.flags))))
		}
		s.readID(r, int32(i), site)
	}
	if r.err == nil {
		s.growTo(n)
	}
	return n
}

func (s *state) readID(r *reader, id int32, site []uint16) {
	flags, has, why := r.byte(), r.byte(), r.byte()
	if flags&^lasting != 0 || has&^(hasPlace|hasMove) != 0 || why >= byte(codes) {
		r.fail("id %d has flags %x, parts %x, reason %d", id, flags, has, why)
		return
	}
	s.flags[id], s.why[id] = flags|stale, Code(why)
	s.site[id] = site[r.below(uint64(len(site)), "site")]
	s.stored[id], s.traffic[id] = r.int(), r.int()
	if has&hasPlace != 0 {
		s.at[id] = r.int()
		s.lat[id], s.lon[id] = math.Float32frombits(r.short()), math.Float32frombits(r.short())
		s.x[id], s.y[id], s.z[id] = r.int(), r.int(), r.int()
		if !finite(s.lat[id]) || !finite(s.lon[id]) {
			r.fail("id %d has a place that is none", id)
		}
	}
	if has&hasMove != 0 {
		m := s.record(id)
		m.version, m.window, m.changed, m.bytes = r.uint(), r.int(), r.int(), r.int()
		m.from, m.to = site[r.below(uint64(len(site)), "site")], site[r.below(uint64(len(site)), "site")]
		m.status, m.code = r.byte(), Code(r.byte())
		if !r.first {
			m.fails = r.byte()
		}
		if m.fails > 0 {
			m.failed = r.int()
		}
		if int(m.status) >= len(statusNames) || m.code >= codes {
			r.fail("id %d has a move of status %d and reason %d", id, m.status, m.code)
		}
	}
}

func (s *state) readSocial(r *reader, n int) {
	e := &s.social
	if r.err == nil {
		e.start = make([]int64, n+1)
	}
	for id := int32(0); int(id) < n && r.err == nil; id++ {
		last := int64(-1)
		for i, count := uint64(0), r.below(uint64(n)+1, "number of users"); i < count && r.err == nil; i++ {
			user := last + int64(r.below(uint64(n)+1, "user"))
			level := r.uint()
			if user <= last || user >= int64(n) || level == 0 || level > math.MaxInt64 {
				r.fail("user %d of id %d has level %d", user, id, level)
				return
			}
			last = user
			e.list = append(e.list, edge{})
			e.put(id, int64(len(e.list)-1), int32(user), int64(level))
		}
		e.start[id+1] = int64(len(e.list))
	}
}
