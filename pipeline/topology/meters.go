package topology

import (
	"strconv"
	"time"

	"penstock/consumers/aggregator"
	"penstock/consumers/executor"
	"penstock/infra/telemetry"
	"penstock/schemas/control"
	"penstock/schemas/window"
)

// aggregatorMeter turns what aggregators tell into metrics.
type aggregatorMeter struct{ m *telemetry.Metrics }

// Rows counts rows by account.
func (a aggregatorMeter) Rows(group string, partition int, d window.Account) {
	p := strconv.Itoa(partition)
	for i, n := range [...]int64{d.Received, d.Counted, d.Late, d.Duplicate, d.Malformed, d.Quarantined} {
		if n > 0 {
			a.m.Rows.Add(n, group, p, telemetry.Accounts[i])
		}
	}
	if d.LostBatches > 0 {
		a.m.LostBatches.Add(d.LostBatches, group, p)
	}
}

// Progress sets lag and watermark.
func (a aggregatorMeter) Progress(group string, partition int, p aggregator.Progress) {
	n := strconv.Itoa(partition)
	a.m.Pending.Set(float64(p.Pending), group, n)
	if !p.Stored.IsZero() {
		a.m.StoredLag.Newest(p.Stored.UnixMicro(), group, n)
	}
	if p.Newest != window.NullInt {
		a.m.Lag.Newest(p.Newest, group, n)
	}
	if p.Watermark != window.NullInt {
		a.m.Watermark.Set(telemetry.Seconds(p.Watermark), group, n)
	}
}

// Flushed counts flushes.
func (a aggregatorMeter) Flushed(group string, partition int, f aggregator.Flushed) {
	p := strconv.Itoa(partition)
	a.m.Flushes.Inc(group, p)
	a.m.FlushBytes.Add(int64(f.Bytes), group, p)
	a.m.FlushTime.Observe(f.Took, group)
}

// Count counts what else happens.
func (a aggregatorMeter) Count(group string, partition int, what aggregator.Happening, n int64) {
	a.m.Happenings.Add(n, group, strconv.Itoa(partition), string(what))
}

// deciderMeter turns what deciders tell into metrics.
type deciderMeter struct{ m *telemetry.Metrics }

// Decided counts a window, its reasons and its commands.
func (d deciderMeter) Decided(k control.Kind, r *control.Decision, took time.Duration) {
	kind := string(k)
	d.m.Decisions.Inc(kind, string(r.Mode), r.Case)
	d.m.DecisionTime.Observe(took, kind)
	d.m.DecidedWindow.Newest(r.Window.End.UnixMicro(), kind)
	for _, reason := range r.Reasons {
		d.m.Reasons.Add(max(reason.Count, 1), kind, reason.Code)
	}
	d.m.Commands.Add(int64(len(r.Commands)), kind)
	for _, c := range r.Commands {
		d.m.DecidedMoves.Add(int64(c.Moves), kind)
	}
}

// Stale says whether the last decision is older than two windows.
func (d deciderMeter) Stale(k control.Kind, stale bool) {
	v := 0.0
	if stale {
		v = 1
	}
	d.m.DecisionStale.Set(v, string(k))
}

// Published times the publishing of a decision.
func (d deciderMeter) Published(k control.Kind, _ int, took time.Duration) {
	d.m.PublishingTime.Observe(took, string(k))
}

// Outcome is counted where it is made, by the executor; here only those count
// that answer nothing.
func (d deciderMeter) Outcome(k control.Kind, s control.Status, first bool) {
	if !first {
		d.m.SetAside.Inc(string(k), "outcome-"+string(s))
	}
}

// Retried counts what was asked again.
func (d deciderMeter) Retried(k control.Kind, what string) {
	d.m.Retries.Inc("decider of "+string(k), what)
}

// SetAside counts what was not used.
func (d deciderMeter) SetAside(k control.Kind, reason string, n int64) {
	d.m.SetAside.Add(n, string(k), reason)
}

// Snapshot sets the size of the last one.
func (d deciderMeter) Snapshot(k control.Kind, bytes int, took time.Duration) {
	d.m.SnapshotBytes.Set(float64(bytes), string(k))
	d.m.SnapshotTime.Observe(took, string(k))
}

// executorMeter turns what an executor counts into metrics.
type executorMeter struct {
	m    *telemetry.Metrics
	kind control.Kind
}

// Count adds to the counter that fits.
func (e executorMeter) Count(c executor.Counter, reason string, n int64) {
	kind := string(e.kind)
	switch c {
	case executor.Outcomes:
		e.m.Outcomes.Add(n, kind, reason)
	case executor.AlreadyApplied:
		e.m.Outcomes.Add(n, kind, string(control.AlreadyApplied))
	case executor.Bytes:
		e.m.MovedBytes.Add(n, reason)
	case executor.Retried, executor.Returned, executor.Redelivered, executor.Stalled:
		e.m.Retries.Add(n, "executor of "+kind, string(c)+" "+reason)
	default:
		e.m.SetAside.Add(n, kind, string(c)+" "+reason)
	}
}
