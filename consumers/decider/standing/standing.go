// Package standing holds what the executors of a scope's tables have made of them: which
// epochs were answered, whether a table is in force anywhere, and how many in a row are
// not.
//
// A Standing is at first of no epoch. Take and Judge bring it on: a policy counts
// Epoch up for a table that it sends, takes outcomes in between windows, and judges once at the next
// window. Each executor answers for itself, so a table is in force if one of them has it,
// and only when all answers of a window are in is it known that none has. Nothing in it
// fails. It is used by one goroutine.
package standing

import (
	"crypto/sha256"
	"encoding/hex"

	"penstock/consumers/decider"
	"penstock/schemas/control"
)

// badInARow is how many tables in a row nobody takes before the outcomes contradict the
// policy.
const badInARow = 3

// Standing is that of one scope's tables.
type Standing struct {
	Epoch   uint64 // the last one sent or with an outcome
	Done    uint64 // the last one that an executor has in force
	Bad     uint64 // one that an executor refused or could not apply, 0: none; judged at the next window
	Refused string // hash of a table that was refused: it is not sent again
	Failed  int    // tables in a row that were refused or failed everywhere
}

// Take takes an outcome of the scope in. One of an earlier epoch changes nothing.
func (s *Standing) Take(o *control.Outcome) {
	if o.Epoch < s.Epoch {
		return
	}
	s.Epoch = o.Epoch
	switch o.Status {
	case control.Done, control.AlreadyApplied:
		s.Done = o.Epoch
		s.Failed, s.Refused = 0, ""
	case control.Refused, control.Failed:
		if s.Done < o.Epoch {
			s.Bad = o.Epoch
		}
	}
}

// Judge looks at the outcomes since the last window and reports whether every executor
// that answered refused the last table, or could not apply it: the one before it is in
// force then. The last one, of that hash, is not to be sent again (P37).
func (s *Standing) Judge(last string) (nobody bool) {
	if nobody = s.Bad > s.Done; nobody {
		s.Failed++
		s.Refused = last
	}
	s.Bad = 0
	return nobody
}

// Broken says that executors have refused or failed several tables of the scope of that
// name running, nil if not. Once said, they count anew.
func (s *Standing) Broken(scope string) *control.Reason {
	if s.Failed < badInARow {
		return nil
	}
	r := &control.Reason{
		Code: decider.PromisesBroken, Scope: scope, Count: int64(s.Failed),
		Text: "tables in a row were refused or failed; what is in force is not what was decided",
	}
	s.Failed = 0
	return r
}

// HashOf tells tables apart: 16 hex digits of its canonical JSON's sha256.
func HashOf[T control.SplitTable | control.ServersTable | control.CodingTable](table *T) string {
	body, err := control.Encode(table)
	if err != nil {
		// Names come from UTF-8 columns, and shares, thresholds and models are finite: it
		// cannot fail.
		panic("standing: " + err.Error())
	}
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:8])
}
