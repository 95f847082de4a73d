package panes

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"penstock/schemas/window"
)

// maxSection bounds what Restore allocates for one length that it reads: 1 GiB.
const maxSection = 1 << 30

// state is what a snapshot holds beside the tables of open windows.
type state struct {
	Version    int                  `json:"version"`
	Group      string               `json:"group"`
	WidthUS    int64                `json:"width_us"`
	Partitions []partitionState     `json:"partitions"`
	Tables     int                  `json:"tables"`
	Starts     []int64              `json:"starts"` // window of each table
	Counts     []window.WindowCount `json:"counts,omitempty"`
	Incomplete []window.Interval    `json:"incomplete,omitempty"`
	Stats      Stats                `json:"stats"`
}

type partitionState struct {
	Seq       uint64         `json:"seq"`
	Watermark int64          `json:"watermark"`
	Total     window.Account `json:"total"`
	Missed    bool           `json:"missed,omitempty"`
	From      int64          `json:"from,omitempty"`
}

// Snapshot writes all that was committed: open windows (merged, one table a
// rollup), watermarks, and the sequence of each partition's last commit. Panes
// without a commit stand above that sequence and are read again.
func (a *Assembler) Snapshot(w io.Writer) error {
	s := state{Version: 1, Group: a.opts.Group, WidthUS: a.width, Incomplete: a.incomplete, Stats: a.stats}
	for _, p := range a.parts {
		s.Partitions = append(s.Partitions, partitionState{p.seq, p.watermark, p.total, p.missed, p.from})
	}
	var tables []*window.Table
	for _, start := range a.starts {
		for _, r := range window.Of(a.opts.Group) {
			if panes := a.open[start].panes[r.Name]; len(panes) > 0 {
				tables, s.Starts = append(tables, window.Merge(r, panes...)), append(s.Starts, start)
			}
		}
	}
	s.Tables = len(tables)
	for start := range a.counts {
		s.Counts = append(s.Counts, a.counts[start])
	}
	slices.SortFunc(s.Counts, func(x, y window.WindowCount) int { return cmp.Compare(x.Start, y.Start) })
	head, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("snapshot of open windows: %w", err)
	}
	if err := writeSection(w, head); err != nil {
		return err
	}
	for _, t := range tables {
		body, err := t.Encode(nil)
		if err != nil {
			return fmt.Errorf("snapshot of open windows: %w", err)
		}
		if err := writeSection(w, body); err != nil {
			return err
		}
	}
	return nil
}

// Restore replaces the assembler's state by a snapshot's. It reads no further
// than the snapshot's last byte.
func (a *Assembler) Restore(r io.Reader) error {
	head, err := readSection(r)
	if err != nil {
		return err
	}
	var s state
	if err := json.Unmarshal(head, &s); err != nil {
		return fmt.Errorf("%w: %w", ErrSnapshot, err)
	}
	if s.Version != 1 || s.Group != a.opts.Group || s.WidthUS != a.width || len(s.Partitions) != len(a.parts) || s.Tables != len(s.Starts) {
		return fmt.Errorf("version %d, group %s, windows of %d µs, %d partitions: %w", s.Version, s.Group, s.WidthUS, len(s.Partitions), ErrSnapshot)
	}
	fresh := New(a.opts)
	fresh.incomplete, fresh.stats = s.Incomplete, s.Stats
	for i, p := range s.Partitions {
		fresh.parts[i] = partition{seq: p.Seq, watermark: p.Watermark, total: p.Total, missed: p.Missed, from: p.From}
	}
	for _, c := range s.Counts {
		fresh.counts[c.Start] = c
	}
	for _, start := range s.Starts {
		body, err := readSection(r)
		if err != nil {
			return err
		}
		t, err := window.DecodeTable(body)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrSnapshot, err)
		}
		if t.Rollup.Group != a.opts.Group || t.Rollup == window.Late || t.Wide() != a.opts.Widths.Of(t.Rollup) || start != window.Start(start, a.opts.Width) {
			return fmt.Errorf("table of %s in a window that starts at %d: %w", t.Rollup.Name, start, ErrSnapshot)
		}
		o := fresh.window(start)
		o.panes[t.Rollup.Name] = append(o.panes[t.Rollup.Name], t)
	}
	*a = *fresh
	return nil
}

func writeSection(w io.Writer, b []byte) error {
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(b)))
	if _, err := w.Write(n[:]); err != nil {
		return fmt.Errorf("snapshot of open windows: %w", err)
	}
	if _, err := w.Write(b); err != nil {
		return fmt.Errorf("snapshot of open windows: %w", err)
	}
	return nil
}

func readSection(r io.Reader) ([]byte, error) {
	var n [8]byte
	if _, err := io.ReadFull(r, n[:]); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSnapshot, err)
	}
	size := binary.BigEndian.Uint64(n[:])
	if size > maxSection {
		return nil, fmt.Errorf("section of %d bytes: %w", size, ErrSnapshot)
	}
	// The buffer grows with what is there, not with what the length promises.
	var b bytes.Buffer
	if _, err := io.CopyN(&b, r, int64(size)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSnapshot, err)
	}
	return b.Bytes(), nil
}
