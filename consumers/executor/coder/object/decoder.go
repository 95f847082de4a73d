package object

import (
	"fmt"
	"io"
	"slices"
)

// Decoder gives back segments of one version from any K whole strips, and rebuilds
// strips that are lost. It keeps N/K times a segment of memory. One goroutine uses it,
// but different goroutines may write different strips of Room.
type Decoder struct {
	version  *Version
	identity uint64
	slab     slab
	segment  int
	begun    bool
	state    []Kind   // of each strip; 0 is whole
	whole    int      // strips that are whole
	wanted   []bool   // strips that the coder is to rebuild
	order    [][]byte // sources and wanted strips, as a plan takes them
	faults   []Fault
}

// NewDecoder makes a decoder of a version. It returns what Validate does.
func NewDecoder(v *Version) (*Decoder, error) {
	d := &Decoder{}
	return d, d.Reset(v)
}

// Reset turns the decoder to another version and keeps its memory. It returns what
// Validate does.
func (d *Decoder) Reset(v *Version) error {
	if err := v.Validate(); err != nil {
		return err
	}
	d.version, d.identity, d.begun = v, identity(v.Key, v.ID), false
	d.slab.layout = v.Shape.Layout
	d.state = slices.Grow(d.state[:0], v.Shape.N)[:v.Shape.N]
	d.wanted = slices.Grow(d.wanted[:0], v.Shape.N)[:v.Shape.N]
	return nil
}

// Begin turns to a segment, all of whose strips are missing then. It returns ErrRange
// if the version doesn't have it.
func (d *Decoder) Begin(segment int) error {
	if segment < 0 || segment >= d.version.Shape.Segments() {
		return fmt.Errorf("%w: segment %d of %d", ErrRange, segment, d.version.Shape.Segments())
	}
	d.segment, d.begun, d.whole = segment, true, 0
	d.slab.fit(d.version.Shape.N, d.version.Shape.StripBytes(segment))
	for i := range d.state {
		d.state[i] = Missing
	}
	return nil
}

// check returns ErrState before Begin and ErrRange for strips that there aren't.
func (d *Decoder) check(first, count int) error {
	switch {
	case !d.begun:
		return fmt.Errorf("%w: no segment was begun", ErrState)
	case first < 0 || count < 1 || first > len(d.state)-count,
		d.slab.layout == Spread && count > 1:
		return fmt.Errorf("%w: strips %d and %d after it of %d", ErrRange, first, count-1, len(d.state))
	}
	return nil
}

// Room is the memory for the frames of count strips from first: what a store answers is
// to be read into it and then told with Fill. It is nil for strips that there aren't.
// Whoever writes to it must have ended before the next Begin, WriteRange or Repair, a
// task that was cancelled among them, since rebuilt strips are written there too; and
// must not write to strips that are whole already. Where that can't be had, Add takes
// bytes from elsewhere.
func (d *Decoder) Room(first, count int) []byte {
	if d.check(first, count) != nil {
		return nil
	}
	return d.slab.frames(first, count)
}

// Fill takes in count strips from first, of whose frames got bytes stand in Room. It
// returns what is wrong with them, nil if nothing is; the slice is valid until the next
// call. Strips that were whole before stay so only if they are whole again.
func (d *Decoder) Fill(first, count int, got int64) ([]Fault, error) {
	if err := d.check(first, count); err != nil {
		return nil, err
	}
	d.faults = d.faults[:0]
	frame := int64(d.slab.strip + TrailerBytes)
	sums := d.version.Sums[d.segment*d.version.Shape.N:]
	for i := first; i < first+count; i++ {
		var kind Kind
		switch {
		case got <= 0:
			kind = Missing
		case got < frame:
			kind = Truncated
		default:
			if f := d.slab.frames(i, 1); sumOf(f) != sums[i] {
				kind = d.version.inspect(f, d.identity, d.segment, i)
			}
		}
		got -= frame
		d.set(i, kind)
		if kind != 0 {
			d.faults = append(d.faults, Fault{d.segment, i, kind})
		}
	}
	return d.faults, nil
}

// set notes the state of a strip.
func (d *Decoder) set(i int, kind Kind) {
	if d.state[i] == 0 {
		d.whole--
	}
	if kind == 0 {
		d.whole++
	}
	d.state[i] = kind
}

