package join

import "penstock/producers/otlp/span"

// side says what a remembered id means.
type side uint8

const (
	sawClient  side = iota // the client's half has been used
	sawServer              // the server's half has been used
	wantClient             // a call was made without the client of that id
	wantServer             // a call was made without the server below that id
)

type memoryKey struct {
	trace span.Trace
	id    span.ID
	side  side
}

// memory knows the halves of the last calls.
type memory struct {
	known map[memoryKey]struct{}
	ring  []memoryKey
	next  int
	most  int
}

// newMemory remembers that many calls: at most two ids each.
func newMemory(calls int) memory {
	return memory{known: make(map[memoryKey]struct{}), most: 2 * calls}
}

func (m *memory) add(k memoryKey) {
	if _, ok := m.known[k]; ok {
		return
	}
	if len(m.ring) < m.most {
		m.ring = append(m.ring, k)
	} else {
		delete(m.known, m.ring[m.next])
		m.ring[m.next] = k
		m.next = (m.next + 1) % m.most
	}
	m.known[k] = struct{}{}
}

// keep remembers a call that was made.
func (m *memory) keep(trace span.Trace, c *made) {
	switch {
	case c.client != nil:
		m.add(memoryKey{trace, c.client.ID, sawClient})
		if c.server == nil {
			m.add(memoryKey{trace, c.client.ID, wantServer})
		}
	case c.server.Shared:
		m.add(memoryKey{trace, c.server.ID, wantClient})
	case c.server.Parent != (span.ID{}):
		m.add(memoryKey{trace, c.server.Parent, wantClient})
	}
	if c.server != nil {
		m.add(memoryKey{trace, c.server.ID, sawServer})
	}
}

// fate is that of a span whose call was made before.
func (m *memory) fate(trace span.Trace, s *span.Span) (Fate, bool) {
	if len(m.known) == 0 {
		return 0, false
	}
	has := func(id span.ID, side side) bool {
		_, ok := m.known[memoryKey{trace, id, side}]
		return ok
	}
	if !s.Asks() && has(s.ID, sawServer) && (s.Serves() || !has(s.ID, sawClient)) || !s.Serves() && has(s.ID, sawClient) {
		return Duplicate, true
	}
	if s.Asks() {
		return Late, has(s.ID, wantClient)
	}
	above := s.Parent
	if s.Shared {
		above = s.ID
	}
	return Late, s.Serves() && has(above, wantServer)
}
