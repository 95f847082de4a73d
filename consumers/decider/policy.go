package decider

import (
	"io"
	"time"

	"penstock/schemas/control"
	"penstock/schemas/window"
)

// Policy decides one kind. It is pure: no bus, no clock, no unseeded
// randomness, no dependence on the order of a map. The loop calls it from one
// goroutine. Equal configurations and equal sequences of Decide and Apply give
// equal outputs, digests and snapshots (DESIGN §3.3).
type Policy interface {
	// Kind is what the policy steers.
	Kind() control.Kind
	// Groups are the groups of rollups that it reads. So far it is one group.
	Groups() []string
	// Width is the width of the windows that it decides; rollups of its groups
	// that are narrower arrive merged over the window, each with its own starts.
	Width() time.Duration
	// Decide decides a closed window. Windows come ascending by end; a window
	// without panes is not there. The tables of in may be kept, not changed.
	Decide(in Input) Output
	// Apply takes an outcome in, between windows, in the order of OUTCOMES. It
	// may come again after a restart and may be of a move that the policy does
	// not know (of an earlier configuration): both change nothing. One of status
	// imported answers no move: it is the operator's word for where an owner's data
	// is, known or not. A move that was decided since and that leaves from there,
	// under a greater version, is still under way.
	Apply(o *control.Outcome)
	// Config is the canonical JSON of the policy's configuration. Its sha256 is
	// the digest that a record names.
	Config() []byte
	// Digest is the digest of the state, "sha256:" and hex: cheap, called after
	// each window, and independent of partitions, cuts and snapshots.
	Digest() string
	// Snapshot writes the state; Restore replaces the state by one that was
	// written, of this configuration or of an earlier one. After an error of
	// Restore the policy is of no use.
	Snapshot(w io.Writer) error
	Restore(r io.Reader) error
	// Explain tells what the policy knows of an owner, as JSON can hold it;
	// false if it does not know it. It is called by the loop between windows.
	Explain(owner string) (any, bool)
}

// Input is what a policy decides by: nothing else enters a decision.
type Input struct {
	Window control.Window
	// Tables holds the merged rows of the window by rollup, without late rows. A
	// rollup without rows in the window is missing.
	Tables map[string]*window.Table
	// Incomplete are the intervals that overlap the window and of which
	// something is missing. The policy takes the window's rows into its state,
	// and the loop discards its commands: with Incomplete set it must issue none.
	Incomplete []window.Interval
	// Operator holds the operator's switches. In mode act commands are applied;
	// in any other mode the state must stay as if nothing had moved. Frozen: no
	// commands either. Rollback is set for the one window that undoes moves.
	Operator control.Operator
}

// Acts reports whether commands of the window will be applied: the mode is act,
// and neither a freeze (other than a rollback's own) nor a gap in the events
// holds them back. A policy notes its moves as under way only then.
func (in *Input) Acts() bool {
	return in.Operator.Mode == control.Act && in.Publishes()
}

// Publishes reports whether commands of the window will be published at all,
// to be applied or as advice.
func (in *Input) Publishes() bool {
	switch {
	case len(in.Incomplete) > 0, in.Operator.Mode == control.Observe:
		return false
	case in.Operator.Frozen:
		return in.Operator.Rollback != nil
	}
	return true
}

// Output is what a policy has decided.
type Output struct {
	Case string // minimal, overhead-first, overhead-continuous; "" if the kind has no cases
	// Reasons says what was done and what was not, in a fixed order.
	Reasons []control.Reason
	// Commands have their scope, reason and payload set, in a fixed order; the
	// loop sets version, kind, epoch, window, mode, ttl and supersedes.
	Commands []control.Command
	// Broken says that outcomes contradict what the policy promised for several
	// windows running, nil if not. Its code is PromisesBroken. The loop puts it
	// among the reasons, unless it is there, publishes this window as it is, and from the next one on
	// only advises until the operator writes the kind's mode again (DESIGN §3.3).
	// It counts only of a window in mode act. A policy that has said so begins to
	// count anew: windows of before the operator's word count no more.
	Broken *control.Reason
}

// Factory makes a policy, in its first state, from the bytes of Policy.Config:
// windows that are decided again are decided under the configuration that they
// were decided under.
type Factory func(config []byte) (Policy, error)
