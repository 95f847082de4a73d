package admin

import (
	"time"

	"penstock/consumers/executor/coder"
	"penstock/consumers/executor/coder/codes"
	"penstock/consumers/executor/coder/queue"
)

// Status is what a coder is at.
type Status struct {
	Coder  string    `json:"coder"`
	Layout string    `json:"layout"`
	Now    time.Time `json:"now"`

	Buckets int64 `json:"buckets"`
	Objects int64 `json:"objects"`
	Bytes   int64 `json:"bytes"` // of objects
	Uploads int64 `json:"uploads"`
	// Unintended counts object versions that are not in their intended coding: Staged
	// wait to be settled or to be coded anew, Lacking to be repaired, and Unseen to be
	// looked at after a start with another coding.
	Unintended int64 `json:"unintended"`
	Staged     int64 `json:"staged"`
	Lacking    int64 `json:"lacking"`
	Unseen     int64 `json:"unseen"`
	// Unreadable counts versions that the last scrub, or reads since it began, found
	// unreadable though all their stores answered.
	Unreadable int64 `json:"unreadable"`
	// Deletes counts blobs that wait to be deleted. Repeats of them were deleted, and are to
	// be once more when a request to write them can't be carried out any more.
	Deletes int64 `json:"deletes"`
	Repeats int64 `json:"repeats"`

	// Backlog is how many requests wait, Smoothed what the choice of codes goes by.
	Backlog  int     `json:"backlog"`
	Smoothed float64 `json:"smoothed"`
	// Connections is how many of Limit are in use.
	Connections int `json:"connections"`
	Limit       int `json:"limit"`

	// Read and Write are the codes that a request would get now, by the table of Epoch,
	// which is good until Until; 0 and none for the configured one.
	Read  Code       `json:"read"`
	Write Code       `json:"write"`
	Epoch uint64     `json:"epoch"`
	Until *time.Time `json:"until,omitempty"`

	Stores []Store `json:"stores"`
	// Scrub is the one under way, LastScrub the last that ended.
	Scrub     *Scrub `json:"scrub,omitempty"`
	LastScrub *Scrub `json:"last_scrub,omitempty"`
}

// Code is an erasure code: N chunks are asked for, K are needed.
type Code struct {
	N int `json:"n"`
	K int `json:"k"`
}

// Store is the health of a store.
type Store struct {
	Name     string  `json:"name"`
	DelayMs  float64 `json:"delay_ms"` // smoothed, of a task
	Failures int     `json:"failures"` // tasks in a row
	Dead     bool    `json:"dead"`     // asked last, and probed
	// Absent tells that it has no owner marker though chunks are in it: it isn't what it
	// was. Its disk is to be mounted, or TakeIn to say that what it held is lost.
	Absent bool `json:"absent,omitempty"`
}

// Scrub is one that runs or has ended.
type Scrub struct {
	Began    time.Time `json:"began"`
	Seconds  float64   `json:"seconds"`
	Repair   bool      `json:"repair"`
	Progress Progress  `json:"progress"`
	// Report is of all that was looked at, once it has ended; Error why it ended before
	// all was.
	Report *coder.Report `json:"report,omitempty"`
	Error  string        `json:"error,omitempty"`
}

// Progress is how far a scrub is. Bytes are of objects.
type Progress struct {
	Versions      int64 `json:"versions"`
	VersionsTotal int64 `json:"versions_total"`
	Bytes         int64 `json:"bytes"`
	BytesTotal    int64 `json:"bytes_total"`
}

// line is one of the answer to a scrub.
type line struct {
	Progress *Progress     `json:"progress,omitempty"`
	Report   *coder.Report `json:"report,omitempty"`
	Error    string        `json:"error,omitempty"`
}

// Codes say by what requests get their codes. codes.Chooser is one.
type Codes interface {
	State() codes.State
}

// fill copies the coder's figures.
func (s *Status) fill(c *coder.Stats) {
	s.Buckets, s.Objects, s.Bytes, s.Uploads = c.Buckets, c.Objects, c.Bytes, c.Uploads
	s.Unintended, s.Staged, s.Lacking, s.Unseen, s.Deletes = c.Unintended, c.Staged, c.Lacking, c.Unseen, c.Deletes
	s.Unreadable, s.Repeats = c.Unreadable, c.Repeats
	s.Backlog, s.Connections, s.Limit = c.Backlog, c.Connections, c.Limit
	s.Stores = []Store{}
	for _, h := range c.Stores {
		s.Stores = append(s.Stores, Store{
			Name: h.Name, DelayMs: float64(h.Delay) / float64(time.Millisecond), Failures: h.Failures, Dead: h.Dead, Absent: h.Absent,
		})
	}
}

// choice says which codes are in force.
func (s *Status) choice(c Codes) {
	state := c.State()
	s.Smoothed, s.Epoch = state.Backlog, state.Epoch
	if !state.Until.IsZero() {
		s.Until = &state.Until
	}
	idle := s.Limit - s.Connections
	read, write := state.Choose(queue.Read, idle), state.Choose(queue.Write, idle)
	s.Read, s.Write = Code{N: read.N, K: read.K}, Code{N: write.N, K: write.K}
}
