package bench

import (
	"fmt"
	"runtime"
	"testing"

	"penstock/consumers/aggregator"
	"penstock/consumers/aggregator/ledger"
	"penstock/consumers/aggregator/rollup"
	"penstock/schemas/event"
	"penstock/schemas/window"
)

// memory is what a state takes, in bytes.
type memory struct{ heap, estimate, most float64 }

// stateMemory adds rows up in one state of a group, as one aggregator would up to
// its flush, and compares the heap with what the state says of itself.
func stateMemory(t testing.TB, group string, s *rows) memory {
	t.Helper()
	before := heap()
	st, err := rollup.New(group, window.Widths{})
	if err != nil {
		t.Fatal(err)
	}
	func() { // The batch must be gone when the heap is looked at.
		var batch event.Requests
		var r event.Request
		class := make([]ledger.Class, event.MaxRows)
		for i := range s.list {
			if st.Size() >= aggregator.DefaultFlushBytes {
				return
			}
			s.fill(&r, i)
			batch.Append(&r)
			if batch.Len() == event.MaxRows || i == len(s.list)-1 {
				st.Add(&batch, class[:batch.Len()])
				batch.Reset()
			}
		}
	}()
	m := memory{heap: float64(heap() - before), estimate: float64(st.Size()), most: aggregator.DefaultFlushBytes}
	runtime.KeepAlive(st)
	runtime.KeepAlive(s) // its memory is in both heaps
	return m
}

// runMemory returns the heap that each of n live runs takes in a ledger.
func runMemory(t testing.TB, n int) float64 {
	t.Helper()
	before := heap()
	book := ledger.New(ledger.ConfigOf(groups()[0], 0, 0, window.Widths{}))
	times, marks := []int64{1}, []uint8{0}
	for i := range n {
		h := event.Header{Schema: event.RequestSchema, Run: fmt.Sprintf("01JD0000000000000000%06d", i), Seq: 1, Rows: 1, Watermark: 1}
		book.Take(ledger.Position{Seq: uint64(i + 1), Time: 1}, &h, times, marks)
	}
	took := float64(heap()-before) / float64(n)
	runtime.KeepAlive(book)
	return took
}

// heap returns the bytes of live objects.
func heap() int64 {
	runtime.GC()
	runtime.GC() // what the first one freed of pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
