package multitier

// replica is a component at a site: one queue before its servers.
type replica struct {
	servers, busy int
	queue         ring
	slow          float64 // services are so many times as long
	more          float64 // µs that each call waits more without a server
	spread        bool    // more is the mean of an exponential
}

// ring is a queue of calls.
type ring struct {
	buf     []int32
	head, n int
}

func (r *ring) put(x int32) {
	if r.n == len(r.buf) {
		next := make([]int32, max(16, 2*len(r.buf)))
		for i := range r.n {
			next[i] = r.buf[(r.head+i)%len(r.buf)]
		}
		r.buf, r.head = next, 0
	}
	r.buf[(r.head+r.n)%len(r.buf)] = x
	r.n++
}

func (r *ring) take() int32 {
	x := r.buf[r.head]
	r.head = (r.head + 1) % len(r.buf)
	r.n--
	return x
}
