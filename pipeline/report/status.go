package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"penstock/consumers/decider"
	"penstock/consumers/decider/placement"
	"penstock/consumers/executor/locations"
	"penstock/infra/bus"
	"penstock/infra/clock"
	"penstock/schemas/control"
	"penstock/schemas/subject"
	"penstock/schemas/window"
)

// Status is what is in force, and how far each part has come.
type Status struct {
	Streams  []StreamStatus `json:"streams"`
	Kinds    []KindStatus   `json:"kinds"`
	Progress []Progress     `json:"progress"`
	Owners   int            `json:"owners_located"`     // owners that were moved, imported or pinned
	Evacuate []string       `json:"evacuate,omitempty"` // sites that the operator empties, ascending
	// Evacuations tell of them what the last decision knew, in the same order.
	Evacuations []EvacuationStatus `json:"evacuations,omitempty"`
	// Failing are the owners whose last moves came to nothing, those with the most
	// first, at most maxFailing; FailingOwners is how many there are.
	Failing       []locations.Failing `json:"failing,omitempty"`
	FailingOwners int                 `json:"failing_owners,omitempty"`
	Faults        []string            `json:"faults,omitempty"`
	Switches      []SwitchSetting     `json:"switches,omitempty"`
}

// StreamStatus is one stream.
type StreamStatus struct {
	Name     string `json:"name"`
	Messages uint64 `json:"messages"`
	Bytes    uint64 `json:"bytes"`
	First    uint64 `json:"first"`
	Last     uint64 `json:"last"`
}

// KindStatus is the last decision of a kind; Decided is false without one.
type KindStatus struct {
	Kind     control.Kind      `json:"kind"`
	Decided  bool              `json:"decided"`
	Decision *control.Decision `json:"decision,omitempty"`
	Mode     control.Mode      `json:"mode,omitempty"` // set by the operator
	Frozen   bool              `json:"frozen"`
	Rollback *time.Time        `json:"rollback,omitempty"` // asked for and not yet carried out: what it goes back to
	At       time.Time         `json:"at,omitzero"`        // on the bus
	// Stale: no window was decided for longer than two windows, by stream or wall
	// time. What was decided last is held and not acted upon again.
	Stale bool `json:"stale"`
	// FellBack says why a kind whose mode is act only advises, from this decision
	// or from the next one on; empty unless it does so still.
	FellBack string `json:"fell_back,omitempty"`
	// BackingOff is how many owners are held after moves that failed.
	BackingOff int64 `json:"backing_off,omitempty"`
	// Tables are the last ones of a kind whose commands are tables, by scope.
	Tables []TableStatus `json:"tables,omitempty"`
}

// EvacuationStatus is how far a site was emptied at the last decision.
type EvacuationStatus struct {
	Site string `json:"site"`
	// Decided: the last decision knew of it. Counted: it planned, and so says how
	// many owners are there; a rollback or a window that is held does not, and the
	// figures are zero then.
	Decided   bool  `json:"decided"`
	Counted   bool  `json:"counted"`
	Remaining int64 `json:"remaining"` // owners whose data is there, those under way included
	Moving    int64 `json:"moving"`    // of them moved by that decision
}

const (
	// failuresWithin is how many of the newest outcomes are looked at for moves
	// that failed.
	failuresWithin = 1 << 16
	// maxFailing bounds the owners that are listed, shownFailing those for a
	// person.
	maxFailing, shownFailing = 1000, 10
)

// Progress is how far a group of rollups has come on its slowest partition.
type Progress struct {
	Group     string    `json:"group"`
	Behind    uint64    `json:"behind"` // messages of EVENTS not yet covered
	Watermark time.Time `json:"watermark,omitzero"`
}

// SwitchSetting is one switch of the operator.
type SwitchSetting struct {
	Key    string          `json:"key"`
	Switch *control.Switch `json:"switch"`
}

// NewStatus asks the bus.
func NewStatus(ctx context.Context, client *bus.Client) (*Status, error) {
	return StatusAt(ctx, client, clock.System().Now())
}

