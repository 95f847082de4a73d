package publisher

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// Reasons for which a live publisher drops rows.
const (
	DropQueue     = "queue-full"  // the encoder is behind
	DropSpool     = "spool-full"  // the bus was away for longer than the spool holds
	DropSpoolIO   = "spool-error" // the disk refused to write or read
	DropEncode    = "encode"      // the batch could not be encoded or is too large to send
	DropClosed    = "closed"      // published after End or Close
	DropPartition = "partitions"  // spooled for a bus with other partitions
)

// Stats are the totals of a publisher. Rows sent + skipped + dropped +
// uncommitted + still held are all the rows that it was given.
type Stats struct {
	Sent, Skipped       uint64            // rows acknowledged; not sent because of Options.Acked
	Batches, Bytes      uint64            // acknowledged
	Invalid             uint64            // live rows that no batch may hold, told as malformed
	Dropped             map[string]uint64 // rows by reason
	DroppedBatches      uint64
	Retries             uint64 // batches and marks sent again
	InFlight            int    // batches and marks without an answer now
	Waiting             int    // batches cut and not acknowledged now
	HeldBytes           int64  // encoded bytes in memory now
	SpoolBytes          int64  // on disk now
	RecoveredBatches    uint64 // found in the spool of an earlier run
	TornBytes           uint64 // at the end of spool files, unreadable
	HeartbeatsConfirmed uint64
	Commits             uint64 // groups written
	Uncommitted         uint64 // rows that Close forgot, to be read again
}

// counters are kept whether or not there is a registry.
type counters struct {
	rows    *prometheus.CounterVec // outcome: sent, skipped, dropped, invalid, uncommitted; reason
	batches *prometheus.CounterVec
	bytes   prometheus.Counter
	retries *prometheus.CounterVec
	groups  prometheus.Counter

	sent, skipped, sentBatches, sentBytes atomic.Uint64
	invalid, droppedBatches, retried      atomic.Uint64
	recovered, torn, heartbeats           atomic.Uint64
	commits, uncommitted                  atomic.Uint64

	mu      sync.Mutex
	dropped map[string]uint64 // rows by reason
}

func newCounters(r prometheus.Registerer, entry string) (*counters, error) {
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "penstock_publisher_" + name, Help: help, ConstLabels: prometheus.Labels{"entry": entry},
		}, labels)
	}
	c := &counters{
		rows: vec("rows_total", "Rows by what became of them: sent, skipped, dropped, invalid, uncommitted.", "outcome", "reason"),
		batches: vec("batches_total", "Batches by what became of them.",
			"outcome", "reason"),
		bytes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "penstock_publisher_bytes_total", Help: "Encoded bytes that were acknowledged.",
			ConstLabels: prometheus.Labels{"entry": entry},
		}),
		groups: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "penstock_publisher_commits_total", Help: "Groups that are in the spool with their position.",
			ConstLabels: prometheus.Labels{"entry": entry},
		}),
		retries: vec("retries_total", "Batches and marks sent again, by reason.", "reason"),
	}
	if r == nil {
		return c, nil
	}
	if err := errors.Join(
		register(r, &c.rows), register(r, &c.batches), register(r, &c.bytes), register(r, &c.retries),
		register(r, &c.groups),
	); err != nil {
		return nil, fmt.Errorf("publisher metrics: %w", err)
	}
	return c, nil
}

// register takes over the collector that is there already: an entry point that
// is opened again goes on counting.
func register[C prometheus.Collector](r prometheus.Registerer, c *C) error {
	err := r.Register(*c)
	var already prometheus.AlreadyRegisteredError
	if errors.As(err, &already) {
		if have, ok := already.ExistingCollector.(C); ok {
			*c = have
			return nil
		}
	}
	return err
}
