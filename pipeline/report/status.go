package report

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"penstock/consumers/decider"
	"penstock/infra/bus"
	"penstock/schemas/control"
	"penstock/schemas/subject"
	"penstock/schemas/window"
)

// Status is what is in force, and how far each part has come.
type Status struct {
	Streams  []StreamStatus  `json:"streams"`
	Kinds    []KindStatus    `json:"kinds"`
	Progress []Progress      `json:"progress"`
	Owners   int             `json:"owners_located"`     // owners that were moved, imported or pinned
	Evacuate []string        `json:"evacuate,omitempty"` // sites that the operator empties, ascending
	Faults   []string        `json:"faults,omitempty"`
	Switches []SwitchSetting `json:"switches,omitempty"`
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
}

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
		if sw.Rollback != nil && answered(m, d, sw.RollbackRevision) {
			ks.Rollback = nil
		}
	}
	s.Kinds = append(s.Kinds, ks)
	return nil
}

// answered reports whether a rollback was carried out by the time of a record:
// its decider knew of it then, and does not say that it still waits.
func answered(m bus.Msg, d *control.Decision, revision uint64) bool {
	var knew uint64
	if h := m.Header[control.HeaderOperator]; len(h) > 0 {
		knew, _ = strconv.ParseUint(h[0], 10, 64) // One that cannot be read knew nothing.
	}
	waits := slices.ContainsFunc(d.Reasons, func(r control.Reason) bool { return r.Code == decider.RollbackWaits })
	return knew >= revision && !waits
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

// Print writes the status for a person.
func (s *Status) Print(w io.Writer) error {
	var b strings.Builder
	for _, k := range s.Kinds {
		if !k.Decided && k.Mode == "" && !k.Frozen && k.Rollback == nil {
			continue
		}
		fmt.Fprintf(&b, "%s: ", k.Kind)
		if d := k.Decision; d != nil {
			moves := 0
			for _, c := range d.Commands {
				moves += c.Moves
			}
			fmt.Fprintf(&b, "mode %s, last decided window %s to %s, case %s, %d moves; ", d.Mode,
				d.Window.Start.Format("2006-01-02 15:04"), d.Window.End.Format("15:04"), d.Case, moves)
			counts := map[string]int64{}
			for _, r := range d.Reasons {
				counts[r.Code] += max(r.Count, 1)
			}
			fmt.Fprintf(&b, "reasons: %s", Reasons(counts))
		} else {
			b.WriteString("nothing decided yet")
		}
		if k.Mode != "" {
			fmt.Fprintf(&b, "; operator: mode %s", k.Mode)
		}
		if k.Frozen {
			b.WriteString("; FROZEN")
		}
		if k.Rollback != nil {
			fmt.Fprintf(&b, "; a rollback to %s waits for the next complete window in mode act", k.Rollback.Format(time.RFC3339))
		}
		b.WriteString("\n")
	}
	if b.Len() == 0 {
		b.WriteString("nothing decided yet\n")
	}
	if len(s.Evacuate) > 0 {
		fmt.Fprintf(&b, "being emptied: %s\n", strings.Join(s.Evacuate, ", "))
	}
	for _, p := range s.Progress {
		mark := "none yet"
		if !p.Watermark.IsZero() {
			mark = p.Watermark.Format(time.RFC3339)
		}
		fmt.Fprintf(&b, "%s: watermark %s, %d messages of EVENTS behind\n", p.Group, mark, p.Behind)
	}
	fmt.Fprintf(&b, "locations: %d owners were moved, imported or pinned; the others are where they were first seen\n\n", s.Owners)
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "stream\tmessages\tbytes\tfirst\tlast\t\n")
	for _, st := range s.Streams {
		fmt.Fprintf(t, "%s\t%d\t%s\t%d\t%d\t\n", st.Name, st.Messages, Bytes(int64(st.Bytes)), st.First, st.Last)
	}
	_ = t.Flush() // Into memory.
	for _, f := range s.Faults {
		fmt.Fprintf(&b, "FAULT: %s\n", f)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
