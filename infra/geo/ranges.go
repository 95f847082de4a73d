package geo

import (
	"bytes"
	"container/heap"
	"encoding/binary"
	"net/netip"
	"slices"
	"strings"
)

// ranges is a table of IPv4 addresses cut into disjoint pieces: piece i begins
// at starts[i] and goes up to the next start. Where it has no place, the
// address is in a gap.
type ranges struct {
	starts []uint32
	place  []int32 // index into places, −1 for a gap
	places []Place
}

func (t *ranges) lookup(addr netip.Addr) (Place, bool) {
	if !addr.Is4() {
		return Place{}, false
	}
	b := addr.As4()
	i, found := slices.BinarySearch(t.starts, binary.BigEndian.Uint32(b[:]))
	if !found {
		i--
	}
	if i < 0 || t.place[i] < 0 {
		return Place{}, false
	}
	return t.places[t.place[i]], true
}

// block is a line of the file.
type block struct {
	first, last uint32
	place       int32 // index into places; −1: the country has no centroid
	line        int32
}

// readRanges reads lines of first address, last address, country code.
func readRanges(file string, data []byte, centroids map[string]Place) (*ranges, error) {
	t := &ranges{}
	index := make(map[string]int32)
	var blocks []block
	line := 0
	for len(data) > 0 {
		var row []byte
		row, data, _ = bytes.Cut(data, []byte{'\n'})
		line++
		row = bytes.TrimSuffix(row, []byte{'\r'})
		if len(row) == 0 {
			continue
		}
		first, last, code, err := parseBlock(file, line, string(row))
		if err != nil {
			return nil, err
		}
		at, seen := index[code]
		if !seen {
			at = -1
			if p, ok := centroids[code]; ok {
				at = int32(len(t.places))
				t.places = append(t.places, p)
			}
			index[strings.Clone(code)] = at
		}
		blocks = append(blocks, block{first, last, at, int32(line)})
	}
	if len(blocks) == 0 {
		return nil, fault(file, 0, "", "lines of first address, last address, country")
	}
	if len(t.places) == 0 {
		return nil, fault(file, 0, "no country with a centroid", "at least one")
	}
	t.cut(blocks)
	return t, nil
}

func parseBlock(file string, line int, row string) (first, last uint32, code string, err error) {
	a, rest, ok1 := strings.Cut(row, ",")
	b, code, ok2 := strings.Cut(rest, ",")
	if !ok1 || !ok2 {
		return 0, 0, "", fault(file, line, row, "first address,last address,country")
	}
	if first, err = address(file, line, a); err != nil {
		return 0, 0, "", err
	}
	if last, err = address(file, line, b); err != nil {
		return 0, 0, "", err
	}
	if last < first {
		return 0, 0, "", fault(file, line, row, "a last address that is not below the first")
	}
	if !isCode(code) {
		return 0, 0, "", fault(file, line, code, "a country code of two capital letters")
	}
	return first, last, code, nil
}

func address(file string, line int, s string) (uint32, error) {
	a, err := netip.ParseAddr(s)
	if err != nil || !a.Is4() {
		return 0, fault(file, line, s, "an IPv4 address")
	}
	b := a.As4()
	return binary.BigEndian.Uint32(b[:]), nil
}

// cut makes disjoint pieces of blocks that may overlap. An address belongs to
// the narrowest block that holds it, of equally narrow ones to the last in the
// file. One pass over the sorted ends: a heap holds the blocks that are open,
// the one in force on top.
func (t *ranges) cut(blocks []block) {
	slices.SortFunc(blocks, func(a, b block) int {
		if a.first != b.first {
			if a.first < b.first {
				return -1
			}
			return 1
		}
		return int(a.line - b.line)
	})
	open := &openBlocks{}
	var at uint64 // everything below it is cut; 64 bits: the end may be 2³²
	for i := 0; i < len(blocks) || open.Len() > 0; {
		// Blocks that ended before here are no longer candidates.
		for open.Len() > 0 && uint64((*open)[0].last) < at {
			heap.Pop(open)
		}
		if open.Len() == 0 {
			if i == len(blocks) {
				break
			}
			if first := uint64(blocks[i].first); first > at || len(t.starts) == 0 {
				t.piece(at, first, -1)
				at = first
			}
		}
		for i < len(blocks) && uint64(blocks[i].first) <= at {
			heap.Push(open, blocks[i])
			i++
		}
		if open.Len() == 0 {
			continue
		}
		top := (*open)[0]
		if uint64(top.last) < at {
			continue
		}
		end := uint64(top.last) + 1
		if i < len(blocks) && uint64(blocks[i].first) < end {
			end = uint64(blocks[i].first)
		}
		t.piece(at, end, top.place)
		at = end
	}
	t.piece(at, 1<<32, -1)
}

// piece adds the addresses from first up to, not including, end.
func (t *ranges) piece(first, end uint64, place int32) {
	if first >= end {
		return
	}
	if n := len(t.place); n > 0 && t.place[n-1] == place {
		return
	}
	t.starts = append(t.starts, uint32(first))
	t.place = append(t.place, place)
}

// openBlocks is a heap with the narrowest block on top, then the last line.
type openBlocks []block

func (h openBlocks) Len() int { return len(h) }

func (h openBlocks) Less(i, j int) bool {
	wi, wj := h[i].last-h[i].first, h[j].last-h[j].first
	if wi != wj {
		return wi < wj
	}
	return h[i].line > h[j].line
}

func (h openBlocks) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h *openBlocks) Push(x any) { *h = append(*h, x.(block)) }

func (h *openBlocks) Pop() any {
	old := *h
	b := old[len(old)-1]
	*h = old[:len(old)-1]
	return b
}
