package decider

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"penstock/schemas/control"
	"penstock/schemas/window"
)

// Reasons of the loop itself; all others are the policy's.
const (
	// IncompleteWindow: something of the window is missing, so no commands.
	IncompleteWindow = "IncompleteWindow"
	// Frozen: the operator has frozen the kind, so no commands.
	Frozen = "Frozen"
	// Observing: the mode is observe, so no commands.
	Observing = "Observing"
	// PromisesBroken: outcomes contradicted what decisions promised, so commands
	// are advice from the next window on, until the mode is set again.
	PromisesBroken = "PromisesBroken"
	// RollbackWaits: a rollback is asked for; it takes mode act and a complete
	// window.
	RollbackWaits = "RollbackWaits"
	// SwitchUnreadable: a switch has a value that means nothing, which freezes
	// the kind.
	SwitchUnreadable = "SwitchUnreadable"
	// MoreReasons: how many reasons the record leaves out.
	MoreReasons = "MoreReasons"
)

const (
	// maxReasons bounds a record.
	maxReasons = 1000
	// maxBody is the most bytes of one message's body (DESIGN §3.3, 512 KB).
	maxBody = 512 << 10
)

// decision is a decided window before it is sent.
type decision struct {
	record   *control.Decision
	body     []byte
	commands []*command
	withheld int // commands of the policy that were held back
	// broken is set if this window found promises broken that count.
	broken *control.Reason
}

type command struct {
	control.Command
	body []byte
}

// frame is what the loop adds to the commands of a window.
type frame struct {
	kind   control.Kind
	window control.Window
	ttl    string
	config string // digest
}

// asks builds what the policy sees.
func (in *inputs) asks(w control.Window, tables map[string]*window.Table, incomplete []window.Interval) Input {
	op := in.operator
	op.Mode = in.mode
	return Input{Window: w, Tables: tables, Incomplete: incomplete, Operator: op}
}

// compose makes a decision of what the policy put out. Epochs are counted on in
// epochs. The same inputs and output give the same bytes.
func compose(f frame, in inputs, ask Input, out Output, state string, epochs map[string]uint64) (*decision, error) {
	d := &decision{record: &control.Decision{
		Version: 1, Kind: f.kind, Window: f.window, Mode: in.mode, Case: out.Case,
		Commands: []control.CommandRef{}, Operator: in.operator,
		Incomplete: len(ask.Incomplete) > 0, Policy: f.config, State: state,
	}}
	if !ask.Publishes() {
		d.withheld, out.Commands = len(out.Commands), nil
	}
	if out.Broken != nil && in.mode == control.Act {
		d.broken = out.Broken
	}
	reasons := loopReasons(in, ask, out.Reasons)
	if d.broken != nil && !slices.ContainsFunc(out.Reasons, func(r control.Reason) bool { return r.Code == d.broken.Code }) {
		reasons = append(reasons, *d.broken)
	}
	var err error
	if d.record.Reasons, err = limit(append(reasons, out.Reasons...)); err != nil {
		return nil, err
	}
	for i := range out.Commands {
		pieces, err := cut(&out.Commands[i])
		if err != nil {
			return nil, err
		}
		for _, c := range pieces {
			if err := d.add(f, in.mode, c, epochs); err != nil {
				return nil, err
			}
		}
	}
	if d.body, err = control.Encode(d.record); err != nil {
		return nil, err
	}
	if len(d.body) > 2*maxBody-(64<<10) {
		return nil, fmt.Errorf("record of %d bytes: %w", len(d.body), ErrTooLarge)
	}
	return d, nil
}

func (d *decision) add(f frame, mode control.Mode, c control.Command, epochs map[string]uint64) error {
	c.Version, c.Kind, c.Window, c.Mode, c.TTL = 1, f.kind, f.window, mode, f.ttl
	c.Supersedes = epochs[c.Scope]
	c.Epoch = c.Supersedes + 1
	epochs[c.Scope] = c.Epoch
	body, err := control.Encode(c)
	if err != nil {
		return err
	}
	ref := control.CommandRef{Scope: c.Scope, Epoch: c.Epoch}
	if c.Placement != nil {
		ref.Moves = len(c.Placement.Moves)
	}
	d.record.Commands = append(d.record.Commands, ref)
	d.commands = append(d.commands, &command{Command: c, body: body})
	return nil
}