// Add is Fill for bytes that stand elsewhere: it copies them to Room first. Strips that
// are whole already are left alone, and what is beyond count frames is ignored.
func (d *Decoder) Add(first, count int, frames []byte) ([]Fault, error) {
	if err := d.check(first, count); err != nil {
		return nil, err
	}
	var faults []Fault
	frame := d.slab.strip + TrailerBytes
	for i := first; i < first+count; i++ {
		if d.state[i] != 0 {
			copy(d.slab.frames(i, 1), frames)
			found, err := d.Fill(i, 1, int64(len(frames)))
			if err != nil {
				return faults, err
			}
			faults = append(faults, found...)
		}
		frames = frames[min(frame, len(frames)):]
	}
	return faults, nil
}

// Lacking is how many whole strips decoding still needs; 0 is ready.
func (d *Decoder) Lacking() int { return max(0, d.version.Shape.K-d.whole) }

// Faults appends what is wrong with the strips of the segment, those that nobody asked
// for among them as Missing.
func (d *Decoder) Faults(faults []Fault) []Fault {
	if !d.begun {
		return faults
	}
	for i, kind := range d.state {
		if kind != 0 {
			faults = append(faults, Fault{d.segment, i, kind})
		}
	}
	return faults
}

// WriteRange writes bytes from … to−1 of the segment. Strips that hold them and aren't
// whole are rebuilt; the others aren't needed. It returns ErrTooFew, ErrMismatch or
// ErrRange before the first byte, and the writer's error after those that it took.
func (d *Decoder) WriteRange(w io.Writer, from, to int64) (int64, error) {
	if !d.begun {
		return 0, fmt.Errorf("%w: no segment was begun", ErrState)
	}
	if from < 0 || to < from || to > d.version.Shape.SegmentBytes(d.segment) {
		return 0, fmt.Errorf("%w: bytes %d to %d of segment %d", ErrRange, from, to, d.segment)
	}
	if from == to {
		return 0, nil
	}
	strip := int64(d.slab.strip)
	first, last := int(from/strip), int((to-1)/strip)
	if err := d.rebuild(first, last-first+1); err != nil {
		return 0, err
	}
	done := int64(0)
	for i := first; i <= last; i++ {
		start := int64(i) * strip
		n, err := w.Write(d.slab.strips[i][max(from-start, 0):min(to-start, strip)])
		done += int64(n)
		if err != nil {
			return done, fmt.Errorf("write: %w", err)
		}
	}
	return done, nil
}

// Repair rebuilds count strips from first, parity or data, and returns their frames:
// bit by bit what the encoder gave, which their checksums prove. They are valid until
// the next Begin. It returns ErrTooFew or ErrMismatch.
func (d *Decoder) Repair(first, count int) ([]byte, error) {
	if err := d.check(first, count); err != nil {
		return nil, err
	}
	if err := d.rebuild(first, count); err != nil {
		return nil, err
	}
	return d.slab.frames(first, count), nil
}

// rebuild makes count strips from first whole.
func (d *Decoder) rebuild(first, count int) error {
	lost := 0
	for i := range d.state {
		d.wanted[i] = i >= first && i < first+count && d.state[i] != 0
		if d.wanted[i] {
			lost++
		}
	}
	if lost == 0 {
		return nil
	}
	if d.Lacking() > 0 {
		return fmt.Errorf("%w: segment %d has %d of %d", ErrTooFew, d.segment, d.whole, d.version.Shape.K)
	}
	if err := d.solve(); err != nil {
		return err
	}
	sums := d.version.Sums[d.segment*d.version.Shape.N:]
	for i, wanted := range d.wanted {
		if !wanted {
			continue
		}
		f := d.slab.frames(i, 1)
		trail(f, d.identity, d.segment, i)
		if sumOf(f) != sums[i] {
			return fmt.Errorf("%w: segment %d strip %d", ErrMismatch, d.segment, i)
		}
		d.set(i, 0)
	}
	return nil
}

// solve writes the wanted strips from the first K whole ones.
func (d *Decoder) solve() error {
	if d.version.Shape.K == 1 {
		whole := slices.Index(d.state, 0)
		for i, wanted := range d.wanted {
			if wanted {
				copy(d.slab.strips[i], d.slab.strips[whole])
			}
		}
		return nil
	}
	p := pattern{coderKey: coderKey{d.version.Shape.N, d.version.Shape.K}}
	d.order = d.order[:0]
	for i, kind := range d.state {
		if kind == 0 && len(d.order) < p.k {
			p.sources.add(i)
			d.order = append(d.order, d.slab.strips[i])
		}
	}
	for i, wanted := range d.wanted {
		if wanted {
			p.wanted.add(i)
			d.order = append(d.order, d.slab.strips[i])
		}
	}
	c, err := planOf(p)
	if err == nil {
		err = c.Encode(d.order)
	}
	if err != nil {
		return fmt.Errorf("rebuild segment %d: %w", d.segment, err)
	}
	return nil
}
