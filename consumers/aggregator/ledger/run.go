package ledger

import (
	"slices"

	"penstock/schemas/event"
	"penstock/schemas/window"
)

// maxMarks bounds the marks of a run that wait for their sequences.
const maxMarks = 64

// run is what is known of one run on this partition.
type run struct {
	sequences
	name    string
	marks   []window.PendingMark // by Upto
	ahead   int64
	seen    int64
	trimmed bool
	parked  int64
	account window.Account
}

func newRun(name string) *run {
	return &run{name: name, sequences: sequences{watermark: window.NullInt}}
}

func restoreRun(w window.Run) *run {
	return &run{
		name: w.Run,
		sequences: sequences{
			contiguous: w.Contiguous, watermark: w.Watermark,
			above: slices.Clone(w.Above), gaps: slices.Clone(w.Gaps), lost: slices.Clone(w.Lost),
		},
		marks: slices.Clone(w.Marks), ahead: w.Ahead, seen: w.Seen,
		trimmed: w.Trimmed, parked: w.Parked, account: w.Account,
	}
}

func (r *run) commit(ended bool) window.Run {
	return window.Run{
		Run: r.name, Contiguous: r.contiguous, Watermark: r.watermark,
		Above: slices.Clone(r.above), Gaps: slices.Clone(r.gaps), Lost: slices.Clone(r.lost),
		Marks: slices.Clone(r.marks), Ahead: r.ahead, Seen: r.seen, Ended: ended,
		Trimmed: r.trimmed, Parked: r.parked, Account: r.account,
	}
}

// idle reports whether the run was silent for the idle timeout.
func (r *run) idle(now, timeout int64) bool {
	return timeout > 0 && now-r.seen >= timeout
}

// await keeps a mark until its sequences are there. Beyond the bound the lowest
// heartbeat goes: a later mark tells the same and more.
func (r *run) await(m window.PendingMark) {
	i, _ := slices.BinarySearchFunc(r.marks, m, func(a, b window.PendingMark) int {
		if a.Upto != b.Upto {
			return cmpSpan(a.Upto, a.Upto, b.Upto)
		}
		return compareKind(a.Kind, b.Kind)
	})
	if i < len(r.marks) && r.marks[i].Upto == m.Upto && r.marks[i].Kind == m.Kind {
		r.marks[i].Watermark = max(r.marks[i].Watermark, m.Watermark)
		return
	}
	r.marks = slices.Insert(r.marks, i, m)
	if len(r.marks) <= maxMarks {
		return
	}
	j := slices.IndexFunc(r.marks, func(m window.PendingMark) bool { return m.Kind == string(event.Heartbeat) })
	r.marks = slices.Delete(r.marks, max(j, 0), max(j, 0)+1)
}

func compareKind(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// settle applies the marks whose sequences are all there. It reports whether a
// barrier and whether the end was among them.
func (r *run) settle() (barrier, end bool) {
	n := 0
	for n < len(r.marks) && r.marks[n].Upto <= r.contiguous {
		m := r.marks[n]
		r.watermark = max(r.watermark, m.Watermark)
		barrier = barrier || m.Kind == string(event.Barrier)
		end = end || m.Kind == string(event.End)
		n++
	}
	if n > 0 {
		r.marks = slices.Delete(r.marks, 0, n)
	}
	return barrier, end
}
