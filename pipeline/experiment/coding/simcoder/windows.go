package simcoder

import (
	"cmp"
	"math/bits"
	"slices"
	"strconv"
	"time"

	"penstock/schemas/window"
)

// epoch is the time of day at which simulated time begins.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// rowKey is what a row of the rollup `storage` is of, but for the store and the kind of
// request, which are one each here.
type rowKey struct {
	n, k, bits int
	outcome    string
}

// row is the tasks of a key in one window.
type row struct {
	tasks, bytes, smallest int64
	sum, least             int64 // µs
	delay                  window.Bins
}

// rows are the chunk tasks of one window, as an aggregator would add up their events.
type rows struct {
	store, op string
	of        map[rowKey]*row
}

func newRows(store, op string) *rows { return &rows{store: store, op: op, of: map[rowKey]*row{}} }

// add counts a task that took so many µs.
func (r *rows) add(n, k int, bytes int64, outcome string, took int64) {
	key := rowKey{n, k, bits.Len64(uint64(bytes)), outcome}
	x := r.of[key]
	if x == nil {
		x = &row{smallest: bytes, least: took}
		r.of[key] = x
	}
	x.tasks++
	x.bytes += bytes
	x.smallest = min(x.smallest, bytes)
	x.sum += took
	x.least = min(x.least, took)
	x.delay.Add(took, 1)
}

// table is the window that begins at start (µs since 1970), whose rows are forgotten;
// nil if there are none.
func (r *rows) table(start int64) *window.Table {
	if len(r.of) == 0 {
		return nil
	}
	keys := make([]rowKey, 0, len(r.of))
	for k := range r.of {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b rowKey) int {
		return cmp.Or(cmp.Compare(a.n, b.n), cmp.Compare(a.k, b.k), cmp.Compare(a.bits, b.bits), cmp.Compare(a.outcome, b.outcome))
	})
	t := window.NewTable(window.Storage)
	for _, k := range keys {
		x := r.of[k]
		texts := map[string]string{
			"store": r.store, "op": r.op, "n": strconv.Itoa(k.n), "k": strconv.Itoa(k.k), "bits": strconv.Itoa(k.bits), "outcome": k.outcome,
		}
		numbers := map[string]int64{
			"tasks": x.tasks, "bytes": x.bytes, "bytes_least": x.smallest, "delay_us": x.sum, "delay_least_us": x.least,
		}
		named := make([]string, len(window.Storage.Keys))
		for i, name := range window.Storage.Keys {
			named[i] = texts[name]
		}
		values := make([]int64, len(window.Storage.Values))
		for i, v := range window.Storage.Values {
			values[i] = numbers[v.Name]
		}
		t.Append(start, named, values, x.delay)
	}
	t.Sort()
	clear(r.of)
	return t
}
