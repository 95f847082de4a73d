package telemetry

import (
	"fmt"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"penstock/infra/clock"
	"penstock/schemas/window"
)

// Metrics is what the parts of the loop count. Each field says its labels, in
// the order in which they are given. Label values come from small sets (groups,
// partitions, kinds, codes), never from ids in the traffic.
type Metrics struct {
	// What entry points send.
	PublishedRows    Counter // entry
	PublishedBatches Counter // entry
	PublishedBytes   Counter // entry
	DroppedRows      Counter // entry, reason
	SpoolBytes       Gauge   // entry
	InFlightBytes    Gauge   // entry
	PublishTime      Timing  // entry: from the first send to the acknowledgement

	// What aggregators do with it.
	Rows        Counter // group, partition, account
	LostBatches Counter // group, partition
	Lag         Age     // group, partition: age of the newest processed event
	StoredLag   Age     // group, partition: since the server stored the newest processed message
	Watermark   Gauge   // group, partition: s since 1970
	Pending     Gauge   // group, partition: messages that wait
	Flushes     Counter // group, partition
	FlushBytes  Counter // group, partition
	FlushTime   Timing  // group
	Happenings  Counter // group, partition, what

	// What deciders decide.
	Decisions      Counter // kind, mode, case
	DecisionTime   Timing  // kind: without publishing
	PublishingTime Timing  // kind: of a decision, every retry included
	DecidedWindow  Age     // kind: since the end of the newest decided window
	DecisionStale  Gauge   // kind: 1 while the last decision is older than two windows, by stream or wall time
	Reasons        Counter // kind, code
	Commands       Counter // kind
	DecidedMoves   Counter // kind
	SetAside       Counter // kind, reason: what came and was not used
	Retries        Counter // part, what: the bus did not answer as expected
	SnapshotBytes  Gauge   // kind
	SnapshotTime   Timing  // kind

	// What executors do.
	Outcomes    Counter // kind, status
	OutcomeTime Timing  // kind: from the command's delivery
	MovedBytes  Counter // to
	MovesOpen   Gauge   // part: moves in the journal that are not done
	StoreEvents Counter // site, what: leftovers, lost leases, requests made again
}

// Accounts are the values of the label account of Rows, in the order of the
// account: received is the sum of the others (DESIGN §3.2).
var Accounts = []string{"received", "counted", "late", "duplicate", "malformed", "quarantined"}

