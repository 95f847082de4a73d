package ledger

import (
	"slices"

	"penstock/schemas/window"
)

// Bounds of what is kept above the contiguous sequence of a run (DESIGN §3,
// §3.2), and of the spans that are remembered as lost.
const (
	maxAbove  = 1024
	maxRanges = 64
	maxGaps   = 64
	maxLost   = 256
)

// Verdict says what a batch's sequence means.
type Verdict uint8

// The verdicts.
const (
	// Fresh was never seen: its rows are classed one by one.
	Fresh Verdict = iota
	// Found was given up as lost and came after all: its rows are late.
	Found
	// Duplicate was seen before.
	Duplicate
	// Retired belongs to a run that was forgotten, and is not known to be a
	// duplicate: it goes to REJECTS.
	Retired
)

// String names the verdict.
func (v Verdict) String() string {
	return [...]string{"fresh", "found", "duplicate", "retired"}[v]
}

// sequences is what is known of the sequences of one run. Every sequence from 1
// to top is contiguous (≤ contiguous), in above, or in gaps; above and gaps are
// sorted and disjoint, and gaps are ordered by when they opened too.
type sequences struct {
	contiguous uint64
	watermark  int64 // greatest header up to contiguous; NullInt if none
	above      []window.Range
	gaps       []window.Gap
	lost       []window.Span // sorted, disjoint, not adjacent
}

// top returns the highest sequence that is known of, received or not.
func (s *sequences) top() uint64 {
	t := s.contiguous
	if n := len(s.above); n > 0 {
		t = max(t, s.above[n-1].Last)
	}
	if n := len(s.gaps); n > 0 {
		t = max(t, s.gaps[n-1].Last)
	}
	return t
}

// highest returns the highest sequence that is there or was given up.
func (s *sequences) highest() uint64 {
	if n := len(s.above); n > 0 {
		return s.above[n-1].Last
	}
	return s.contiguous
}

// look returns what a batch of that sequence would be.
func (s *sequences) look(seq uint64) Verdict {
	if seq > s.contiguous {
		i, ok := slices.BinarySearchFunc(s.above, seq, func(r window.Range, seq uint64) int {
			return cmpSpan(r.First, r.Last, seq)
		})
		if !ok || i == len(s.above) {
			return Fresh
		}
	}
	if _, ok := findSpan(s.lost, seq); ok {
		return Found
	}
	return Duplicate
}

func cmpSpan(first, last, seq uint64) int {
	switch {
	case last < seq:
		return -1
	case first > seq:
		return 1
	}
	return 0
}

// know makes the sequences up to seq known, since the run has said so with that
// watermark: those that are new are missing since now.
func (s *sequences) know(seq uint64, watermark, now int64) {
	top := s.top()
	if seq <= top {
		return
	}
	if n := len(s.gaps); n > 0 && s.gaps[n-1].Last == top && s.gaps[n-1].Opened == now {
		s.gaps[n-1].Last = seq
		s.gaps[n-1].After = max(s.gaps[n-1].After, watermark)
		return
	}
	s.gaps = append(s.gaps, window.Gap{First: top + 1, Last: seq, Opened: now, After: watermark})
}

// receive takes a fresh sequence with its header's watermark.
func (s *sequences) receive(seq uint64, watermark, now int64) {
	if seq == s.contiguous+1 && len(s.gaps) == 0 && len(s.above) == 0 {
		s.contiguous = seq
		s.watermark = max(s.watermark, watermark)
		return
	}
	s.know(seq, watermark, now)
	s.fill(seq, seq, watermark)
}

// find takes a lost sequence that came after all.
func (s *sequences) find(seq uint64) {
	s.lost = without(s.lost, seq)
	s.boundLost()
}

// without returns the spans less one sequence.
func without(spans []window.Span, seq uint64) []window.Span {
	i, ok := findSpan(spans, seq)
	if !ok {
		return spans
	}
	l := spans[i]
	var rest []window.Span
	if l.First < seq {
		rest = append(rest, window.Span{First: l.First, Last: seq - 1})
	}
	if seq < l.Last {
		rest = append(rest, window.Span{First: seq + 1, Last: l.Last})
	}
	return slices.Replace(spans, i, i+1, rest...)
}

