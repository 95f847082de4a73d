package simservers

// What happens.
const (
	cpuDone = iota
	diskDone
	databaseDone
	serverReady
)

// event is what happens at a time.
type event struct {
	at   int64 // ns
	seq  uint64
	kind uint8
	of   int32 // server, or request at a database
}

// agenda is a heap of events; of one time those come first that were put in first.
type agenda struct {
	events []event
	seq    uint64
}

func (a *agenda) before(i, j int) bool {
	x, y := &a.events[i], &a.events[j]
	return x.at < y.at || x.at == y.at && x.seq < y.seq
}

func (a *agenda) push(at int64, kind uint8, of int32) {
	a.seq++
	a.events = append(a.events, event{at: at, seq: a.seq, kind: kind, of: of})
	for i := len(a.events) - 1; i > 0; {
		up := (i - 1) / 2
		if !a.before(i, up) {
			return
		}
		a.events[i], a.events[up] = a.events[up], a.events[i]
		i = up
	}
}

func (a *agenda) pop() event {
	first, last := a.events[0], len(a.events)-1
	a.events[0] = a.events[last]
	a.events = a.events[:last]
	for i := 0; ; {
		down := 2*i + 1
		if down >= last {
			return first
		}
		if down+1 < last && a.before(down+1, down) {
			down++
		}
		if !a.before(down, i) {
			return first
		}
		a.events[i], a.events[down] = a.events[down], a.events[i]
		i = down
	}
}
