package simservers

// fifo is a queue of requests.
type fifo struct {
	of   []int32
	head int
}

func (q *fifo) push(r int32) { q.of = append(q.of, r) }

func (q *fifo) pop() (int32, bool) {
	if q.head == len(q.of) {
		q.of, q.head = q.of[:0], 0
		return 0, false
	}
	r := q.of[q.head]
	q.head++
	return r, true
}

// station serves one request at a time.
type station struct {
	waiting fifo
	serving int32
	busy    bool
}

// State of a server.
type State uint8

// The states of a server, in the order in which it goes through them.
const (
	Off State = iota
	Starting
	On
	Draining
)

// Window is a time in which a server is slower by a factor.
type Window struct {
	From, To int64 // ns
	Factor   float64
}

// Server is one server of a zone.
type Server struct {
	Name  string
	Zone  int
	Speed float64
	// Weight is what switches are told.
	Weight float64
	Slow   *Window
}

// finish is when work of this many nominal ns is done that begins now; a server that gets
// slower or faster meanwhile is so from then on.
func (s *Server) finish(now, work int64) int64 {
	w := s.Slow
	left := float64(work) / s.Speed
	if w == nil || now >= w.To {
		return now + max(1, int64(left))
	}
	at := float64(now)
	if now < w.From {
		free := float64(w.From) - at
		if left <= free {
			return now + max(1, int64(left))
		}
		left, at = left-free, float64(w.From)
	}
	if slow := (float64(w.To) - at) / w.Factor; left > slow {
		return w.To + max(1, int64(left-slow))
	}
	return int64(at+float64(left*w.Factor)) + 1
}

// machine is a server in a run.
type machine struct {
	*Server
	state     State
	cpu, disk station
	inService int
	since     int64 // it costs since
	ready     int64 // a starting one is on then
	// slotTime is ns in service, all requests together, until slotAt.
	slotTime, slotAt int64
}

// count keeps account of slots before their number changes.
func (m *machine) count(now int64) {
	m.slotTime += int64(m.inService) * (now - m.slotAt)
	m.slotAt = now
}
