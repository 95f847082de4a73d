package spanfile

import (
	"bytes"
	"cmp"
	"container/heap"

	"penstock/schemas/event"
)

// order puts requests in order of time as far as limit of them reach. Equal times
// go by trace and id, so that the order of the input does not show.
type order struct {
	limit int
	emit  func(*event.Request) error
	rows  []*event.Request
	spare *event.Request
	err   error // emit's; nothing is emitted after it
}

func (o *order) Len() int      { return len(o.rows) }
func (o *order) Swap(i, j int) { o.rows[i], o.rows[j] = o.rows[j], o.rows[i] }
func (o *order) Push(x any)    { o.rows = append(o.rows, x.(*event.Request)) } //nolint:forcetypeassert // Only add pushes.

func (o *order) Less(i, j int) bool {
	a, b := o.rows[i], o.rows[j]
	return cmp.Or(
		cmp.Compare(a.Time, b.Time),
		bytes.Compare(a.Trace[:], b.Trace[:]),
		cmp.Compare(a.ID, b.ID),
	) < 0
}

func (o *order) Pop() any {
	last := o.rows[len(o.rows)-1]
	o.rows[len(o.rows)-1] = nil
	o.rows = o.rows[:len(o.rows)-1]
	return last
}

func (o *order) add(r *event.Request) {
	if o.err != nil {
		return
	}
	row := o.spare
	if row == nil {
		row = new(event.Request)
	}
	o.spare = nil
	*row = *r
	heap.Push(o, row)
	if len(o.rows) > o.limit {
		o.next()
	}
}

func (o *order) next() {
	row := heap.Pop(o).(*event.Request) //nolint:forcetypeassert // Only add pushes.
	o.err = o.emit(row)
	o.spare = row
}

// flush emits what waits.
func (o *order) flush() error {
	for o.err == nil && len(o.rows) > 0 {
		o.next()
	}
	return o.err
}
