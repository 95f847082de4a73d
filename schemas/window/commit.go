package window

import (
	"encoding/json"
	"fmt"
)

// Schemas and headers of what travels on WINDOWS (DESIGN §3.4).
const (
	PanesSchema  = "panes/1"
	CommitSchema = "commit/1"
	HeaderFlush  = "Penstock-Flush"
)

// Account is where rows ended up: Received = Counted + Late + Duplicate +
// Malformed + Quarantined. Lost is in batches and stands beside it.
type Account struct {
	Received    int64 `json:"received"`
	Counted     int64 `json:"counted"`
	Late        int64 `json:"late"`
	Duplicate   int64 `json:"duplicate"`
	Malformed   int64 `json:"malformed"`
	Quarantined int64 `json:"quarantined"`
	LostBatches int64 `json:"lost_batches"`
}

// Add adds another account.
func (a *Account) Add(o Account) {
	a.Received += o.Received
	a.Counted += o.Counted
	a.Late += o.Late
	a.Duplicate += o.Duplicate
	a.Malformed += o.Malformed
	a.Quarantined += o.Quarantined
	a.LostBatches += o.LostBatches
}

// Holds reports whether every received row is in exactly one account.
func (a Account) Holds() bool {
	return a.Received == a.Counted+a.Late+a.Duplicate+a.Malformed+a.Quarantined
}

// Interval is a stretch of event time [From, To) in µs of which something is
// missing: its windows are incomplete and no policy acts on them.
type Interval struct {
	From   int64  `json:"from"`
	To     int64  `json:"to"`
	Reason string `json:"reason"` // lost, dropped, trimmed
	Run    string `json:"run,omitempty"`
}

// Range is sequences First to Last of a run on a partition.
type Range struct {
	First     uint64 `json:"first"`
	Last      uint64 `json:"last"`
	Watermark int64  `json:"watermark"` // µs, of Last
}

// PendingMark is a mark whose sequence isn't contiguous yet.
type PendingMark struct {
	Kind      string `json:"kind"`
	Upto      uint64 `json:"upto"`
	Watermark int64  `json:"watermark"`
}

// Run is what an aggregator knows of a live run on its partition.
type Run struct {
	Run        string        `json:"run"`
	Contiguous uint64        `json:"contiguous"` // highest sequence without a gap below
	Watermark  int64         `json:"watermark"`  // µs, NullInt if none yet
	Above      []Range       `json:"above,omitempty"`
	Marks      []PendingMark `json:"marks,omitempty"`
	// Gaps holds when (stream time, µs) the gap below each range opened, as
	// Above.
	Gaps    []int64 `json:"gaps,omitempty"`
	Seen    int64   `json:"seen"` // stream time (µs) of the last message
	Ended   bool    `json:"ended,omitempty"`
	Account Account `json:"account"` // of the run since it began
}

// WindowCount is the counted and late rows of a window of the group's first
// rollup within one flush.
type WindowCount struct {
	Start   int64 `json:"start"`
	Counted int64 `json:"counted"`
	Late    int64 `json:"late"`
}

// Commit is the last message of a flush: what the flush covers, and all that a
// successor needs to go on (DESIGN §3.2).
type Commit struct {
	Version    int           `json:"version"`
	Group      string        `json:"group"`
	Partition  int           `json:"partition"`
	Flush      string        `json:"flush"`
	Owner      string        `json:"owner"` // id of the aggregator process
	Covered    uint64        `json:"covered"`
	Watermark  int64         `json:"watermark"`   // µs, of the partition; NullInt if none yet
	StreamTime int64         `json:"stream_time"` // µs
	Panes      int           `json:"panes"`       // messages before this one
	Account    Account       `json:"account"`     // of this flush
	Total      Account       `json:"total"`       // since the beginning
	Windows    []WindowCount `json:"windows,omitempty"`
	Incomplete []Interval    `json:"incomplete,omitempty"` // new with this flush
	Runs       []Run         `json:"runs,omitempty"`
}

// Encode returns the commit's body.
func (c *Commit) Encode() ([]byte, error) {
	c.Version = 1
	b, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encode commit: %w", err)
	}
	return b, nil
}

// DecodeCommit reads a commit's body; unknown fields are ignored, so that a
// later version may add some.
func DecodeCommit(body []byte) (*Commit, error) {
	c := new(Commit)
	if err := json.Unmarshal(body, c); err != nil {
		return nil, fmt.Errorf("commit: %w: %w", ErrUndecodable, err)
	}
	if c.Version != 1 || c.Flush == "" {
		return nil, fmt.Errorf("commit: version %d, flush %.40q; expected version 1 and a flush: %w", c.Version, c.Flush, ErrUndecodable)
	}
	return c, nil
}
