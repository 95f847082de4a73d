package simcoder

import (
	"time"

	"penstock/consumers/decider"
	"penstock/schemas/control"
	"penstock/schemas/window"
)

// looped is the policy in the loop: windows of chunk tasks, and tables on their way.
type looped struct {
	*Loop
	rows   *rows
	window int64 // end of the window that is open, ns
	width  int64
	due    int64 // when the table on its way is in force, never: there is none
	table  *control.CodingTable
	tables int
}

func newLooped(l *Loop, op string) *looped {
	width := int64(l.Policy.Width())
	return &looped{Loop: l, rows: newRows(l.Store, op), window: width, width: width, due: never}
}

// next is the time of what comes next: a table in force, or a window's end.
func (l *looped) next() int64 { return min(l.window, l.due) }

// step does it. A table that is still on its way when the next window ends is
// overtaken by its successor, if there is one.
func (l *looped) step(s *simulation) {
	if l.due <= l.window {
		s.goTo(l.due)
		l.due = never
		l.tables++
		if err := l.Install(time.Duration(s.now), l.table); err != nil {
			s.failed, s.over = err, true
		}
		return
	}
	s.goTo(l.window)
	start, end := epoch.Add(time.Duration(l.window-l.width)), epoch.Add(time.Duration(l.window))
	l.window += l.width
	table := l.rows.table(start.UnixMicro())
	if table == nil {
		return // A window without panes is not there.
	}
	if t := decide(l.Policy, table, start, end); t != nil {
		l.due, l.table = s.now+int64(l.Feedback), t
	}
}

// decide shows a policy a window, in mode act, and returns the table that it sends; nil
// if it sends none.
func decide(p decider.Policy, table *window.Table, start, end time.Time) *control.CodingTable {
	out := p.Decide(decider.Input{
		Window:   control.Window{Start: start, End: end},
		Tables:   map[string]*window.Table{window.Storage.Name: table},
		Operator: control.Operator{Mode: control.Act},
	})
	if len(out.Commands) == 0 {
		return nil
	}
	return out.Commands[0].Coding
}
