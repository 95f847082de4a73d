package aggregator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"penstock/infra/bus"
	"penstock/schemas/event"
	"penstock/schemas/window"
)

const (
	retryLeast = 50 * time.Millisecond
	retryMost  = 2 * time.Second
	// passedAfter is how far apart flushes are at least that close windows of live
	// traffic. They don't wait for a tick, which windows of some seconds would
	// feel; and whoever catches up passes many windows a second.
	passedAfter = 250 * time.Millisecond
)

// due reports whether a flush is to begin now (DESIGN §3.2).
func (w *worker) due() bool {
	size := w.state.Size()
	if w.leaving {
		return w.book.Dirty()
	}
	if w.book.Due() || size >= w.opts.FlushBytes || w.book.Windows() >= MaxWindows {
		return true
	}
	if w.opts.Purpose == bus.Replay && w.unread >= ReplayUncovered {
		return true
	}
	if w.opts.Purpose == bus.Serve && w.book.Passed() && w.opts.Clock.Now().Sub(w.began) >= passedAfter {
		return true
	}
	if !w.ticked {
		return false
	}
	w.ticked = false
	age := w.opts.Clock.Now().Sub(w.began)
	switch {
	case w.book.Passed(), w.parked:
		return true
	case age >= renewAfter:
		return true
	case !w.book.Dirty():
		return false
	case size > 0:
		return age >= w.opts.FlushEvery
	}
	return age >= DefaultFlushOwners
}

// landed is a flush that came to an end.
type landed struct {
	seq     uint64
	covered uint64
	took    time.Duration
	msgs    int
	bytes   int
	err     error
}

// launch begins a flush of everything up to the covered sequence. The worker
// goes on while it is in flight.
func (w *worker) launch(ctx context.Context) {
	w.tell()
	tables := w.state.Tables()
	commit := w.book.Commit()
	commit.Flush, commit.Owner = newID(w.opts.Clock), w.opts.Owner
	w.began, w.unread, w.parked = w.opts.Clock.Now(), 0, false
	w.count(Excluded, commit.Excluded)
	began, expect, done := w.began, w.last, w.flight
	go func() {
		l := landed{covered: commit.Covered}
		var msgs []bus.Msg
		if msgs, l.err = encode(tables, commit, w.opts.whole); l.err == nil {
			for _, m := range msgs {
				l.bytes += len(m.Data)
			}
			l.msgs = len(msgs)
			l.seq, l.err = w.deliver(ctx, msgs, commit.Flush, expect)
		}
		l.took = w.opts.Clock.Now().Sub(began)
		done <- l
	}()
}

// encode returns the messages of a flush: the panes, then the commit. What has at
// most that many bytes is one message, panes in front of the commit: an atomic batch costs the
// server a folder of its own, some 10 ms.
func encode(tables []*window.Table, c *window.Commit, most int) ([]bus.Msg, error) {
	var panes [][]byte
	bytes := 0
	for _, t := range tables {
		for _, part := range t.Split(PaneBytes) {
			body, err := part.Encode(nil)
			if err != nil {
				return nil, fmt.Errorf("pane of %s: %w", t.Rollup.Name, err)
			}
			panes = append(panes, body)
			bytes += len(body)
		}
	}
	c.Panes = len(panes)
	body, err := c.Encode()
	if err != nil {
		return nil, err
	}
	to := subjectOf(c.Group, c.Partition)
	header := func(schema string) map[string][]string {
		return map[string][]string{event.HeaderSchema: {schema}, window.HeaderFlush: {c.Flush}}
	}
	commit := bus.Msg{Subject: to, Header: header(window.CommitSchema), Data: body}
	if len(panes) > 0 && bytes+len(body) <= most {
		whole, lengths := window.Join(panes, body)
		commit.Data, commit.Header[window.HeaderPanes] = whole, []string{lengths}
		return []bus.Msg{commit}, nil
	}
	var msgs []bus.Msg
	for _, p := range panes {
		msgs = append(msgs, bus.Msg{Subject: to, Header: header(window.PanesSchema), Data: p})
	}
	return append(msgs, commit), nil
}

// deliver stores a flush and returns the sequence of its commit. An answer that
// does not come leaves the state unknown: everything is sent again, as often as
// it takes. A refusal is a fence only if the last commit is another's.
func (w *worker) deliver(ctx context.Context, msgs []bus.Msg, flush string, expect uint64) (uint64, error) {
	for wait := retryLeast; ; wait = min(2*wait, retryMost) {
		seq, err := w.opts.Publish(ctx, msgs, expect)
		switch {
		case err == nil:
			w.suffers("")
			return seq, nil
		case errors.Is(err, bus.ErrConflict):
			m, err := w.lastCommit(ctx)
			if err != nil {
				return 0, err
			}
			if got := m.Header[window.HeaderFlush]; len(got) == 1 && got[0] == flush {
				w.count(Recognised, 1)
				w.suffers("")
				return m.Seq, nil
			}
			return 0, errFenced
		case errors.Is(err, bus.ErrTooLarge):
			return 0, fmt.Errorf("flush of %d messages: %w", len(msgs), err)
		}
		if err := w.again(ctx, err, "flush was not answered, sending it again", wait); err != nil {
			return 0, err
		}
		w.count(Resent, 1)
	}
}

// land takes note of a flush that came to an end.
func (w *worker) land(l landed) error {
	if l.err != nil {
		return l.err
	}
	w.last = l.seq
	w.opts.Metrics.Flushed(w.opts.Group, w.partition, Flushed{
		Messages: l.msgs, Bytes: l.bytes, Took: l.took, Covered: l.covered,
	})
	if w.opts.Covered != nil {
		w.opts.Covered(w.opts.Group, w.partition, l.covered)
	}
	return nil
}