// New registers the metrics in r. The clock gives ages their present; nil is
// the machine's.
func New(r prometheus.Registerer, c clock.Clock) (*Metrics, error) {
	if c == nil {
		c = clock.System()
	}
	b := builder{r: r, clock: c}
	m := &Metrics{
		PublishedRows:    b.counter("published_rows_total", "Rows that were sent and acknowledged.", "entry"),
		PublishedBatches: b.counter("published_batches_total", "Batches that were sent and acknowledged.", "entry"),
		PublishedBytes:   b.counter("published_bytes_total", "Bytes of acknowledged batches, compressed.", "entry"),
		DroppedRows:      b.counter("dropped_rows_total", "Rows that were given up, by reason.", "entry", "reason"),
		SpoolBytes:       b.gauge("spool_bytes", "Bytes in the spool that await an acknowledgement.", "entry"),
		InFlightBytes:    b.gauge("in_flight_bytes", "Bytes that were sent and await an acknowledgement.", "entry"),
		PublishTime:      b.timing("publish_seconds", "From the first send of a batch to its acknowledgement.", "entry"),

		Rows:        b.counter("rows_total", "Rows by account; received is the sum of the others.", "group", "partition", "account"),
		LostBatches: b.counter("lost_batches_total", "Batches that were given up.", "group", "partition"),
		Lag:         b.age("lag_seconds", "Age of the newest processed event.", "group", "partition"),
		StoredLag:   b.age("stored_lag_seconds", "Since the server stored the newest processed message.", "group", "partition"),
		Watermark:   b.gauge("watermark_seconds", "Watermark, in seconds since 1970.", "group", "partition"),
		Pending:     b.gauge("pending_messages", "Messages that wait to be read.", "group", "partition"),
		Flushes:     b.counter("flushes_total", "Flushes that were stored.", "group", "partition"),
		FlushBytes:  b.counter("flush_bytes_total", "Bytes of stored flushes.", "group", "partition"),
		FlushTime:   b.timing("flush_seconds", "Time that a flush takes to be stored.", "group"),
		Happenings:  b.counter("aggregator_happenings_total", "Fences, repeats, rejects and the like.", "group", "partition", "what"),

		Decisions:      b.counter("decisions_total", "Decided windows.", "kind", "mode", "case"),
		DecisionTime:   b.timing("decision_seconds", "Time to decide a window, without publishing.", "kind"),
		PublishingTime: b.timing("decision_publish_seconds", "Time to publish a decision, every retry included.", "kind"),
		DecidedWindow:  b.age("decided_window_age_seconds", "Since the end of the newest decided window.", "kind"),
		DecisionStale:  b.gauge("decision_stale", "1 while the last decision is older than two windows, else 0.", "kind"),
		Reasons:        b.counter("reasons_total", "Reasons for what was done and for what was not.", "kind", "code"),
		Commands:       b.counter("commands_total", "Commands that were published.", "kind"),
		DecidedMoves:   b.counter("decided_moves_total", "Moves that were decided.", "kind"),
		SetAside:       b.counter("set_aside_total", "What came to a decider or executor and was not used.", "kind", "reason"),
		Retries:        b.counter("retries_total", "Requests to the bus that were made again.", "part", "what"),
		SnapshotBytes:  b.gauge("snapshot_bytes", "Size of the last snapshot, compressed.", "kind"),
		SnapshotTime:   b.timing("snapshot_seconds", "Time to store a snapshot.", "kind"),

		Outcomes:    b.counter("outcomes_total", "How commands and moves ended.", "kind", "status"),
		OutcomeTime: b.timing("outcome_seconds", "From a command's delivery to its outcome.", "kind"),
		MovedBytes:  b.counter("moved_bytes_total", "Bytes of data that were moved.", "to"),
		MovesOpen:   b.gauge("moves_open", "Moves in the journal that are not done.", "part"),
		StoreEvents: b.counter("store_events_total", "What a site's store gave up, left behind or did again, besides what was asked of it.", "site", "what"),
	}
	if b.err != nil {
		return nil, fmt.Errorf("metrics: %w", b.err)
	}
	return m, nil
}

// AddAccount counts rows by account, and lost batches, of a group and partition.
func (m *Metrics) AddAccount(group string, partition int, a window.Account) {
	p := strconv.Itoa(partition)
	for i, n := range [...]int64{a.Received, a.Counted, a.Late, a.Duplicate, a.Malformed, a.Quarantined} {
		if n > 0 {
			m.Rows.Add(n, group, p, Accounts[i])
		}
	}
	if a.LostBatches > 0 {
		m.LostBatches.Add(a.LostBatches, group, p)
	}
}

// builder declares metrics and keeps the first error.
type builder struct {
	r     prometheus.Registerer
	clock clock.Clock
	err   error
}

const prefix = "penstock_"

// buckets reach from what one window of a small replay takes to the longest
// that anything may.
var buckets = []float64{0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60}

func (b *builder) register(c prometheus.Collector) {
	if err := b.r.Register(c); err != nil && b.err == nil {
		b.err = err
	}
}

func (b *builder) counter(name, help string, labels ...string) Counter {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + name, Help: help}, labels)
	b.register(v)
	return Counter{v}
}

func (b *builder) gauge(name, help string, labels ...string) Gauge {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + name, Help: help}, labels)
	b.register(v)
	return Gauge{v}
}

func (b *builder) timing(name, help string, labels ...string) Timing {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: prefix + name, Help: help, Buckets: buckets}, labels)
	b.register(v)
	return Timing{v}
}

func (b *builder) age(name, help string, labels ...string) Age {
	a := newAge(b.clock, prefix+name, help, labels...)
	b.register(a)
	return a
}

// Seconds returns µs since 1970 as Prometheus counts them.
func Seconds(us int64) float64 { return float64(us) / float64(time.Second/time.Microsecond) }
