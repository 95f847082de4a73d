package window

import (
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	"penstock/schemas/event"
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
	Reason string `json:"reason"` // lost, dropped, trimmed, undecodable
	Run    string `json:"run,omitempty"`
}

// Range is sequences First to Last of a run on a partition.
type Range struct {
	First     uint64 `json:"first"`
	Last      uint64 `json:"last"`
	Watermark int64  `json:"watermark"` // µs, of Last
}

// Gap is sequences First to Last of a run that are known to be missing, and
// when (stream time, µs) that became known. After is the least watermark (µs)
// that the run is known to have had after Last, NullInt if none.
type Gap struct {
	First  uint64 `json:"first"`
	Last   uint64 `json:"last"`
	Opened int64  `json:"opened"`
	After  int64  `json:"after"`
}

// Span is sequences First to Last of a run on a partition.
type Span struct {
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
}

// Retired is a run that was forgotten: what comes of it up to Last is a
// duplicate, what comes beyond goes to REJECTS.
type Retired struct {
	Run  string `json:"run"`
	Last uint64 `json:"last"` // highest sequence that was received or given up
	At   int64  `json:"at"`   // stream time (µs)
	// Lost is kept for the latest eight: such a batch is late, no duplicate.
	Lost []Span `json:"lost,omitempty"`
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
	Gaps       []Gap         `json:"gaps,omitempty"`
	// Lost are sequences that were given up, below Contiguous or in Above: if
	// one still comes, its rows are late. At most 256; the highest are kept.
	Lost []Span `json:"lost,omitempty"`
	// Ahead is how far (µs) a row's time was seen beyond its batch's watermark.
	Ahead int64 `json:"ahead,omitempty"`
	Seen  int64 `json:"seen"` // stream time (µs) of the last message
	// Ended runs are told of once, in the flush after their end, and are among
	// the retired from then on.
	Ended bool `json:"ended,omitempty"`
	// Trimmed says that messages of this run may have left the stream unread:
	// its next gap is lost at once.
	Trimmed bool    `json:"trimmed,omitempty"`
	Parked  int64   `json:"parked,omitempty"` // samples sent to REJECTS
	Account Account `json:"account"`          // of the run since it began
}

// WindowCount is the counted and late rows of a window of the group's first
// rollup within one flush.
type WindowCount struct { //nolint:revive // Count alone would not say of what.
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
	Reach      int64         `json:"reach"`       // µs, greatest watermark of any run so far, NullInt if none
	StreamTime int64         `json:"stream_time"` // µs, 0 if no message was read yet
	ServerTime int64         `json:"server_time"` // µs, the server's, of the message at Covered
	Panes      int           `json:"panes"`       // messages before this one
	Account    Account       `json:"account"`     // of this flush
	Total      Account       `json:"total"`       // since the beginning
	Windows    []WindowCount `json:"windows,omitempty"`
	Incomplete []Interval    `json:"incomplete,omitempty"` // new with this flush
	Runs       []Run         `json:"runs,omitempty"`       // by name
	Retired    []Retired     `json:"retired,omitempty"`    // oldest first, at most 256
	Parked     int64         `json:"parked,omitempty"`     // samples sent to REJECTS that belong to no live run
	Excluded   int64         `json:"excluded,omitempty"`   // delay samples of this flush that are negative or absurd (P18)
	// Hole says that messages left the stream unread and none was read since:
	// the next one ends the incomplete interval.
	Hole bool `json:"hole,omitempty"`
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
// later version may add some. The error names the field and what was expected,
// and wraps ErrUndecodable.
func DecodeCommit(body []byte) (*Commit, error) {
	c := new(Commit)
	if !utf8.Valid(body) {
		return nil, fmt.Errorf("commit: not UTF-8: %w", ErrUndecodable)
	}
	if err := json.Unmarshal(body, c); err != nil {
		return nil, fmt.Errorf("commit: %w: %w", ErrUndecodable, err)
	}
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("commit: %w: %w", err, ErrUndecodable)
	}
	return c, nil
}

func (c *Commit) check() error {
	invalid := func(field string, got any, expected string) error {
		return fmt.Errorf("field %s: got %.60q, expected %s", field, fmt.Sprint(got), expected)
	}
	switch {
	case c.Version != 1:
		return invalid("version", c.Version, "1")
	case c.Flush == "":
		return invalid("flush", c.Flush, "the id of a flush")
	case !slices.Contains(Groups, c.Group):
		return invalid("group", c.Group, "owners or fast")
	case c.Partition < 0:
		return invalid("partition", c.Partition, "0 or more")
	case c.Panes < 0:
		return invalid("panes", c.Panes, "0 or more")
	case c.Watermark != NullInt && (c.Watermark < event.MinTime || c.Watermark > event.MaxTime):
		return invalid("watermark", c.Watermark, "a time between 1900 and 2200 in µs, or none")
	}
	for i, n := range c.Incomplete {
		if n.To < n.From {
			return invalid(fmt.Sprintf("incomplete[%d]", i), fmt.Sprint(n.From, " to ", n.To), "an interval that does not end before it begins")
		}
	}
	for i, r := range c.Runs {
		if r.Run == "" {
			return invalid(fmt.Sprintf("runs[%d].run", i), "", "the id of a run")
		}
	}
	return nil
}
