package join

import "math"

// look resolves what is ripe: whole traces that are quiet or old, and single calls
// of those that go on.
func (j *Joiner) look(now int64) {
	if now-j.looked < j.o.Step {
		return
	}
	j.looked = now
	for t := j.quiet.head; t != nil; {
		next := t.quiet.after
		switch {
		case j.o.MaxAge > 0 && now-t.first >= j.o.MaxAge:
			j.close(t)
		case j.o.Window <= 0 || t.parked:
		case now-t.last >= j.o.Window:
			j.rest(t, now)
		case now-t.due >= j.o.Step: // Short traces are quiet by then.
			j.resolver.resolve(t.spans, j.o.Entries)
			j.ripen(t, now)
		}
		t = next
	}
}

// rest ends a quiet trace, unless it tells itself that it isn't over: what hangs below
// a span of its own process, which isn't here, is there before it, because spans come
// when they end. A server's half says no such thing: its client may write no spans.
func (j *Joiner) rest(t *trace, now int64) {
	j.resolver.resolve(t.spans, j.o.Entries)
	for i := range j.resolver.nodes {
		if n := &j.resolver.nodes[i]; n.orphan && !n.Serves() {
			t.parked = true
			j.ripen(t, now)
			return
		}
	}
	j.finish(t)
}

// largeTrace is for how many spans a look at a trace may cost what it costs; larger
// ones are looked at less often.
const largeTrace = 8192

// ripen makes those calls of an open trace, just resolved, that have waited for a
// Window. What the callee did before it ended is all here by then, so its own time is
// known, too.
func (j *Joiner) ripen(t *trace, now int64) {
	t.due = math.MaxInt64
	for i := range j.resolver.calls {
		c := &j.resolver.calls[i]
		if t.has(c.of()) || !c.plain() {
			continue
		}
		if ripe := c.heard() + j.o.Window; ripe > now {
			t.due = min(t.due, ripe)
			continue
		}
		j.settle(t, c)
		j.call(t, c)
	}
	t.due = max(t.due, now+j.o.Step*int64(len(t.spans)/largeTrace))
}

// settle gives the halves of a call that is made their fates.
func (j *Joiner) settle(t *trace, c *made) {
	if t.made == nil {
		t.made = make(map[half]struct{})
	}
	for _, n := range [...]*node{c.client, c.server} {
		if n == nil || t.has(n) {
			continue
		}
		j.stats.Account[n.fate]++
		t.made[halfOf(n)] = struct{}{}
	}
}

// has reports whether a node's fate is settled.
func (t *trace) has(n *node) bool {
	if len(t.made) == 0 {
		return false
	}
	_, ok := t.made[halfOf(n)]
	return ok
}

// of is the half that a call is made of.
func (c *made) of() *node {
	if c.server != nil {
		return c.server
	}
	return c.client
}

// plain reports whether the kinds of both halves are known. Those of others may turn
// out to be another thing as long as spans of the trace come.
func (c *made) plain() bool {
	for _, n := range [...]*node{c.client, c.server} {
		if n != nil && !n.Asks() && !n.Serves() {
			return false
		}
	}
	return true
}

// heard is when the wait for a call's other half began.
func (c *made) heard() int64 {
	at := c.of().Heard
	if c.client != nil {
		at = max(at, c.client.Heard)
	}
	return at
}
