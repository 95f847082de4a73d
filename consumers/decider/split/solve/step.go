package solve

import (
	"fmt"
	"math"
)

type entering uint8

const (
	nothing entering = iota
	aColumn
	fromTight // a tight replica takes less (down) or more
)

// entry is what enters the basis.
type entry struct {
	kind   entering
	column column
	tight  int // index in tight
	down   bool
}

// enter finds what makes the total less, and the most of it first.
func (p *programme) enter() entry {
	var out entry
	var most float64
	for i, r := range p.tight {
		s, k := p.pieces[r].slope, p.at[r]
		for _, try := range []struct {
			gain, slope float64
			down        bool
		}{{s[k-1] - p.price[r], s[k-1], true}, {p.price[r] - s[k], s[k], false}} {
			if worth := try.gain * p.pieces[r].ends[k]; try.gain > tolerance*(p.scale+try.slope) && worth > most {
				most, out = worth, entry{kind: fromTight, tight: i, down: try.down}
			}
		}
	}
	source := -1
	for i, c := range p.sources {
		gain := p.dual[i] - p.ways.source(c)
		if worth := gain * p.in.Choices[c].Rate; gain > tolerance*(p.scale+math.Abs(p.dual[i])) && worth > most {
			most, source = worth, c
		}
	}
	if source >= 0 {
		out = entry{kind: aColumn, column: p.column(p.ways, source)}
	}
	return out
}

// step moves along the edge of what enters until something leaves the basis.
func (p *programme) step(e *entry) error {
	s := len(p.sources)
	d := make([]float64, len(p.basic))
	own := -1
	if e.kind == aColumn {
		d[p.row[e.column.choice]] = -1
		for k, r := range p.tight {
			d[s+k] = -e.column.load[r]
		}
	} else {
		own = p.tight[e.tight]
		if d[s+e.tight] = 1; e.down {
			d[s+e.tight] = -1
		}
	}
	p.matrix.solve(d)
	change := p.changes(d, e, own)
	far, leaves, meets := math.Inf(1), -1, -1
	for i := range p.basic {
		if d[i] < -1e-11 {
			if t := p.basic[i].flow / -d[i]; t < far {
				far, leaves = t, i
			}
		}
	}
	for r, x := range change {
		if t := p.room(r, x, own); t < far {
			far, leaves, meets = t, -1, r
		}
	}
	if math.IsInf(far, 1) {
		return fmt.Errorf("an edge without an end: %w", ErrUnsolved)
	}
	p.swap(e, own, leaves, meets, change)
	return nil
}

// changes is how loads change along the edge, by replica; those of tight
// replicas other than own do not.
func (p *programme) changes(d []float64, e *entry, own int) []float64 {
	out := make([]float64, len(p.load))
	var size float64
	for i := range p.basic {
		size = max(size, math.Abs(d[i]))
		for r, x := range p.basic[i].load {
			if x != 0 {
				out[r] += float64(x * d[i])
			}
		}
	}
	if e.kind == aColumn {
		for r, x := range e.column.load {
			out[r] += x
		}
		size = max(size, 1)
	}
	for _, r := range p.tight {
		if r != own {
			out[r] = 0
		}
	}
	for r := range out {
		if math.Abs(out[r]) < 1e-11*size {
			out[r] = 0
		}
	}
	return out
}

// room is how far along the edge the load of r meets the end of its piece.
func (p *programme) room(r int, change float64, own int) float64 {
	if change == 0 || p.isTight[r] && r != own {
		return math.Inf(1)
	}
	ends, k := p.pieces[r].ends, p.at[r]
	low, high := k, k+1
	if r == own {
		// It stands at end k: pieces k−1 and k are on its sides.
		low = k - 1
	}
	switch {
	case change > 0 && high < len(ends):
		return max(0, (ends[high]-p.load[r])/change)
	case change < 0 && low > 0:
		return max(0, (ends[low]-p.load[r])/change)
	}
	return math.Inf(1)
}

// swap brings in what enters and takes out what leaves: the column leaves, or
// replica meets becomes tight.
func (p *programme) swap(e *entry, own, leaves, meets int, change []float64) {
	if own >= 0 && meets == own {
		// It goes from one end to the next and stays tight.
		if p.at[own]++; e.down {
			p.at[own] -= 2
		}
		return
	}
	if own >= 0 {
		p.isTight[own] = false
		if e.down {
			p.at[own]--
		}
		p.tight = append(p.tight[:e.tight], p.tight[e.tight+1:]...)
	}
	if meets >= 0 {
		if change[meets] > 0 {
			p.at[meets]++
		}
		p.isTight[meets] = true
		p.tight = append(p.tight, meets)
	}
	switch {
	case leaves >= 0 && e.kind == aColumn:
		p.basic[leaves] = e.column
	case leaves >= 0:
		p.basic = append(p.basic[:leaves], p.basic[leaves+1:]...)
	case e.kind == aColumn:
		p.basic = append(p.basic, e.column)
	}
}