func findSpan(spans []window.Span, seq uint64) (int, bool) {
	return slices.BinarySearchFunc(spans, seq, func(l window.Span, seq uint64) int {
		return cmpSpan(l.First, l.Last, seq)
	})
}

// fill takes the known sequences first to last, all missing until now, out of
// the gaps, and counts them as there.
func (s *sequences) fill(first, last uint64, watermark int64) {
	i, _ := slices.BinarySearchFunc(s.gaps, first, func(g window.Gap, seq uint64) int {
		return cmpSpan(g.First, g.Last, seq)
	})
	j := i
	var rest []window.Gap
	for ; j < len(s.gaps) && s.gaps[j].First <= last; j++ {
		g := s.gaps[j]
		if g.First < first {
			below := window.Gap{First: g.First, Last: first - 1, Opened: g.Opened, After: g.After}
			if watermark != window.NullInt && (g.After == window.NullInt || watermark < g.After) {
				below.After = watermark
			}
			rest = append(rest, below)
		}
		if g.Last > last {
			rest = append(rest, window.Gap{First: last + 1, Last: g.Last, Opened: g.Opened, After: g.After})
		}
	}
	s.gaps = slices.Replace(s.gaps, i, j, rest...)
	s.insert(window.Range{First: first, Last: last, Watermark: watermark})
	s.absorb()
}

// insert adds a range above, joined with its neighbours.
func (s *sequences) insert(r window.Range) {
	i := 0
	for i < len(s.above) && s.above[i].Last+1 < r.First {
		i++
	}
	j := i
	for j < len(s.above) && s.above[j].First <= r.Last+1 {
		r.First = min(r.First, s.above[j].First)
		r.Last = max(r.Last, s.above[j].Last)
		r.Watermark = max(r.Watermark, s.above[j].Watermark)
		j++
	}
	s.above = slices.Replace(s.above, i, j, r)
}

// absorb lets the contiguous sequence advance over the range next to it.
func (s *sequences) absorb() {
	if len(s.above) > 0 && s.above[0].First == s.contiguous+1 {
		s.contiguous = s.above[0].Last
		s.watermark = max(s.watermark, s.above[0].Watermark)
		s.above = slices.Delete(s.above, 0, 1)
	}
}

// lose gives up the known sequences first to last that are missing, and returns
// how many those were.
func (s *sequences) lose(first, last uint64) int64 {
	var n int64
	for i := 0; i < len(s.gaps); {
		g := s.gaps[i]
		a, b := max(g.First, first), min(g.Last, last)
		if a > b {
			i++
			continue
		}
		n += int64(b - a + 1)
		s.remember(window.Span{First: a, Last: b})
		s.fill(a, b, window.NullInt)
	}
	return n
}

// remember adds a span to the lost ones, joined with its neighbours.
func (s *sequences) remember(l window.Span) {
	i := 0
	for i < len(s.lost) && s.lost[i].Last+1 < l.First {
		i++
	}
	j := i
	for j < len(s.lost) && s.lost[j].First <= l.Last+1 {
		l.First, l.Last = min(l.First, s.lost[j].First), max(l.Last, s.lost[j].Last)
		j++
	}
	s.lost = slices.Replace(s.lost, i, j, l)
	s.boundLost()
}

// boundLost forgets the lowest spans beyond the bound: a batch of theirs that
// still comes counts as a duplicate, not as late.
func (s *sequences) boundLost() {
	if n := len(s.lost) - maxLost; n > 0 {
		s.lost = slices.Delete(s.lost, 0, n)
	}
}

// crowded reports whether more is known above the contiguous sequence than is
// kept.
func (s *sequences) crowded() bool {
	return len(s.above) > maxRanges || len(s.gaps) > maxGaps || s.top()-s.contiguous > maxAbove
}
