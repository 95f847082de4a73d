package checkins

import (
	"bytes"
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

// MaxLevel is the greatest social level of a line: it keeps sums of levels far
// from overflow.
const MaxLevel = 1 << 32

// EachFriendship reads a friends file (plain, gz, zst) and calls add for each
// edge: lines of two users and, if there is a third column, the social level
// between them, else 1. Columns are separated by tabs, or by commas in a line
// without a tab. Lines that begin with # are comments, as in the files of SNAP.
// What cannot be used is told to bad (nil: only counted); the errors are those of
// recording.EachLine. An edge holds both ways and may stand twice.
func EachFriendship(ctx context.Context, name string, bad func(recording.BadLine), add func(a, b string, level int64)) (recording.Stats, error) {
	return recording.EachLine(ctx, name, bad, func(line []byte) *recording.LineFault {
		if line[0] == '#' {
			return nil
		}
		a, b, level, fault := parseFriendship(line)
		if fault == nil {
			add(string(a), string(b), level)
		}
		return fault
	})
}

// parseFriendship reads a line that is no comment.
func parseFriendship(line []byte) (a, b []byte, level int64, fault *recording.LineFault) {
	var fields [3][]byte
	separator := byte('\t')
	if bytes.IndexByte(line, '\t') < 0 {
		separator = ','
	}
	n := split(line, separator, fields[:])
	if n != 2 && n != 3 {
		return nil, nil, 0, &recording.LineFault{
			Field: "line", Got: strconv.Itoa(n) + " columns",
			Expected: "two users and perhaps a social level, separated by tabs or commas",
		}
	}
	for i, field := range [...]string{"user", "friend"} {
		if f := checkID(field, fields[i]); f != nil {
			return nil, nil, 0, f
		}
	}
	level = 1
	if n == 3 {
		v, err := strconv.ParseInt(string(fields[2]), 10, 64)
		if err != nil || v < 1 || v > MaxLevel {
			return nil, nil, 0, wrong("level", fields[2], "a whole number of 1 or more")
		}
		level = v
	}
	return fields[0], fields[1], level, nil
}

// readFriends reads the friends file.
func readFriends(ctx context.Context, name string, h *history, bad func(recording.BadLine)) (*graph, error) {
	g := &graph{of: make([][]friend, len(h.names))}
	stats, err := EachFriendship(ctx, name, bad, func(a, b string, level int64) { g.add(h, a, b, level) })
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
