package placement

import (
	"math"

	"penstock/schemas/control"
)

// outcomeStatus maps what executors say to how a move stands; 0 for a status
// that no move has.
func outcomeStatus(s control.Status) uint8 {
	switch s {
	case control.Done, control.AlreadyApplied:
		return moveDone
	case control.Failed:
		return moveFailed
	case control.Refused:
		return moveRefused
	case control.Expired:
		return moveExpired
	case control.Advised:
		return moveAdvised
	}
	return 0
}

// Apply takes the outcome of a move in. Done: the owner's data is at the
// destination, its cooldown begins now, that is at the end of the last window,
// and the move enters the history. Anything else: it stays where it was, and no
// cooldown begins, since nothing has changed (P35); after a move that failed or
// expired the owner is held for some windows (Config.BackOff). Outcomes of moves
// that the policy doesn't wait for change nothing; the decider counts them.
func (t *Policy) Apply(o *control.Outcome) {
	if o.Status == control.Imported {
		if t.imports = append(t.imports, *o); len(t.imports) == importsHeld {
			t.takeImports()
		}
		return
	}
	t.takeImports()
	s := t.state
	status := outcomeStatus(o.Status)
	id := s.names.find(o.Owner)
	if status == 0 || id < 0 || s.move[id] < 0 {
		return
	}
	m := &s.moves[s.move[id]]
	if m.version != o.Move || m.status != movePending {
		return
	}
	s.promises.ended++
	if status == moveFailed || status == moveRefused || status == moveExpired {
		s.promises.bad++
	}
	s.changeMove(id, func(m *moveRecord) {
		m.status = status
		switch {
		case status == moveDone:
			m.changed = s.now
			m.succeed()
		case t.config.BackOff > 0 && (status == moveFailed || status == moveExpired):
			m.fail(s.now)
		}
	})
	if status != moveDone {
		return
	}
	from, to := m.from, m.to
	s.changeOwner(id, func() {
		s.site[id] = to
		s.flags[id] = s.flags[id]&^imported | moved | stale
	})
	h := doneMove{window: m.window, owner: id, from: from, to: to}
	s.history = append(s.history, h)
	s.digest.set.add(s.historyHash(h))
}

// importsHeld is how many imports are taken in at a time. A name costs as much as
// all names when it comes alone, and an import may bring a million.
const importsHeld = 1 << 16

// takeImports takes in the imports that Apply has put aside. Whatever asks for or
// changes the state comes behind it, so that nobody can tell when it was.
func (t *Policy) takeImports() {
	imports := t.imports
	if len(imports) == 0 {
		return
	}
	t.imports = t.imports[:0]
	s := t.state
	var unknown []string
	met := map[string]struct{}{}
	for i := range imports {
		o := &imports[i]
		if _, twice := met[o.Owner]; !twice && o.Owner != "" && o.Scope != "" && s.names.find(o.Owner) < 0 {
			met[o.Owner] = struct{}{}
			unknown = append(unknown, o.Owner)
		}
	}
	if len(unknown) > 0 {
		s.names.intern(unknown, t.workers)
		s.grow()
		t.follow()
	}
	for i := range imports {
		t.importLocation(&imports[i])
	}
	clear(imports)
}

// importLocation takes the operator's word for where an owner's data is: site,
// version and pin are what it says; of what is stored of the owner it says the
// least, for the decider has seen writes since it began only. A move under way is no longer waited for, a
// refusal or a failure no longer held against the owner, and an owner that was
// unknown is known from now on. Where the site is another than it was, that is a
// change, from which a cooldown runs. Where it is the one to which a move brought
// the data, it was moved there still: who imports again what he exported takes
// nothing away. One of a version below that of the last
// move that was done is late, and changes nothing.
//
// A move that was decided after the operator looked, and that goes out from the
// site that he names, is one that its mover will carry out, or refuse if the owner
// is pinned now: it stays under way. Every other is refused, for the entry that
// was imported is of another site or of a version as great.
func (t *Policy) importLocation(o *control.Outcome) {
	s := t.state
	if o.Owner == "" || o.Scope == "" || len(s.siteNames) >= math.MaxUint16-1 {
		return
	}
	id := s.names.find(o.Owner)
	if m := s.move[id]; m >= 0 && s.moves[m].status == moveDone && o.Move < s.moves[m].version {
		return
	}
	site, was := s.siteNumber(o.Scope), s.site[id]
	s.changeOwner(id, func() {
		s.site[id] = site
		s.stored[id] = max(s.stored[id], o.Bytes)
		if s.flags[id]&moved == 0 || was != site {
			s.flags[id] = s.flags[id]&^moved | imported
		}
		s.flags[id] = s.flags[id]&^pinned | isOwner | stale
		if o.Pinned {
			s.flags[id] |= pinned
		}
	})
	if s.move[id] < 0 && o.Move == 0 && (was == 0 || was == site) {
		return
	}
	if m := s.move[id]; m >= 0 && s.moves[m].status == movePending && s.moves[m].version > o.Move && s.moves[m].from == site {
		return
	}
	if m := s.move[id]; m >= 0 && s.moves[m].status == moveDone && s.moves[m].version == o.Move && was == site {
		return // The move that was done last, told once more.
	}
	s.changeMove(id, func(m *moveRecord) {
		// Versions that were used up by advice stay used up.
		m.version = max(m.version, o.Move)
		if was != 0 && was != site {
			m.changed = s.now
		}
		m.window, m.bytes, m.from, m.to, m.status, m.code = noTime, 0, 0, 0, 0, noReason
		m.succeed()
	})
}
