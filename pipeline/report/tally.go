package report

import (
	"penstock/consumers/decider/baselines"
)

// tally counts requests by place, strategy, operation and site, and turns the
// counts into latency delays once for many: at the ends of windows, or when it is
// full. Counting is an addition a strategy, where adding up delays would be
// several and two histograms.
type tally struct {
	sites, strategies int
	slots             []int32 // of cells by place, plus 1; 0 is none
	touched           []int32 // places with a slot
	cells             []uint32
	rows              int64 // since the last flush
}

const (
	// maxTouched bounds the cells: places between two flushes.
	maxTouched = 4096
	// maxTallied keeps counts inside a uint32.
	maxTallied = 1 << 31
)

func newTally(sites, strategies int) *tally { return &tally{sites: sites, strategies: strategies} }

// stride is how many cells a place has: by operation, strategy and site. Most
// requests are of one operation, so that what is touched lies together.
func (t *tally) stride() int { return t.strategies * 2 * t.sites }

func (t *tally) full() bool { return len(t.touched) >= maxTouched || t.rows >= maxTallied }

// add takes a request at a place, served by the sites at by strategy; one that is
// unknown counts for nothing. The tally isn't full.
func (t *tally) add(place int32, read bool, at []int16) {
	t.rows++
	for int(place) >= len(t.slots) {
		t.slots = append(t.slots, 0)
	}
	slot := t.slots[place]
	if slot == 0 {
		t.touched = append(t.touched, place)
		slot = int32(len(t.touched))
		t.slots[place] = slot
	}
	stride := t.stride()
	for len(t.cells) < int(slot)*stride {
		t.cells = append(t.cells, 0)
	}
	cells := t.cells[int(slot-1)*stride : int(slot)*stride]
	i := 0
	if read {
		i = t.strategies * t.sites
	}
	for _, site := range at {
		if site >= 0 {
			cells[i+int(site)]++
		}
		i += t.sites
	}
}

// flush passes on the counts and forgets them.
func (t *tally) flush(rtts *RTTs, places *baselines.Places, fn func(strategy int, read bool, us, n int64, formula bool)) {
	for slot, place := range t.touched {
		cells := t.cells[slot*t.stride() : (slot+1)*t.stride()]
		for i, n := range cells {
			if n == 0 {
				continue
			}
			site := int16(i % t.sites)
			us := rtts.At(places, place, site)
			fn(i/t.sites%t.strategies, i >= t.strategies*t.sites, us, int64(n), rtts.stoodIn(place, site))
			cells[i] = 0
		}
		t.slots[place] = 0
	}
	t.touched, t.rows = t.touched[:0], 0
}
