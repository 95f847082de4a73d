package join

// link is a trace's place in a list.
type link struct {
	before, after *trace
	in            bool
}

// list is one of open traces, linked through themselves so that it costs nothing
// to move one.
type list struct {
	link       func(*trace) *link
	head, tail *trace
}

// toEnd puts a trace at the end, wherever it was.
func (l *list) toEnd(t *trace) {
	if l.tail == t {
		return
	}
	k := l.link(t)
	if k.in {
		l.remove(t)
	}
	*k = link{before: l.tail, in: true}
	if l.tail != nil {
		l.link(l.tail).after = t
	} else {
		l.head = t
	}
	l.tail = t
}

func (l *list) remove(t *trace) {
	k := l.link(t)
	if !k.in {
		return
	}
	if k.before != nil {
		l.link(k.before).after = k.after
	} else {
		l.head = k.after
	}
	if k.after != nil {
		l.link(k.after).before = k.before
	} else {
		l.tail = k.before
	}
	*k = link{}
}
