package placement

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"penstock/schemas/control"
)

// maxMovesBytes bounds the moves of one command so that the whole message stays
// below 512 KB (DESIGN §3.3).
const maxMovesBytes = 512<<10 - 4096

// commands turns the picks into commands, sites in config order, moves by owner
// id, and notes in the state what will be applied. In a window whose commands
// are not published there are none.
func (p *plan) commands() []control.Command {
	s := p.t.state
	if len(p.picks) == 0 || !p.in.Publishes() {
		return nil
	}
	p.reportMoves()
	slices.SortFunc(p.picks, byDestination(s.names))
	var out []control.Command
	for lo := 0; lo < len(p.picks); {
		hi := lo
		for hi < len(p.picks) && p.picks[hi].to == p.picks[lo].to {
			hi++
		}
		out = append(out, p.scope(p.picks[lo:hi])...)
		lo = hi
	}
	return out
}

// reportMoves counts the moves that no reason of a site counts.
func (p *plan) reportMoves() {
	s := p.t.state
	for _, m := range p.picks {
		if m.why == LMatch || m.why == Improved {
			p.reasons.tally.add(m.why, s.names.rank[m.id])
		}
	}
}

// scope returns the commands of one destination.
func (p *plan) scope(picks []pick) []control.Command {
	s := p.t.state
	var out []control.Command
	var moves []control.Move
	var counts [codes]int64
	size := 0
	flush := func() {
		if len(moves) > 0 {
			out = append(out, control.Command{
				Scope: s.siteName(picks[0].to), Reason: commandReason(counts), Placement: &control.Moves{Moves: moves},
			})
		}
		moves, counts, size = nil, [codes]int64{}, 0
	}
	for _, m := range picks {
		move := p.issue(m)
		n := moveSize(move)
		if len(moves) == control.MaxMoves || size+n > maxMovesBytes {
			flush()
		}
		if moves == nil {
			moves = make([]control.Move, 0, min(len(picks), control.MaxMoves))
		}
		moves, size = append(moves, move), size+n
		counts[m.why]++
	}
	flush()
	return out
}

// issue gives a move its version and notes it: as under way in mode act, as
// advice otherwise. Versions are used up by advice too, so that an owner and a
// version name one move and have one outcome.
func (p *plan) issue(m pick) control.Move {
	s := p.t.state
	status := uint8(moveAdvised)
	if p.in.Acts() {
		status = movePending
	}
	var version uint64
	s.changeMove(m.id, func(r *moveRecord) {
		r.version++
		r.window, r.bytes, r.from, r.to = s.now, s.stored[m.id], s.site[m.id], m.to
		r.status, r.code = status, m.why
		version = r.version
	})
	return control.Move{
		Owner: strings.Clone(s.names.at(m.id)), From: s.siteName(s.site[m.id]), To: s.siteName(m.to),
		Version: version, Bytes: s.stored[m.id],
	}
}

// moveSize bounds the bytes of a move in JSON, with its comma.
func moveSize(m control.Move) int {
	n := len(`{"owner":,"from":,"to":,"version":,"bytes":},`) + 2*20
	for _, v := range [...]string{m.Owner, m.From, m.To} {
		n += textSize(v)
	}
	return n
}

// textSize bounds the bytes of a text in JSON.
func textSize(v string) int {
	for i := range len(v) {
		if c := v[i]; c < 0x20 || c == '"' || c == '\\' || c >= 0x7f || c == '<' || c == '>' || c == '&' {
			b, err := json.Marshal(v)
			if err != nil {
				return 6*len(v) + 2
			}
			return len(b)
		}
	}
	return len(v) + 2
}

// commandReason says what a command's moves are for.
func commandReason(counts [codes]int64) control.Reason {
	var r control.Reason
	var parts []string
	for _, c := range [...]Code{Rollback, Evacuating, OverCapacity, LMatch, Improved} {
		if counts[c] == 0 {
			continue
		}
		if r.Code == "" {
			r.Code = c.String()
		}
		r.Count += counts[c]
		parts = append(parts, fmt.Sprintf("%d %s", counts[c], commandTexts[c]))
	}
	r.Text = strings.Join(parts, ", ")
	return r
}

var commandTexts = [codes]string{
	Rollback: "moved back", Evacuating: "out of a site being emptied", OverCapacity: "out of a site over capacity",
	LMatch: "to their L-match", Improved: "to where the plan costs less",
}
