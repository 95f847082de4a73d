package join

import (
	"cmp"
	"slices"

	"penstock/producers/otlp/span"
)

// interval is a time in ns from one to the other.
type interval struct{ from, to int64 }

// visit is a node to look at, and the end of the one above it.
type visit struct {
	node int32
	end  int64
}

// own is how long a server's half needed itself: its duration less the union of
// the calls of its own process that it waited for, span.Unknown without a duration.
//
// What ends after the span that it hangs below was not waited for, nor was anything
// below it. A callee without a client's half gives its own times instead; they are
// another clock's, so they count only if they lie within the server's.
func (r *resolver) own(server *node) int64 {
	begin, end := server.Start, server.End()
	if end == span.Unknown {
		return server.Duration
	}
	r.waits, r.stack = r.waits[:0], r.stack[:0]
	r.below(server, end)
	for len(r.stack) > 0 {
		v := r.stack[len(r.stack)-1]
		r.stack = r.stack[:len(r.stack)-1]
		n := &r.nodes[v.node]
		remote := crosses(r.nodes[n.parent].Span, n.Span)
		calls := remote || n.asks && n.fate != Inside || n.Kind == span.Producer
		if n.Kind == span.Consumer {
			continue
		}
		nEnd := n.End()
		if nEnd == span.Unknown {
			if !calls {
				r.below(n, v.end)
			}
			continue
		}
		if n.Kind == span.Producer || n.Follows || nEnd > v.end {
			if calls {
				r.seen.asynchronous++
			}
			continue
		}
		if !calls {
			r.below(n, nEnd)
			continue
		}
		if remote && n.Start < begin {
			continue // by another clock
		}
		if from := max(n.Start, begin); from < nEnd {
			r.waits = append(r.waits, interval{from, nEnd})
		}
	}
	return server.Duration - union(r.waits)
}

// below puts the children of a node on the stack.
func (r *resolver) below(n *node, end int64) {
	for _, c := range r.children(n) {
		r.stack = append(r.stack, visit{c, end})
	}
}

// union is the length of the union of intervals, which it sorts.
func union(w []interval) (total int64) {
	slices.SortFunc(w, func(a, b interval) int { return cmp.Compare(a.from, b.from) })
	reached := int64(span.Unknown)
	for _, i := range w {
		if i.to <= reached {
			continue
		}
		total += i.to - max(i.from, reached)
		reached = i.to
	}
	return total
}