// StatusAt is NewStatus with staleness by wall time as of then; on the bus of a
// replay, whose time is that of its recording, only stream time counts.
func StatusAt(ctx context.Context, client *bus.Client, now time.Time) (*Status, error) {
	purpose, err := client.Purpose(ctx)
	if err != nil {
		return nil, fmt.Errorf("status: %w", err)
	}
	if purpose == bus.Replay {
		now = time.Time{}
	}
	s := &Status{}
	var last uint64
	for _, name := range subject.Streams {
		st, err := client.State(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("status: %w", err)
		}
		if name == subject.EventsStream {
			last = st.LastSeq
		}
		s.Streams = append(s.Streams, StreamStatus{name, st.Msgs, st.Bytes, st.FirstSeq, st.LastSeq})
	}
	entries, err := s.switches(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("status: %w", err)
	}
	for _, k := range control.Kinds {
		if err := s.kind(ctx, client, k, entries); err != nil {
			return nil, fmt.Errorf("status: %w", err)
		}
	}
	for _, g := range window.Groups {
		if err := s.progress(ctx, client, g, last); err != nil {
			return nil, fmt.Errorf("status: %w", err)
		}
	}
	for i := range s.Kinds {
		s.stale(&s.Kinds[i], now)
		if k := s.Kinds[i].Kind; k != control.Placement && s.Kinds[i].Decided {
			if err := s.tables(ctx, client, &s.Kinds[i], now); err != nil {
				return nil, fmt.Errorf("status: %w", err)
			}
		}
	}
	if err := s.failing(ctx, client); err != nil {
		return nil, fmt.Errorf("status: %w", err)
	}
	kv, err := client.KV(ctx, subject.LocationsKV)
	if err != nil {
		return nil, fmt.Errorf("status: %w", err)
	}
	info, err := kv.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("status: locations: %w", err)
	}
	s.Owners = int(info.Values())
	return s, nil
}

func (s *Status) switches(ctx context.Context, client *bus.Client) ([]control.Entry, error) {
	kv, err := client.KV(ctx, subject.OperatorKV)
	if err != nil {
		return nil, err
	}
	keys, err := kv.ListKeys(ctx)
	if err != nil {
		return nil, fmt.Errorf("operator: %w", err)
	}
	var entries []control.Entry
	for key := range keys.Keys() {
		e, err := kv.Get(ctx, key)
		if errors.Is(err, jetstream.ErrKeyNotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("operator %s: %w", key, err)
		}
		entries = append(entries, control.Entry{Key: key, Value: e.Value(), Revision: e.Revision()})
		sw, err := control.DecodeSwitch(key, e.Value())
		if err != nil {
			s.Faults = append(s.Faults, err.Error())
			continue
		}
		s.Switches = append(s.Switches, SwitchSetting{key, sw})
	}
	return entries, nil
}

func (s *Status) kind(ctx context.Context, client *bus.Client, k control.Kind, entries []control.Entry) error {
	sw := control.SwitchesOf(k, entries)
	s.Evacuate = sw.Evacuate // The same of each kind.
	ks := KindStatus{Kind: k, Mode: sw.Mode, Frozen: sw.Frozen, Rollback: sw.Rollback}
	m, err := client.Last(ctx, subject.CommandsStream, subject.Decisions(string(k)))
	switch {
	case errors.Is(err, bus.ErrNoMessage):
	case err != nil:
		return err
	default:
		d, err := control.DecodeDecision(m.Data)
		if err != nil {
			s.Faults = append(s.Faults, err.Error())
			break
		}
		ks.Decided, ks.Decision, ks.At = true, d, m.Time.UTC()
		ks.FellBack = fellBack(d, sw.ModeRevision > revision(m))
		for _, r := range d.Reasons {
			if r.Code == placement.BackingOff.String() {
				ks.BackingOff += r.Count
			}
		}
		if k == control.Placement {
			s.evacuations(d)
		}
		if sw.Rollback != nil && answered(m, d, sw.RollbackRevision) {
			ks.Rollback = nil
		}
	}
	s.Kinds = append(s.Kinds, ks)
	return nil
}

