package queue

// list is a line of things that hold their own places in it, so that one that is in the
// middle leaves at once and nothing is allocated.
type list[T any] struct {
	head, tail *node[T]
	n          int
}

type node[T any] struct {
	prev, next *node[T]
	in         *list[T]
	of         *T
}

// push puts x, which holds the place, at the end of the line.
func (l *list[T]) push(x *T, place *node[T]) {
	*place = node[T]{prev: l.tail, in: l, of: x}
	if l.tail == nil {
		l.head = place
	} else {
		l.tail.next = place
	}
	l.tail = place
	l.n++
}

// pushFront puts x at the head of the line.
func (l *list[T]) pushFront(x *T, place *node[T]) {
	*place = node[T]{next: l.head, in: l, of: x}
	if l.head == nil {
		l.tail = place
	} else {
		l.head.prev = place
	}
	l.head = place
	l.n++
}

// pop takes the head out of the line; nil if nobody is in it.
func (l *list[T]) pop() *T {
	if l.head == nil {
		return nil
	}
	x := l.head.of
	l.head.leave()
	return x
}

// leave takes whoever holds the place out of its line, if it is in one.
func (p *node[T]) leave() {
	l := p.in
	if l == nil {
		return
	}
	if p.prev == nil {
		l.head = p.next
	} else {
		p.prev.next = p.next
	}
	if p.next == nil {
		l.tail = p.prev
	} else {
		p.next.prev = p.prev
	}
	l.n--
	*p = node[T]{}
}
