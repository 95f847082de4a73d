package rollup

import (
	"math/bits"
	"strconv"

	"penstock/consumers/aggregator/ledger"
	"penstock/schemas/event"
	"penstock/schemas/window"
)

// storage is the rollup of that name: chunk tasks by store, code, size and outcome,
// and the queues of coders.
type storage struct {
	stores, outcomes names
	places           index // store, outcome → number of the place
	list             []taskPlace
	frames           frames[storageWindow]
	size             int

	// Translations of the batch at hand, by its codes + 1, and which outcomes, by their
	// codes, are of tasks.
	store, outcome []uint32
	tasks          []bool

	// The row of the task before, which is mostly that of the next one too.
	last      *taskRow
	lastPlace taskPlace
	lastStart int64
}

// taskPlace is where a task went, and what became of it.
type taskPlace struct{ store, outcome uint32 }

// storageWindow is one window of storage.
type storageWindow struct {
	index index // place, shape → row + 1
	rows  []taskRow
}

// taskRow is a row of storage.
type taskRow struct {
	place                              uint32 // in storage.list
	shape                              uint32
	tasks, bytes, smallest, sum, least int64
	delay                              samples
	gauges, backlog, most              int64
}

// ofQueue is the shape of the row of a queue: no task has it.
const ofQueue = 1 << 31

// shapeOf packs what a task is: its op, n, k and the bit length of its bytes.
func shapeOf(op, n, k uint8, bytes int64) uint32 {
	return uint32(op)<<24 | uint32(n)<<16 | uint32(k)<<8 | uint32(bits.Len64(uint64(bytes)))
}

// keys are the texts of a shape: op, n, k and bits. What a task does not tell is
// absent, and so is all of a queue's.
func (t *taskRow) keys() (op, n, k, size string) {
	if t.shape == ofQueue {
		return "", "", "", ""
	}
	return event.Op(t.shape >> 24).String(), told(uint8(t.shape >> 16)), told(uint8(t.shape >> 8)), strconv.Itoa(int(uint8(t.shape)))
}

// told is a number of chunks as a key.
func told(chunks uint8) string {
	if chunks == 0 {
		return ""
	}
	return strconv.Itoa(int(chunks))
}

// Estimated bytes of a row of storage with its part of the indexes, and of a window.
const (
	taskRowBytes       = 160 + 64
	storageWindowBytes = 192 + leastIndex
)

func newStorage() storage {
	return storage{frames: frames[storageWindow]{width: window.Storage.Width.Microseconds()}}
}

func (s *storage) bytes() int {
	return s.size + s.stores.bytes() + s.outcomes.bytes() + storageWindowBytes*len(s.frames.list)
}

// begin takes up a batch of requests; it reports whether there may be tasks in it, and
// then isTask and add are for its rows.
func (s *storage) begin(b *event.Requests) bool {
	s.last = nil
	var some bool
	if s.tasks, some = event.Tasks(s.tasks[:0], &b.Outcome); !some {
		return false
	}
	s.store = s.stores.codes(&b.ToServer, s.store)
	s.outcome = s.outcomes.codes(&b.Outcome, s.outcome)
	return true
}

// isTask reports whether row i of the batch at hand is one.
func (s *storage) isTask(b *event.Requests, i int) bool {
	c := b.Outcome.Codes[i]
	return c >= 0 && s.tasks[c]
}

// add counts row i of the batch at hand, a task. Its delay is what the coder saw: in
// service and on the way; the wait is its request's, before the task began. It returns
// how many samples were left out.
func (s *storage) add(b *event.Requests, i int, scratch *scratch) (excluded int64) {
	at := taskPlace{s.store[b.ToServer.Codes[i]+1], s.outcome[b.Outcome.Codes[i]+1]}
	t := s.row(b.Time[i], at, shapeOf(b.Op[i], b.N[i], b.K[i], b.Bytes[i]))
	t.tasks++
	t.bytes += b.Bytes[i]
	t.smallest = min(t.smallest, b.Bytes[i])
	us, ok, bad := serviceOf(b.Network[i], b.Service[i])
	if ok {
		t.sum += us
		if t.least == window.NullInt || us < t.least {
			t.least = us
		}
		s.size += t.delay.add(us, scratch)
	}
	return bad
}

// gauge counts the backlog of a queue at a time.
func (s *storage) gauge(time int64, server uint32, backlog int64) {
	t := s.row(time, taskPlace{store: server}, ofQueue)
	t.gauges++
	t.backlog += backlog
	t.most = max(t.most, backlog)
}

// row returns the row of a key in the window of a time. The pointer holds until the
// next call.
func (s *storage) row(time int64, at taskPlace, shape uint32) *taskRow {
	if s.last != nil && s.lastPlace == at && time >= s.lastStart && time < s.lastStart+s.frames.width && s.last.shape == shape {
		return s.last
	}
	start, _, w := s.frames.find(time)
	p := s.places.at(pair(at.store, at.outcome))
	if *p == 0 {
		s.list = append(s.list, at)
		*p = int64(len(s.list))
	}
	v := w.index.at(pair(uint32(*p), shape))
	if *v == 0 {
		row := taskRow{place: uint32(*p - 1), shape: shape, smallest: window.NullInt, least: window.NullInt, most: window.NullInt}
		if shape != ofQueue {
			row.smallest = event.MaxRequestBytes
		}
		w.rows = append(w.rows, row)
		*v = int64(len(w.rows))
		s.size += taskRowBytes
	}
	s.last, s.lastPlace, s.lastStart = &w.rows[*v-1], at, start
	return s.last
}

// addGauges adds the backlogs of queues up, those that were counted and know it.
func (s *storage) addGauges(b *event.Gauges, class []ledger.Class) {
	s.last = nil
	s.store = s.stores.codes(&b.Server, s.store)
	for i, q := range b.Backlog {
		if class[i] == ledger.Counted && q != event.NullInt {
			s.gauge(b.Time[i], s.store[b.Server.Codes[i]+1], q)
		}
	}
}

// table returns what was added up, nil if that is nothing, and forgets it. Rows are
// few, a few hundred a store, so that they are sorted as tables are.
func (s *storage) table(scratch *scratch) *window.Table {
	t := window.NewTable(window.Storage)
	for _, f := range s.frames.list {
		for i := range f.w.rows {
			r := &f.w.rows[i]
			at := s.list[r.place]
			op, n, k, size := r.keys()
			t.Append(f.start, []string{s.stores.clone(at.store), op, n, k, size, s.outcomes.clone(at.outcome)},
				[]int64{r.tasks, r.bytes, r.smallest, r.sum, r.least, 0, r.gauges, r.backlog, r.most}, r.delay.take(scratch))
		}
	}
	s.forget()
	if t.Len() == 0 {
		return nil
	}
	t.Sort()
	return t
}

func (s *storage) forget() {
	s.last = nil
	s.frames.reset(func(w *storageWindow) {
		w.index.reset()
		clear(w.rows) // the histograms are the table's now
		w.rows = w.rows[:0]
	})
	s.stores.reset()
	s.outcomes.reset()
	s.places.reset()
	s.list = s.list[:0]
	s.size = 0
}

// clone is a copy of the name of an id, "" of 0: tables live on when names are
// forgotten.
func (n *names) clone(id uint32) string {
	if id == 0 {
		return ""
	}
	return string(n.at(id))
}
