package decider

import (
	"time"

	"penstock/schemas/control"
)

// state is what the loop itself carries from window to window, beside the
// policy's state and the open windows.
type state struct {
	Windows int64          `json:"windows"` // decided so far
	Window  control.Window `json:"window"`  // the last decided one
	// Record is the sequence on COMMANDS of the last record, 0 for none: the
	// next one is written under it.
	Record uint64 `json:"record"`
	// Outcomes is the sequence of the last outcome taken in.
	Outcomes uint64 `json:"outcomes"`
	// Operator is the revision of KV operator up to which switches were taken in.
	Operator uint64 `json:"operator"`
	// RolledBack is the revision up to which rollbacks were carried out.
	RolledBack uint64            `json:"rolled_back"`
	Epochs     map[string]uint64 `json:"epochs"` // last one by scope
	Answers    answers           `json:"answers"`
	// Fallback is set while the kind has fallen back to advise.
	Fallback *fallback `json:"fallback,omitempty"`
}

// fallback is why a kind in mode act only advises.
type fallback struct {
	Since time.Time `json:"since"` // end of the window that found promises broken
	// Revision is that of KV operator then: a later one of the kind's mode ends
	// the fallback.
	Revision uint64 `json:"revision"`
	Why      string `json:"why,omitempty"` // in the policy's words
}

// inputs are what the operator, and the loop in his place, have to say about a
// window. They are recorded, so that the window can be decided again.
type inputs struct {
	operator control.Operator // as recorded: Mode is the configured one
	mode     control.Mode     // in effect
	fallback *fallback        // nil unless it has made advice of act
	revision uint64           // of KV operator
	waits    bool             // a rollback is asked for and cannot be carried out yet
	faults   []string         // switches that cannot be read
}

// inputs works out the inputs of a window from the switches as they stand.
func (s *state) inputs(sw control.Switches, revision uint64, byDefault control.Mode, incomplete bool) inputs {
	in := inputs{revision: revision, faults: sw.Unreadable, mode: byDefault}
	if sw.Mode != "" {
		in.mode = sw.Mode
	}
	in.operator = control.Operator{Mode: in.mode, Frozen: sw.Frozen, Evacuate: sw.Evacuate}
	// Whoever wants less than to act, or says again that he wants it, has taken
	// the matter in hand.
	if s.Fallback != nil && (in.mode != control.Act || sw.ModeRevision > s.Fallback.Revision) {
		s.Fallback = nil
	}
	if in.fallback = s.Fallback; in.fallback != nil {
		in.mode = control.Advise
	}
	if sw.Rollback != nil && sw.RollbackRevision > s.RolledBack {
		if in.mode == control.Act && !incomplete {
			in.operator.Rollback = sw.Rollback
		} else {
			in.waits = true
		}
	}
	return in
}

// recorded reads the inputs back from a record.
func (s *state) recorded(d *control.Decision, revision uint64) inputs {
	in := inputs{operator: d.Operator, mode: d.Mode, revision: revision}
	// Nothing but a fallback makes advice of act.
	switch fell := d.Operator.Mode == control.Act && d.Mode == control.Advise; {
	case !fell:
		s.Fallback = nil
	case s.Fallback == nil:
		s.Fallback = &fallback{Since: d.Window.End, Revision: revision}
	}
	in.fallback = s.Fallback
	return in
}

// decided notes a window as decided. Revisions are those of the inputs.
func (s *state) decided(d *decision, in inputs, record uint64) {
	s.Windows++
	s.Window = d.record.Window
	s.Record = record
	s.Operator = in.revision
	if in.operator.Rollback != nil {
		s.RolledBack = in.revision
	}
	if d.broken != nil {
		s.Fallback = &fallback{Since: d.record.Window.End, Revision: in.revision, Why: d.broken.Text}
	}
}
