package join

import (
	"bytes"
	"cmp"
	"slices"

	"penstock/producers/otlp/span"
	"penstock/schemas/event"
)

// none is the index of no node.
const none = -1

// node is one half of a span within its trace.
type node struct {
	*span.Span
	parent int32 // the half that it hangs below
	orphan bool  // its parent isn't here
	// children are order[from:to] of the resolver.
	from, to int32
	fate     Fate
	decided  bool
	// asks says that the node is the client's half of what it calls.
	asks    bool
	callees int32 // calls of which it is the client's half
}

// made is a call with the halves that it was made of, either may be nil.
type made struct {
	Call
	client, server *node
}

// resolver makes calls of the spans of one trace. It keeps memory from one to the
// next.
type resolver struct {
	sorted []*span.Span
	nodes  []node
	order  []int32
	calls  []made
	waits  []interval
	stack  []visit
	seen   seen
}

// seen is what a trace shows beside its calls and the fates of its nodes.
type seen struct{ duplicates, gaps, asynchronous int64 }

// resolve fills r.nodes, whose fates are decided, r.calls and r.seen.
func (r *resolver) resolve(spans []span.Span, entries Entries) {
	r.calls = r.calls[:0]
	r.seen = seen{}
	r.load(spans)
	r.link()
	for i := range r.nodes {
		r.nodes[i].asks = r.isClient(int32(i))
	}
	r.pair()
	for i := range r.nodes {
		if n := &r.nodes[i]; !n.decided {
			r.alone(n, entries)
		}
	}
	for i := range r.calls {
		r.measure(&r.calls[i])
	}
}

// load makes nodes of the spans: one for each half, whichever of its repeats says
// most.
func (r *resolver) load(spans []span.Span) {
	r.sorted = r.sorted[:0]
	for i := range spans {
		r.sorted = append(r.sorted, &spans[i])
	}
	slices.SortFunc(r.sorted, compare)
	r.nodes = r.nodes[:0]
	for _, s := range r.sorted {
		if n := len(r.nodes); n > 0 {
			if last := r.nodes[n-1].Span; last.ID == s.ID && last.Serves() == s.Serves() {
				complete(last, s)
				r.seen.duplicates++
				continue
			}
		}
		if n := len(r.nodes); n > 0 && s.Serves() && isFragment(r.nodes[n-1].Span, s) {
			complete(s, r.nodes[n-1].Span)
			r.nodes[n-1].Span = s
			r.seen.duplicates++
			continue
		}
		r.nodes = append(r.nodes, node{Span: s, parent: none})
	}
}

// isFragment reports whether a is a part of the server's half b that was reported
// without its kind.
func isFragment(a, b *span.Span) bool {
	return a.ID == b.ID && a.Kind <= span.Internal && !a.Serves() && !b.Shared && (a.Component == "" || near(a, b) > 0)
}

// compare orders by id, client before server, and the repeat that says most first.
func compare(a, b *span.Span) int {
	flag := func(v bool) int {
		if v {
			return 1
		}
		return 0
	}
	return cmp.Or(
		bytes.Compare(a.ID[:], b.ID[:]),
		flag(a.Serves())-flag(b.Serves()),
		// Unknown is less than anything.
		cmp.Compare(b.Duration, a.Duration),
		cmp.Compare(b.Start, a.Start),
		cmp.Compare(b.Kind, a.Kind),
		bytes.Compare(b.Parent[:], a.Parent[:]),
		bytes.Compare(b.Trace[:], a.Trace[:]),
		cmp.Compare(b.Component, a.Component),
		cmp.Compare(b.Server, a.Server),
		cmp.Compare(b.Site, a.Site),
		cmp.Compare(b.Callee, a.Callee),
		cmp.Compare(b.Caller, a.Caller),
		cmp.Compare(b.Class, a.Class),
		cmp.Compare(b.Status, a.Status),
		cmp.Compare(b.Bytes, a.Bytes),
		cmp.Compare(b.Owner, a.Owner),
		cmp.Compare(b.User, a.User),
		cmp.Compare(b.Op, a.Op),
		flag(a.Follows)-flag(b.Follows),
		flag(a.Shared)-flag(b.Shared),
		flag(a.Backwards)-flag(b.Backwards),
	)
}

