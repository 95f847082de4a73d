package join

import (
	"cmp"

	"penstock/producers/otlp/span"
	"penstock/schemas/event"
)

// pair makes the calls whose callee's span hangs below the caller's.
func (r *resolver) pair() {
	for i := range r.nodes {
		n := &r.nodes[i]
		if n.Kind == span.Producer || n.Kind == span.Consumer {
			n.is(Message)
			continue
		}
		if n.parent == none {
			continue
		}
		p := &r.nodes[n.parent]
		if p.Kind == span.Producer || p.Kind == span.Consumer && n.Serves() {
			n.is(Message)
			continue
		}
		if !crosses(p.Span, n.Span) {
			if n.Serves() {
				n.is(Inside)
			}
			continue
		}
		if n.Serves() || n.Kind == span.Unspecified && !n.Shared {
			r.join(p, n)
		} else {
			r.seen.gaps++
		}
	}
}

// is decides a node's fate unless it has one.
func (n *node) is(f Fate) {
	if !n.decided {
		n.fate, n.decided = f, true
	}
}

// join makes the call of n, which hangs below p in another process.
func (r *resolver) join(p, n *node) {
	if p.Component == "" || n.Component == "" && p.Callee == "" {
		n.is(Unnamed)
		if p.asks {
			p.is(Unnamed)
		}
		return
	}
	var client *node
	if p.asks {
		client = p
	}
	if !r.call(client, n, partyOf(p.Span)) {
		n.is(Timeless)
		if p.asks {
			p.is(Timeless)
		}
		return
	}
	n.is(Called)
	if p.asks {
		p.callees++
		// A client may be undecided so far or have one callee already.
		if !p.decided || p.fate == Timeless || p.fate == Unnamed {
			p.fate, p.decided = Half, true
		}
	}
}

// alone decides the fate of a node that no other has decided.
func (r *resolver) alone(n *node, entries Entries) {
	switch {
	case n.asks:
		r.client(n)
	case n.parent != none:
		n.is(Inside)
	case n.Serves() || n.Kind == span.Unspecified && entries == EntryAll && !n.orphan:
		r.server(n, entries)
	case n.orphan:
		n.is(Orphan)
	default:
		n.is(Root)
	}
}

// client decides on a client's half whose callee has no span.
func (r *resolver) client(n *node) {
	to := Party{Component: n.Callee}
	for _, c := range r.children(n) {
		switch child := &r.nodes[c]; {
		case child.asks && !crosses(n.Span, child.Span), child.Serves() && !crosses(n.Span, child.Span):
			n.is(Inside) // the inner client counts; or it called its own process
			return
		case crosses(n.Span, child.Span) && child.Component != "":
			to = partyOf(child.Span) // whoever answered, by what it did next
		}
	}
	switch {
	case n.Component == "" || to.Component == "":
		n.is(Unnamed)
	case n.Start == span.Unknown:
		n.is(Timeless)
	default:
		n.is(Called)
		r.call(n, nil, partyOf(n.Span))
		r.calls[len(r.calls)-1].To = to
	}
}

// server decides on a server's half without a client.
func (r *resolver) server(n *node, entries Entries) {
	switch {
	case n.orphan && n.Caller == "":
		n.is(Orphan)
	case n.Caller == "" && entries == EntryNone:
		n.is(Root)
	case n.Component == "":
		n.is(Unnamed)
	case n.Start == span.Unknown:
		n.is(Timeless)
	default:
		n.is(Called)
		from := Party{Component: n.Caller}
		if n.Caller == "" {
			from.Site = n.Site // where it entered, as entry points say it
		}
		r.call(nil, n, from)
		r.calls[len(r.calls)-1].Entry = n.Caller == ""
	}
}

// call makes a call of its halves, of which one may be nil; it reports whether
// either says when it was.
func (r *resolver) call(client, server *node, from Party) bool {
	c := made{client: client, server: server, Call: Call{
		From: from, Client: span.Unknown, Server: span.Unknown, Own: span.Unknown, Status: event.NullStatus,
		OneSided: client == nil || server == nil,
	}}
	var ends, starts [2]int64
	for i, s := range [...]*node{client, server} {
		ends[i], starts[i] = span.Unknown, span.Unknown
		if s == nil {
			continue
		}
		ends[i], starts[i] = s.End(), s.Start
		c.Bytes = max(c.Bytes, s.Bytes)
		c.Class, c.Owner, c.User = cmp.Or(s.Class, c.Class), cmp.Or(s.Owner, c.Owner), cmp.Or(s.User, c.User)
		c.Op = max(c.Op, s.Op)
		c.Follows = c.Follows || s.Follows
		c.ID, c.Trace = s.ID, s.Trace
		if c.Status == event.NullStatus {
			c.Status = s.Status // what the caller saw, if it says
		}
	}
	if client != nil {
		c.Client = client.Duration
		if client.Trace != client.Trace.Low() {
			c.Trace = client.Trace
		}
	}
	if server != nil {
		c.Server, c.To = server.Duration, partyOf(server.Span)
		if c.To.Component == "" && client != nil {
			c.To.Component = client.Callee
		}
		if server.Trace != server.Trace.Low() {
			c.Trace = server.Trace
		}
	}
	for _, t := range [...]int64{ends[0], ends[1], starts[0], starts[1]} {
		if t != span.Unknown {
			c.Time = t
			c.NoDuration = ends[0] == span.Unknown && ends[1] == span.Unknown
			r.calls = append(r.calls, c)
			return true
		}
	}
	return false
}

// measure says of a call what is known once all are.
func (r *resolver) measure(c *made) {
	if c.client != nil && c.server != nil {
		c.Fanout = c.client.callees > 1
		c.Negative = c.Network() != span.Unknown && c.Network() < 0
		cEnd, sEnd := c.client.End(), c.server.End()
		c.Skewed = cEnd != span.Unknown && sEnd != span.Unknown && !c.Follows && !c.Negative &&
			(c.server.Start < c.client.Start || sEnd > cEnd)
	}
	if c.server != nil {
		c.Own = r.own(c.server)
	}
}

// count adds a call to the totals.
func (c *made) count(st *Stats) {
	for _, f := range [...]struct {
		is bool
		n  *int64
	}{{c.Entry, &st.Entries}, {c.OneSided, &st.OneSided}, {c.Skewed, &st.Skewed}, {c.Negative, &st.Negative}} {
		if f.is {
			*f.n++
		}
	}
}
