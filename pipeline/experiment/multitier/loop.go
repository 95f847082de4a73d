package multitier

import (
	"context"
	"fmt"
	"time"

	"penstock/consumers/aggregator/ledger"
	"penstock/consumers/aggregator/rollup"
	"penstock/consumers/decider"
	"penstock/consumers/decider/split"
	"penstock/infra/shares"
	"penstock/schemas/control"
	"penstock/schemas/event"
	"penstock/schemas/window"
)

// epoch is when simulated time begins.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// loop is aggregator, decider and executor: rows to windows, windows to tables,
// tables into force.
type loop struct {
	s      *simulation
	start  int64 // µs since 1970 of time 0
	state  rollup.State
	batch  event.Requests
	class  []ledger.Class
	blank  event.Request
	closed []control.Window // not decided yet
	tables []map[string]*window.Table
	epochs map[string]uint64
}

func newLoop(s *simulation) *loop {
	state, err := rollup.New(window.Fast, window.Widths{})
	if err != nil {
		// The group and the widths are the house's own.
		panic("multitier: " + err.Error())
	}
	return &loop{
		s: s, start: epoch.UnixMicro(), state: state, class: make([]ledger.Class, event.MaxRows),
		blank: event.NewRequest(0), epochs: map[string]uint64{},
	}
}

// row writes the row of a call that has ended.
func (l *loop) row(c *call) {
	r := l.blank
	r.Time = l.start + l.s.now
	if c.caller != outside {
		r.FromComponent = l.s.app.Components[c.caller].Name
	}
	r.FromSite, r.ToSite = l.s.app.Sites[c.from].Name, l.s.app.Sites[c.site].Name
	r.ToComponent = l.s.app.Components[c.component].Name
	r.Wait, r.Service, r.Network, r.Status = c.wait, c.service, c.way, c.status
	if l.batch.Append(&r); l.batch.Len() == event.MaxRows {
		l.deliver()
	}
}

func (l *loop) deliver() {
	if l.batch.Len() > 0 {
		l.state.Add(&l.batch, l.class[:l.batch.Len()])
		l.batch.Reset()
	}
}

// cut closes the window that ends at a time.
func (l *loop) cut(end int64) {
	l.deliver()
	tables := map[string]*window.Table{}
	for _, t := range l.state.Tables() {
		tables[t.Rollup.Name] = t
	}
	to := epoch.Add(time.Duration(end) * time.Microsecond)
	l.closed = append(l.closed, control.Window{Start: to.Add(-l.s.o.Policy.Width()), End: to})
	l.tables = append(l.tables, tables)
}

// decide decides the oldest closed window and brings its tables into force. A
// window without rows is not there (DESIGN §3.2).
func (l *loop) decide() error {
	in := decider.Input{Window: l.closed[0], Tables: l.tables[0], Operator: control.Operator{Mode: control.Act}}
	l.closed, l.tables = l.closed[1:], l.tables[1:]
	if len(in.Tables) == 0 {
		return nil
	}
	for _, c := range l.s.o.Policy.Decide(in).Commands {
		l.epochs[c.Scope]++
		n := l.epochs[c.Scope]
		if _, err := l.s.router.Put(context.Background(), shares.Table{From: c.Scope, Epoch: n, Rows: c.Split.Table, Probes: c.Split.Probes}); err != nil {
			return fmt.Errorf("table %d of %s: %w", n, c.Scope, err)
		}
		l.s.o.Policy.Apply(&control.Outcome{Version: 1, Kind: control.Split, Scope: c.Scope, Epoch: n, Status: control.Done})
		switch c.Reason.Code {
		case split.Renewed, split.ProbesChanged:
			l.s.out.Repeated++
		default:
			l.s.out.Tables++
		}
	}
	return nil
}