// complete takes over what the best repeat does not say: a half may be reported
// in fragments, its start first and the rest at its end.
func complete(s, more *span.Span) {
	fill(&s.Component, more.Component)
	fill(&s.Site, more.Site)
	fill(&s.Server, more.Server)
	fill(&s.Callee, more.Callee)
	fill(&s.Caller, more.Caller)
	fill(&s.Class, more.Class)
	fill(&s.Owner, more.Owner)
	fill(&s.User, more.User)
	fill(&s.Parent, more.Parent)
	if s.Status == event.NullStatus {
		s.Status = more.Status
	}
	s.Op, s.Bytes, s.Heard = max(s.Op, more.Op), max(s.Bytes, more.Bytes), max(s.Heard, more.Heard)
	if s.Start == span.Unknown {
		s.Start = more.Start
	}
	if s.Duration == span.Unknown {
		s.Duration = more.Duration
	}
	if s.Kind <= span.Internal {
		s.Kind = max(s.Kind, more.Kind)
	}
}

func fill[T comparable](dst *T, v T) {
	var zero T
	if *dst == zero {
		*dst = v
	}
}

// link finds parents and children.
func (r *resolver) link() {
	r.order = r.order[:0]
	for i := range r.nodes {
		n := &r.nodes[i]
		n.parent, n.orphan = r.parentOf(int32(i))
		if n.parent != none {
			r.order = append(r.order, int32(i))
		}
	}
	slices.SortStableFunc(r.order, func(a, b int32) int { return cmp.Compare(r.nodes[a].parent, r.nodes[b].parent) })
	for i := 0; i < len(r.order); {
		p := r.nodes[r.order[i]].parent
		from := i
		for i < len(r.order) && r.nodes[r.order[i]].parent == p {
			i++
		}
		r.nodes[p].from, r.nodes[p].to = int32(from), int32(i)
	}
}

func (r *resolver) children(n *node) []int32 { return r.order[n.from:n.to] }

// parentOf finds the half that a node hangs below.
func (r *resolver) parentOf(i int32) (parent int32, orphan bool) {
	s := r.nodes[i].Span
	if s.Serves() && i > 0 && r.nodes[i-1].ID == s.ID {
		return i - 1, false // both halves have one id
	}
	if s.Parent == (span.ID{}) || s.Parent == s.ID {
		return none, s.Shared && s.Parent != (span.ID{})
	}
	at, ok := slices.BinarySearchFunc(r.nodes, s.Parent, func(n node, id span.ID) int { return bytes.Compare(n.ID[:], id[:]) })
	if !ok {
		return none, true
	}
	if at+1 == len(r.nodes) || r.nodes[at+1].ID != s.Parent {
		return int32(at), false
	}
	// Client and server share the parent's id: the child is of the server's
	// process, unless only the client's fits.
	if client, server := r.nodes[at].Span, r.nodes[at+1].Span; near(client, s) > near(server, s) {
		return int32(at), false
	}
	return int32(at + 1), false
}

// near says how surely two spans are of one process: 0 not, 1 perhaps, 2 surely.
func near(a, b *span.Span) int {
	switch {
	case a.Component != b.Component,
		a.Server != b.Server && a.Server != "" && b.Server != "",
		a.Site != b.Site && a.Site != "" && b.Site != "":
		return 0
	case a.Server == b.Server && a.Server != "" && a.Component != "":
		return 2
	}
	return 1
}

// crosses reports whether a child is in another process than its parent.
func crosses(parent, child *span.Span) bool {
	switch near(parent, child) {
	case 0:
		return true
	case 1: // a component that calls itself
		return parent.Asks() && child.Serves()
	}
	return false
}

// isClient reports whether a node is the client's half of what it calls: by its
// kind, or, where kinds are unknown, by having nothing but one child in another
// process and a parent in its own.
func (r *resolver) isClient(i int32) bool {
	n := &r.nodes[i]
	if n.Asks() {
		return true
	}
	if n.Serves() || n.Kind == span.Producer {
		return false
	}
	if next := int(i) + 1; next < len(r.nodes) && r.nodes[next].ID == n.ID {
		return true // the server's half has the id of this one
	}
	if n.Kind != span.Unspecified || n.to-n.from != 1 {
		return false
	}
	child := &r.nodes[r.children(n)[0]]
	return n.parent != none && !crosses(r.nodes[n.parent].Span, n.Span) && crosses(n.Span, child.Span)
}
