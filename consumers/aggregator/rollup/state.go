package rollup

import (
	"fmt"
	"slices"

	"penstock/consumers/aggregator/ledger"
	"penstock/schemas/event"
	"penstock/schemas/window"
)

// State is what one group has added up since the last Tables.
type State interface {
	// Columns tells a decoder the columns of request/1 that Add reads.
	Columns(d *event.Decoder)
	// Add adds a batch, each row by its class, and returns how many delay
	// samples were left out, being negative or absurd.
	Add(b *event.Requests, class []ledger.Class) (excluded int64)
	// AddGauges adds a batch of gauges, each row by its class.
	AddGauges(b *event.Gauges, class []ledger.Class)
	// Size is the estimated size of the state in bytes.
	Size() int
	// Tables returns the rollups that hold something, in the order of
	// window.Of(group), sorted, and forgets all.
	Tables() []*window.Table
}

// New returns an empty state of a group whose windows are that wide, or an error
// if there is no such group.
func New(group string, widths window.Widths) (State, error) {
	switch group {
	case window.Owners:
		return newOwners(widths), nil
	case window.Fast:
		return newFast(), nil
	}
	return nil, fmt.Errorf("no group of rollups %q, expected one of %v", group, window.Groups)
}

// pair is two ids as a key, which is never 0.
func pair(a, b uint32) uint64 { return (uint64(a)<<32 | uint64(b)) + 1 }

func unpair(key uint64) (a, b uint32) {
	key--
	return uint32(key >> 32), uint32(key)
}

// ranker turns pairs of ids into numbers that sort as the pairs' names do, as
// small as can be.
type ranker struct {
	a, b  *names
	width uint64
}

func rankerOf(a, b *names) ranker { return ranker{a, b, uint64(b.len() + 1)} }

func (r ranker) rank(key uint64) uint64 {
	x, y := unpair(key)
	return uint64(r.a.ranks[x])*r.width + uint64(r.b.ranks[y])
}

func (r ranker) greatest() uint64 { return uint64(r.a.len()+1) * r.width }

// split returns the two ranks.
func (r ranker) split(rank uint64) (a, b int32) { return int32(rank / r.width), int32(rank % r.width) }

// frames holds a state's windows by their start.
type frames[W any] struct {
	width int64
	list  []frame[W]
	at    map[int64]int32
	spare []*W
}

type frame[W any] struct {
	start int64
	w     *W
}

// find returns the window in which a time lies, new if it must be.
func (f *frames[W]) find(t int64) (start int64, n int32, w *W) {
	start = t - t%f.width
	if start > t {
		start -= f.width
	}
	if f.at == nil {
		f.at = map[int64]int32{}
	}
	n, ok := f.at[start]
	if !ok {
		n = int32(len(f.list))
		f.at[start] = n
		w = new(W)
		if k := len(f.spare); k > 0 {
			w, f.spare = f.spare[k-1], f.spare[:k-1]
		}
		f.list = append(f.list, frame[W]{start, w})
	}
	return start, n, f.list[n].w
}

// sorted puts the windows in the order of their starts, for the last time.
func (f *frames[W]) sorted() []frame[W] {
	slices.SortFunc(f.list, func(a, b frame[W]) int {
		if a.start < b.start {
			return -1
		}
		return 1
	})
	return f.list
}

// maxSpare bounds the windows that are kept for reuse.
const maxSpare = 8

func (f *frames[W]) reset(clean func(*W)) {
	for _, l := range f.list {
		if len(f.spare) < maxSpare {
			clean(l.w)
			f.spare = append(f.spare, l.w)
		}
	}
	clear(f.list)
	f.list = f.list[:0]
	clear(f.at)
}
