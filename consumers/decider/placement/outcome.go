package placement

import (
	"maps"

	"penstock/schemas/control"
)

// Why an outcome changed nothing: the keys of Ignored.
const (
	IgnoredStatus  = "unknown-status" // a status that no move has
	IgnoredOwner   = "unknown-owner"  // an owner that was never moved
	IgnoredVersion = "other-version"  // a version that isn't the owner's last
	IgnoredTwice   = "answered"       // the move has its outcome already
)

// Ignored returns how many outcomes changed nothing since the process began, by
// reason. It is no part of the state: after a restart outcomes may come again.
func (t *TMatch) Ignored() map[string]int64 { return maps.Clone(t.ignored) }

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
// policy doesn't wait for change nothing but the counts of Ignored.
func (t *TMatch) Apply(o *control.Outcome) {
	s := t.state
	status := outcomeStatus(o.Status)
	id := s.names.find(o.Owner)
	switch {
	case status == 0:
		t.ignored[IgnoredStatus]++
		return
	case id < 0 || s.move[id] < 0:
		t.ignored[IgnoredOwner]++
		return
	}
	m := &s.moves[s.move[id]]
	switch {
	case m.version != o.Move:
		t.ignored[IgnoredVersion]++
		return
	case m.status == moveAdvised && status == moveAdvised:
		return
	case m.status != movePending:
		t.ignored[IgnoredTwice]++
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
