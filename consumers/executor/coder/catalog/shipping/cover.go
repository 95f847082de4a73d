package shipping

import (
	"cmp"
	"slices"
)

// cover is what the stores have of a catalog's term.
type cover struct {
	// whole tells that each blob that a rebuild up to the number asked for needs is
	// in need stores at least.
	whole bool
	// from is the snapshot that a rebuild begins with, 0 for none. snapshot is the
	// bytes of its parts; bytes and blobs count the log after it, once each.
	from            uint64
	snapshot, bytes int64
	blobs           int
}

// covered finds what the stores have, by the names of their blobs. The catalog of term 1
// began empty, those of later terms with a snapshot. One may be of after upTo: a process
// that dies may not have noted the last that it shipped.
func covered(stores [][]name, need int, term uint32, upTo uint64) cover {
	manifests := make(map[uint64]int)
	if term == 1 {
		manifests[0] = need
	}
	for _, names := range stores {
		for _, n := range names {
			if n.kind == kindSnapshot && n.term == term {
				manifests[n.first]++
			}
		}
	}
	c := cover{}
	based := false
	for from, count := range manifests {
		if count >= need && from >= c.from {
			c.from, based = from, true
		}
	}
	seen := make(map[name]bool)
	logs := make([][]name, len(stores))
	for i, names := range stores {
		for _, n := range names {
			if n.term != term {
				continue
			}
			if n.kind == kindLog && n.last > c.from {
				logs[i] = append(logs[i], n)
			}
			size := n.bytes
			if n.bytes = 0; seen[n] {
				continue
			}
			seen[n] = true
			switch {
			case n.kind == kindLog && n.last > c.from:
				c.bytes += size
				c.blobs++
			case n.kind == kindPart && n.first == c.from:
				c.snapshot += size
			}
		}
	}
	c.whole = based && contiguous(logs, need, c.from, upTo)
	return c
}

// contiguous tells whether each change after from up to upTo is in need stores.
func contiguous(stores [][]name, need int, from, upTo uint64) bool {
	reach := make([]uint64, len(stores))
	for _, logs := range stores {
		slices.SortFunc(logs, func(a, b name) int { return cmp.Compare(a.first, b.first) })
	}
	for at := from; at < upTo; {
		for i, logs := range stores {
			// How far this store's blobs go on end from here.
			reach[i] = at
			for len(logs) > 0 && logs[0].first <= reach[i]+1 {
				reach[i] = max(reach[i], logs[0].last)
				logs = logs[1:]
			}
		}
		slices.Sort(reach)
		next := reach[len(reach)-need]
		if next <= at {
			return false
		}
		at = next
	}
	return true
}
