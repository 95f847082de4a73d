package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"penstock/producers/replay/statefile"
)

// never is the end of a window before the first.
const never = math.MinInt64

// Cursor is how far a replay has come: the last window that was answered. The
// rest of its state follows from the input and the bus.
type Cursor struct {
	Version     int         `json:"version"`
	Fingerprint Fingerprint `json:"fingerprint"`
	Run         string      `json:"run"`
	// Window is the end (µs) of the last answered window, null before the first.
	Window *int64 `json:"window_end"`
	// Acked is the last acknowledged sequence by partition at that time.
	Acked []uint64 `json:"acked,omitempty"`
	// Rows had been read, and Rejected malformed lines sampled, by then.
	Rows     int64 `json:"rows_read"`
	Rejected int64 `json:"rejected"`
	// Horizon (µs) of the run at that time.
	Horizon  int64 `json:"horizon"`
	Finished bool  `json:"finished"`
}

// end is the end of the last answered window, never before the first.
func (c *Cursor) end() int64 {
	if c.Window == nil {
		return never
	}
	return *c.Window
}

func cursorPath(dir string) string { return filepath.Join(dir, "cursor.json") }

// ReadCursor returns the cursor of a state folder; nil if it holds no replay.
// ErrCursor.
func ReadCursor(dir string) (*Cursor, error) {
	data, err := os.ReadFile(cursorPath(dir))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCursor, err)
	}
	c, err := decodeCursor(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cursorPath(dir), err)
	}
	return c, nil
}

func decodeCursor(data []byte) (*Cursor, error) {
	c := new(Cursor)
	if err := json.Unmarshal(data, c); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCursor, err)
	}
	if c.Version != 1 || c.Run == "" {
		return nil, fmt.Errorf("%w: version %d, run %.40q; expected version 1 and a run", ErrCursor, c.Version, c.Run)
	}
	return c, nil
}

// Standing is how a state folder stands to a replay.
type Standing int

// The standings.
const (
	Fresh      Standing = iota // the folder holds no replay
	Unfinished                 // it holds this replay: Run goes on
	Finished                   // it holds a finished one, this or another
)

// Inspect says how a state folder stands to a replay. An unfinished other one is
// a *DifferentError; ErrCursor.
func Inspect(dir string, f Fingerprint) (Standing, error) {
	c, err := ReadCursor(dir)
	switch {
	case err != nil:
		return Fresh, err
	case c == nil:
		return Fresh, nil
	case c.Finished:
		return Finished, nil
	}
	if d := f.differences(c.Fingerprint); d != nil {
		return Unfinished, &DifferentError{d}
	}
	return Unfinished, nil
}

// openCursor returns the cursor that a run goes on from, a new one if need be.
// A new one is written at once, so that another replay finds the folder taken.
func openCursor(dir string, f Fingerprint, run string) (*Cursor, error) {
	standing, err := Inspect(dir, f)
	if err != nil {
		return nil, err
	}
	switch standing {
	case Finished:
		return nil, ErrFinished
	case Unfinished:
		c, err := ReadCursor(dir)
		if err == nil && c.Run != run {
			return nil, &DifferentError{[]string{fmt.Sprintf("run was %s and is %s", c.Run, run)}}
		}
		return c, err
	}
	c := &Cursor{Version: 1, Fingerprint: f, Run: run}
	return c, c.write(dir)
}

func (c *Cursor) write(dir string) error { return statefile.Write(cursorPath(dir), c) }