// loopReasons are the reasons why the loop held commands back, unless the policy
// has given them.
func loopReasons(in inputs, ask Input, given []control.Reason) []control.Reason {
	var out []control.Reason
	add := func(code, text string) {
		if !slices.ContainsFunc(given, func(r control.Reason) bool { return r.Code == code }) {
			out = append(out, control.Reason{Code: code, Text: text})
		}
	}
	if len(ask.Incomplete) > 0 {
		var why []string
		for _, i := range ask.Incomplete {
			why = append(why, i.Reason)
		}
		slices.Sort(why)
		add(IncompleteWindow, "events of this window are missing: "+strings.Join(slices.Compact(why), ", "))
	}
	if in.operator.Frozen && in.operator.Rollback == nil {
		add(Frozen, "the operator has frozen this kind")
	}
	if in.mode == control.Observe {
		add(Observing, "the mode is observe: nothing is decided")
	}
	if f := in.fallback; f != nil {
		add(PromisesBroken, "advises only since the window ending "+f.Since.UTC().Format(time.RFC3339)+
			", until the mode is set again; "+cmp.Or(f.Why, "outcomes contradicted what was promised"))
	}
	if in.waits {
		add(RollbackWaits, "a rollback takes mode act and a complete window")
	}
	if len(in.faults) > 0 {
		add(SwitchUnreadable, "switches that cannot be read freeze the kind: "+strings.Join(in.faults, ", "))
	}
	return out
}

// limit keeps the first reasons, as many as a record has room for, and says how
// many it leaves out.
func limit(reasons []control.Reason) ([]control.Reason, error) {
	size := 0
	for i := range reasons {
		b, err := control.Encode(&reasons[i])
		if err != nil {
			return nil, err
		}
		if size += len(b) + 1; i == maxReasons-1 && len(reasons) > maxReasons || size > maxBody {
			more := control.Reason{Code: MoreReasons, Count: int64(len(reasons) - i), Text: "reasons left out of the record"}
			return append(slices.Clip(reasons[:i]), more), nil
		}
	}
	if reasons == nil {
		return []control.Reason{}, nil
	}
	return reasons, nil
}

// cut splits a command with too many moves for one message, in order.
func cut(c *control.Command) ([]control.Command, error) {
	if c.Placement == nil {
		return []control.Command{*c}, nil
	}
	empty := *c
	empty.Placement = &control.Moves{Moves: []control.Move{}}
	head, err := control.Encode(empty)
	if err != nil {
		return nil, err
	}
	// Room for what the loop fills in: versions, window, mode, ttl.
	fixed := len(head) + 512
	var out []control.Command
	size, from := fixed, 0
	flush := func(to int) {
		piece := *c
		piece.Placement = &control.Moves{Moves: c.Placement.Moves[from:to:to]}
		out = append(out, piece)
		size, from = fixed, to
	}
	for i, m := range c.Placement.Moves {
		b, err := control.Encode(m)
		if err != nil {
			return nil, err
		}
		if i > from && (i-from == control.MaxMoves || size+len(b)+1 > maxBody) {
			flush(i)
		}
		if size += len(b) + 1; size > maxBody {
			return nil, fmt.Errorf("move of owner %.60q, %d bytes: %w", m.Owner, len(b), ErrTooLarge)
		}
	}
	if from < len(c.Placement.Moves) {
		flush(len(c.Placement.Moves))
	}
	return out, nil
}

// ConfigDigest is the digest of a policy's configuration as records name it.
func ConfigDigest(config []byte) string {
	sum := sha256.Sum256(config)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// ttl writes a duration as people do: 10m, not 10m0s.
func ttl(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
