package panes

import (
	"fmt"

	"penstock/schemas/subject"
	"penstock/schemas/window"
)

// headerSchema says what a message on WINDOWS is.
const headerSchema = "Penstock-Schema"

// Message takes in one message of WINDOWS as it travels, in stream order. It
// returns the flush if the message committed one that was not known. An error
// wraps window.ErrUndecodable or ErrForeign, and nothing of the message was
// used.
func (a *Assembler) Message(subj string, seq uint64, header map[string][]string, body []byte) (*Flush, error) {
	group, part, err := subject.PartitionOfWindows(subj)
	if err != nil {
		return nil, err
	}
	if group != a.opts.Group || part >= len(a.parts) {
		return nil, fmt.Errorf("subject %s at sequence %d: %w", subj, seq, ErrForeign)
	}
	// What the snapshot holds already need not be decoded again.
	if seq <= a.parts[part].seq {
		a.stats.Known++
		return nil, nil
	}
	switch schema := first(header, headerSchema); schema {
	case window.PanesSchema:
		t, err := window.DecodeTable(body)
		if err != nil {
			return nil, fmt.Errorf("%s at sequence %d: %w", subj, seq, err)
		}
		return nil, a.Pane(part, seq, first(header, window.HeaderFlush), t)
	case window.CommitSchema:
		return a.commitMessage(part, seq, header, body)
	default:
		return nil, fmt.Errorf("%s at sequence %d: schema %.40q, expected %s or %s: %w", subj, seq, schema, window.PanesSchema, window.CommitSchema, ErrForeign)
	}
}

// commitMessage takes in a commit, and its panes if the flush is one message.
func (a *Assembler) commitMessage(part int, seq uint64, header map[string][]string, body []byte) (*Flush, error) {
	panes, body, err := window.Part(first(header, window.HeaderPanes), body)
	if err != nil {
		return nil, fmt.Errorf("commit of partition %d at sequence %d: %w", part, seq, err)
	}
	c, err := window.DecodeCommit(body)
	if err != nil {
		return nil, fmt.Errorf("commit of partition %d at sequence %d: %w", part, seq, err)
	}
	tables := make([]*window.Table, len(panes))
	for i, p := range panes {
		if tables[i], err = window.DecodeTable(p); err != nil {
			return nil, fmt.Errorf("pane %d in the commit of partition %d at sequence %d: %w", i, part, seq, err)
		}
	}
	for _, t := range tables {
		if err := a.Pane(part, seq, c.Flush, t); err != nil {
			return nil, err
		}
	}
	return a.Commit(part, seq, c)
}

func first(header map[string][]string, name string) string {
	if v := header[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}