// stale works out whether a kind's last decision is, by the slowest partition of
// what it reads.
func (s *Status) stale(k *KindStatus, now time.Time) {
	if !k.Decided {
		return
	}
	group := window.Fast
	if k.Kind == control.Placement {
		group = window.Owners
	}
	var mark time.Time
	for _, p := range s.Progress {
		// The end of a replay closes windows up to the end of the longest: those of the
		// fast group behind its last row are no time without traffic.
		if p.Group == group && (group == window.Owners || !now.IsZero()) {
			mark = p.Watermark
		}
	}
	k.Stale = decider.Stale(k.Decision.Window, k.At, mark, now)
}

// fellBack says why the kind only advises although its mode is act; since reports
// that the operator has written its mode after the decision.
func fellBack(d *control.Decision, since bool) string {
	if since || d.Operator.Mode != control.Act {
		return ""
	}
	for _, r := range d.Reasons {
		if r.Code == decider.PromisesBroken {
			return r.Text
		}
	}
	if d.Mode == control.Advise { // by a program of before, with another reason
		return "outcomes contradicted what was promised"
	}
	return ""
}

// evacuations takes from the last decision what it says of sites being emptied.
func (s *Status) evacuations(d *control.Decision) {
	for _, site := range s.Evacuate {
		e := EvacuationStatus{Site: site, Decided: slices.Contains(d.Operator.Evacuate, site)}
		for _, r := range d.Reasons {
			if r.Code != placement.Evacuating.String() || r.Scope != site {
				continue
			}
			if n, ok := r.Evidence["remaining"].(float64); ok { // as JSON has numbers
				e.Decided, e.Counted, e.Remaining, e.Moving = true, true, int64(n), r.Count
			}
		}
		s.Evacuations = append(s.Evacuations, e)
	}
}

func (s *Status) failing(ctx context.Context, client *bus.Client) error {
	all, err := locations.FailingMoves(ctx, client, failuresWithin)
	if err != nil {
		return err
	}
	slices.SortStableFunc(all, func(a, b locations.Failing) int { return cmp.Compare(b.Count, a.Count) })
	s.FailingOwners, s.Failing = len(all), all[:min(len(all), maxFailing)]
	return nil
}

// answered reports whether a rollback was carried out by the time of a record:
// its decider knew of it then, and does not say that it still waits.
func answered(m bus.Msg, d *control.Decision, asked uint64) bool {
	waits := slices.ContainsFunc(d.Reasons, func(r control.Reason) bool { return r.Code == decider.RollbackWaits })
	return revision(m) >= asked && !waits
}

// revision is that of the operator's switches that a record knew of.
func revision(m bus.Msg) (knew uint64) {
	if h := m.Header[control.HeaderOperator]; len(h) > 0 {
		knew, _ = strconv.ParseUint(h[0], 10, 64) // One that cannot be read knew nothing.
	}
	return knew
}

func (s *Status) progress(ctx context.Context, client *bus.Client, group string, last uint64) error {
	p := Progress{Group: group}
	floor := int64(math.MaxInt64)
	for n := range client.Partitions() {
		m, err := client.Last(ctx, subject.WindowsStream, subject.Windows(group, n))
		if errors.Is(err, bus.ErrNoMessage) {
			p.Behind, floor = last, window.NullInt
			continue
		}
		if err != nil {
			return err
		}
		// Flushes are atomic: the last message of a subject is a commit.
		c, err := window.CommitOf(m.Header, m.Data)
		if err != nil {
			s.Faults = append(s.Faults, fmt.Sprintf("%s, sequence %d: %v", m.Subject, m.Seq, err))
			p.Behind, floor = last, window.NullInt
			continue
		}
		p.Behind = max(p.Behind, last-min(c.Covered, last))
		floor = min(floor, c.Watermark)
	}
	if floor != window.NullInt {
		p.Watermark = time.UnixMicro(floor).UTC()
	}
	s.Progress = append(s.Progress, p)
	return nil
}
