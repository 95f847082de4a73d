package multitier

// What happens, in the order in which it is done if at the same time.
const (
	changing int32 = iota // a fault begins or ends
	deciding              // a window's table comes into force
	entering              // a request at a site
	arriving              // a call at its callee
	serving               // a service ends
	waiting               // what a call waits more ends
	ending                // an answer at its caller
)

// item is something that is to happen.
type item struct {
	at   int64 // µs
	seq  uint64
	what int32
	who  int32 // call, site, or number of the change
}

func (e *item) before(o *item) bool {
	return e.at < o.at || e.at == o.at && e.seq < o.seq
}

// agenda is a heap of four children a node. Of two events at one time the one that
// was put in first comes first, so that the order depends on nothing else.
type agenda struct {
	list []item
	seq  uint64
}

func (a *agenda) put(at int64, what, who int32) {
	a.seq++
	e := item{at: at, seq: a.seq, what: what, who: who}
	a.list = append(a.list, e)
	i := len(a.list) - 1
	for i > 0 {
		up := (i - 1) / 4
		if !e.before(&a.list[up]) {
			break
		}
		a.list[i] = a.list[up]
		i = up
	}
	a.list[i] = e
}

func (a *agenda) take() item {
	first := a.list[0]
	n := len(a.list) - 1
	last := a.list[n]
	a.list = a.list[:n]
	if n == 0 {
		return first
	}
	i := 0
	for {
		least := 4*i + 1
		if least >= n {
			break
		}
		for k := least + 1; k < min(4*i+5, n); k++ {
			if a.list[k].before(&a.list[least]) {
				least = k
			}
		}
		if !a.list[least].before(&last) {
			break
		}
		a.list[i] = a.list[least]
		i = least
	}
	a.list[i] = last
	return first
}
