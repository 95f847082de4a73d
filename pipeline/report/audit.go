package report

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"penstock/consumers/panes"
	"penstock/infra/bus"
	"penstock/schemas/subject"
	"penstock/schemas/window"
)

// Audit is the answer to "is every event accounted for?" over what WINDOWS
// holds.
type Audit struct {
	Groups []GroupAudit `json:"groups"`
	Faults []string     `json:"faults"`
}

// GroupAudit is one group of rollups, over all partitions.
type GroupAudit struct {
	Group string `json:"group"`
	// Total is what the last commits say since the beginning, Seen the sum of
	// the flushes that the stream still holds.
	Total      window.Account            `json:"total"`
	Seen       window.Account            `json:"seen"`
	Trimmed    bool                      `json:"trimmed"` // flushes are gone: Seen is a part of Total
	Runs       map[string]window.Account `json:"runs"`    // live runs and those whose end the stream holds
	Flushes    int64                     `json:"flushes"`
	Windows    int                       `json:"windows"`
	Incomplete []window.Interval         `json:"incomplete,omitempty"`
	Excluded   int64                     `json:"excluded_samples"`
	Behind     uint64                    `json:"behind"` // sequences of EVENTS not yet covered by the slowest partition
	Watermark  time.Time                 `json:"watermark,omitzero"`
}

// NewAudit reads WINDOWS from its beginning and checks the account: each
// flush's, each total against the one before and the flush between, and the
// groups against each other where both have read the same.
func NewAudit(ctx context.Context, client *bus.Client) (*Audit, error) {
	a := &Audit{}
	events, err := client.State(ctx, subject.EventsStream)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	for _, g := range window.Groups {
		ga, err := a.group(ctx, client, g, events.LastSeq)
		if err != nil {
			return nil, fmt.Errorf("audit: %w", err)
		}
		a.Groups = append(a.Groups, *ga)
	}
	for _, g := range a.Groups[1:] {
		first := a.Groups[0]
		if g.Behind == 0 && first.Behind == 0 && g.Total != first.Total {
			a.fault("groups %s and %s have read all of EVENTS and differ: %+v, %+v", first.Group, g.Group, first.Total, g.Total)
		}
	}
	return a, nil
}

func (a *Audit) fault(format string, args ...any) {
	a.Faults = append(a.Faults, fmt.Sprintf(format, args...))
}

// partitionAudit follows the commits of one partition.
type partitionAudit struct {
	last *window.Commit
	seq  uint64 // of the last commit
	runs map[string]window.Account
	seen window.Account
}

func (a *Audit) group(ctx context.Context, client *bus.Client, group string, lastEvent uint64) (*GroupAudit, error) {
	g := &GroupAudit{Group: group, Runs: map[string]window.Account{}}
	parts := make([]partitionAudit, client.Partitions())
	stats, err := panes.Each(ctx, client, panes.Options{Group: group}, panes.Visitor{
		Flush: func(f *panes.Flush) error {
			p := &parts[f.Partition]
			if err := a.follows(ctx, client, g, p, f); err != nil {
				return err
			}
			p.add(g, f)
			return nil
		},
		Window: func(*panes.Window) error { g.Windows++; return nil },
	})
	if err != nil {
		return nil, err
	}
	g.Flushes = stats.Flushes
	if stats.TooLate > 0 || stats.IntervalsTooLate > 0 {
		a.fault("group %s: %d rows and %d intervals came after their window had closed", group, stats.TooLate, stats.IntervalsTooLate)
	}
	floor := int64(math.MaxInt64)
	for p := range parts {
		a.partition(g, p, &parts[p], lastEvent)
		if c := parts[p].last; c == nil {
			floor = window.NullInt
		} else {
			floor = min(floor, c.Watermark)
		}
	}
	if floor != window.NullInt {
		g.Watermark = time.UnixMicro(floor).UTC()
	}
	return g, nil
}

// follows checks a flush's own account, and its total against that of the flush
// before. Flushes leave the stream from its beginning on, so that a difference is
// a fault as long as the flush before is still there.
func (a *Audit) follows(ctx context.Context, client *bus.Client, g *GroupAudit, p *partitionAudit, f *panes.Flush) error {
	c := f.Commit
	if !c.Account.Holds() {
		a.fault("group %s, partition %d, flush %s: the account does not hold: %+v", g.Group, f.Partition, c.Flush, c.Account)
	}
	var total window.Account
	if p.last != nil {
		total = p.last.Total
	}
	total.Add(c.Account)
	if total == c.Total {
		return nil
	}
	if p.last != nil {
		_, err := client.Get(ctx, subject.WindowsStream, p.seq)
		if err == nil {
			a.fault("group %s, partition %d, flush %s: its total is %+v, the flushes up to it add up to %+v", g.Group, f.Partition, c.Flush, c.Total, total)
			return nil
		}
		if !errors.Is(err, bus.ErrNoMessage) {
			return err
		}
	}
	g.Trimmed = true
	return nil
}

// add takes a flush into the sums.
func (p *partitionAudit) add(g *GroupAudit, f *panes.Flush) {
	c := f.Commit
	if p.runs == nil {
		p.runs = map[string]window.Account{}
	}
	for _, r := range c.Runs {
		p.runs[r.Run] = r.Account
	}
	p.seen.Add(c.Account)
	g.Excluded += c.Excluded
	g.Incomplete = append(g.Incomplete, c.Incomplete...)
	p.last, p.seq = c, f.Seq
}

func (a *Audit) partition(g *GroupAudit, n int, p *partitionAudit, lastEvent uint64) {
	if p.last == nil {
		g.Behind = max(g.Behind, lastEvent)
		return
	}
	if !p.last.Total.Holds() {
		a.fault("group %s, partition %d: the account does not hold: %+v", g.Group, n, p.last.Total)
	}
	g.Total.Add(p.last.Total)
	g.Seen.Add(p.seen)
	for run, acc := range p.runs {
		sum := g.Runs[run]
		sum.Add(acc)
		g.Runs[run] = sum
	}
	g.Behind = max(g.Behind, lastEvent-min(p.last.Covered, lastEvent))
}

// Holds reports whether the audit found no fault.
func (a *Audit) Holds() bool { return len(a.Faults) == 0 }

// Print writes the audit for a person.
func (a *Audit) Print(w io.Writer) error {
	var b strings.Builder
	for _, g := range a.Groups {
		t := g.Total
		fmt.Fprintf(&b, "%-8s received %d = counted %d + late %d + duplicate %d + malformed %d + quarantined %d; lost batches %d\n",
			g.Group, t.Received, t.Counted, t.Late, t.Duplicate, t.Malformed, t.Quarantined, t.LostBatches)
		fmt.Fprintf(&b, "         %d flushes, %d windows, %d runs, %d incomplete intervals, %d delay samples excluded, %d messages of EVENTS to come\n",
			g.Flushes, g.Windows, len(g.Runs), len(g.Incomplete), g.Excluded, g.Behind)
		if g.Trimmed {
			b.WriteString("         older flushes are no longer on the bus; the totals include them\n")
		}
	}
	if a.Holds() {
		b.WriteString("every event is accounted for\n")
	}
	slices.Sort(a.Faults)
	for _, f := range a.Faults {
		b.WriteString("FAULT: " + f + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Err returns the faults as an error that wraps ErrAudit, nil if the account
// holds.
func (a *Audit) Err() error {
	if a.Holds() {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrAudit, strings.Join(a.Faults, "; "))
}
