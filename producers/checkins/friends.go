package checkins

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"penstock/producers/recording"
)

// graph is who is whose friend, among the users who ever check in: the others
// have nothing to read and no place to read from.
type graph struct {
	of    [][]friend // by user, ascending by friend
	edges int64
	self  int64
	bad   int64
}

type friend struct {
	user  int32
	level int64
}

// maxLevel keeps sums of levels far from overflow.
const maxLevel = 1 << 32

// readFriends reads the friends file. Lines that begin with # are comments, as
// in the files of SNAP.
func readFriends(ctx context.Context, name string, h *history, bad func(recording.BadLine)) (*graph, error) {
	g := &graph{of: make([][]friend, len(h.names))}
	stats, err := recording.EachLine(ctx, name, bad, func(line []byte) *recording.LineFault {
		if line[0] == '#' {
			return nil
		}
		var fields [3][]byte
		n := split(line, fields[:])
		if n != 2 && n != 3 {
			return &recording.LineFault{
				Field: "line", Got: strconv.Itoa(n) + " columns",
				Expected: "two users and perhaps a social level, separated by tabs",
			}
		}
		for i, field := range [...]string{"user", "friend"} {
			if f := checkID(field, fields[i]); f != nil {
				return f
			}
		}
		level := int64(1)
		if n == 3 {
			v, err := strconv.ParseInt(string(fields[2]), 10, 64)
			if err != nil || v < 1 || v > maxLevel {
				return wrong("level", fields[2], "a whole number of 1 or more")
			}
			level = v
		}
		g.add(h, string(fields[0]), string(fields[1]), level)
		return nil
	})
	if err != nil {
		return nil, err
	}
	g.bad = stats.Bad
	g.settle()
	return g, nil
}

// add adds an edge both ways.
func (g *graph) add(h *history, a, b string, level int64) {
	g.edges++
	if a == b {
		g.self++
		return
	}
	x, okX := slices.BinarySearch(h.names, a)
	y, okY := slices.BinarySearch(h.names, b)
	if okX && okY {
		g.of[x] = append(g.of[x], friend{int32(y), level})
		g.of[y] = append(g.of[y], friend{int32(x), level})
	}
}

// settle sorts the friends of each and keeps the greatest level of each pair.
func (g *graph) settle() {
	for u, fs := range g.of {
		slices.SortFunc(fs, func(a, b friend) int {
			return cmp.Or(cmp.Compare(a.user, b.user), cmp.Compare(b.level, a.level))
		})
		g.of[u] = slices.CompactFunc(fs, func(a, b friend) bool { return a.user == b.user })
	}
}
