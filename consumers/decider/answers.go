package decider

import (
	"slices"

	"penstock/schemas/control"
)

// answers follows the moves that were sent to be applied until each is
// answered. From it follow what may be trimmed from COMMANDS and whether
// outcomes contradict what was promised.
type answers struct {
	Asked []*asked `json:"asked,omitempty"` // windows with moves, ascending

	open map[moveKey]*sent
}

// asked is a window in which moves were sent to be applied.
type asked struct {
	End   int64   `json:"end"` // µs
	Moves int     `json:"moves"`
	Kept  int     `json:"kept,omitempty"`
	Bad   int     `json:"bad,omitempty"` // failed or refused
	Sent  []*sent `json:"sent,omitempty"`
	// Forgiven windows were before the operator last took matters in hand.
	Forgiven bool `json:"forgiven,omitempty"`
}

// sent is a command with moves that are not all answered.
type sent struct {
	Scope string    `json:"scope"`
	Seq   uint64    `json:"seq"` // on COMMANDS
	Open  []moveKey `json:"open"`

	of   *asked
	left int
}

type moveKey struct {
	Owner   string `json:"owner"`
	Version uint64 `json:"version"`
}

// ask notes the moves of a command that was sent in mode act.
func (a *answers) ask(end int64, scope string, seq uint64, moves []control.Move) {
	if len(moves) == 0 {
		return
	}
	var w *asked
	if n := len(a.Asked); n > 0 && a.Asked[n-1].End == end {
		w = a.Asked[n-1]
	} else {
		w = &asked{End: end}
		a.Asked = append(a.Asked, w)
	}
	w.Moves += len(moves)
	s := &sent{Scope: scope, Seq: seq, of: w, left: len(moves)}
	for _, m := range moves {
		s.Open = append(s.Open, moveKey{m.Owner, m.Version})
	}
	w.Sent = append(w.Sent, s)
	a.index(s)
}

func (a *answers) index(s *sent) {
	if a.open == nil {
		a.open = map[moveKey]*sent{}
	}
	for _, k := range s.Open {
		a.open[k] = s
	}
}

// answer takes in an outcome and reports whether it was the first to a move
// that was asked for.
func (a *answers) answer(o *control.Outcome) bool {
	k := moveKey{o.Owner, o.Move}
	s, ok := a.open[k]
	if !ok || o.Owner == "" {
		return false
	}
	delete(a.open, k)
	w := s.of
	if s.left--; s.left == 0 {
		w.Sent = slices.DeleteFunc(w.Sent, func(x *sent) bool { return x == s })
	}
	if o.Status == control.Failed || o.Status == control.Refused {
		w.Bad++
	} else {
		w.Kept++
	}
	return true
}

// verdict says whether a window's outcomes contradict its decision: more than
// half of its moves failed or were refused. It is known once enough of them are
// answered, whatever the rest will be.
func (w *asked) verdict() (contradicted, known bool) {
	switch {
	case 2*w.Bad > w.Moves:
		return true, true
	case 2*w.Kept >= w.Moves:
		return false, true
	}
	return false, false
}

// contradictions is the number of windows running, up to the last one of which
// the verdict is known, that were contradicted. Windows without a verdict yet
// are passed over. It forgets windows that are answered and can no longer
// matter.
func (a *answers) contradictions() int {
	streak, begin := 0, 0
	for i, w := range a.Asked {
		contradicted, known := w.verdict()
		switch {
		case w.Forgiven, known && !contradicted:
			streak, begin = 0, i+1
		case known:
			streak++
		}
	}
	kept := a.Asked[:0]
	for i, w := range a.Asked {
		if i >= begin || len(w.Sent) > 0 {
			kept = append(kept, w)
		}
	}
	clear(a.Asked[len(kept):])
	a.Asked = kept
	return streak
}

// forgive makes the windows so far count no more.
func (a *answers) forgive() {
	for _, w := range a.Asked {
		w.Forgiven = true
	}
}

// oldest is the least sequence of a command of that scope with a move that is
// not answered, or none.
func (a *answers) oldest(scope string) (seq uint64, found bool) {
	for _, w := range a.Asked {
		for _, s := range w.Sent {
			if s.Scope == scope && (!found || s.Seq < seq) {
				seq, found = s.Seq, true
			}
		}
	}
	return seq, found
}

// unanswered is the number of moves without an answer.
func (a *answers) unanswered() int { return len(a.open) }

// settle drops answered moves from what a snapshot will hold.
func (a *answers) settle() {
	for _, w := range a.Asked {
		for _, s := range w.Sent {
			s.Open = slices.DeleteFunc(s.Open, func(k moveKey) bool { return a.open[k] != s })
		}
	}
}

// restore rebuilds what a snapshot leaves out.
func (a *answers) restore() {
	for _, w := range a.Asked {
		for _, s := range w.Sent {
			s.of, s.left = w, len(s.Open)
			a.index(s)
		}
	}
}
