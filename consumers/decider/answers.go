package decider

import (
	"slices"

	"penstock/schemas/control"
)

// answers follows the moves that were sent to be applied until each is
// answered. From it follow what may be trimmed from COMMANDS and what is under
// way.
type answers struct {
	Asked []*asked `json:"asked,omitempty"` // windows with open moves, ascending

	open map[moveKey]*sent
}

// asked is a window in which moves were sent to be applied that are not all
// answered.
type asked struct {
	End  int64   `json:"end"` // µs
	Sent []*sent `json:"sent,omitempty"`
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
// that was asked for. An imported location answers nothing.
func (a *answers) answer(o *control.Outcome) bool {
	k := moveKey{o.Owner, o.Move}
	s, ok := a.open[k]
	if !ok || o.Owner == "" || o.Status == control.Imported {
		return false
	}
	delete(a.open, k)
	if s.left--; s.left > 0 {
		return true
	}
	w := s.of
	w.Sent = slices.DeleteFunc(w.Sent, func(x *sent) bool { return x == s })
	if len(w.Sent) == 0 {
		a.Asked = slices.DeleteFunc(a.Asked, func(x *asked) bool { return x == w })
	}
	return true
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

// restore rebuilds what a snapshot leaves out. Snapshots of before hold windows
// of which all is answered.
func (a *answers) restore() {
	a.Asked = slices.DeleteFunc(a.Asked, func(w *asked) bool { return len(w.Sent) == 0 })
	for _, w := range a.Asked {
		for _, s := range w.Sent {
			s.of, s.left = w, len(s.Open)
			a.index(s)
		}
	}
}
