package placement

import "penstock/schemas/control"

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
// cooldown begins, since nothing has changed (P35). Outcomes of moves that the
// policy doesn't wait for change nothing; the decider counts them.
func (t *TMatch) Apply(o *control.Outcome) {
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
	s.changeMove(id, func(m *moveRecord) {
		m.status = status
		if status == moveDone {
			m.changed = s.now
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
