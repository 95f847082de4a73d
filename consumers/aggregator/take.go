package aggregator

import (
	"context"
	"fmt"

	"penstock/consumers/aggregator/ledger"
	"penstock/infra/bus"
	"penstock/schemas/event"
)

// take books one message and adds its rows up.
func (w *worker) take(ctx context.Context, m *bus.Msg) error {
	if m.Seq <= w.book.Covered() {
		w.count(Repeated, 1)
		return nil
	}
	w.unread += len(m.Data)
	w.stored, w.wait = m.Time, m.Pending
	at := ledger.Position{Seq: m.Seq, Time: m.Time.UnixMicro()}
	if event.IsMark(m.Header) {
		mark, err := event.ParseMark(m.Header, w.opts.Client.Partitions())
		if err != nil {
			w.book.Unreadable(at, 0)
			return w.park(ctx, m, "", reasonHeaders, err)
		}
		if !w.book.Mark(at, &mark) {
			w.count(Stale, 1)
		}
		return nil
	}
	h, err := event.ParseHeader(m.Header)
	if err != nil {
		w.book.Unreadable(at, ledger.RowsOf(m.Header))
		return w.park(ctx, m, "", reasonHeaders, err)
	}
	switch w.book.Look(h.Run, h.Seq) {
	case ledger.Duplicate:
		w.book.Skip(at, &h)
		return nil
	case ledger.Retired:
		w.book.Skip(at, &h)
		return w.park(ctx, m, h.Run, reasonRetired,
			fmt.Errorf("header %s: run %.40s has ended, expected a live run: %w", event.HeaderRun, h.Run, event.ErrUndecodable))
	}
	if err := w.add(at, &h, m.Data); err != nil {
		w.book.Refuse(at, &h)
		return w.park(ctx, m, h.Run, reasonUndecodable, err)
	}
	return nil
}

// add decodes a batch, books it and adds it up. After an error nothing of it
// was used.
func (w *worker) add(at ledger.Position, h *event.Header, body []byte) error {
	if h.Rows == 0 {
		w.book.Take(at, h, nil, nil)
		return nil
	}
	if h.Schema == event.GaugeSchema {
		if err := w.gauges.Decode(body, h.Encoding, &w.gauge); err != nil {
			return err
		}
		if err := agree(h.Rows, w.gauge.Len()); err != nil {
			return err
		}
		w.state.AddGauges(&w.gauge, w.book.Take(at, h, w.gauge.Time, w.unmarked(w.gauge.Len())))
		return nil
	}
	if err := w.decoder.Decode(body, h.Encoding, &w.requests); err != nil {
		return err
	}
	if err := agree(h.Rows, w.requests.Len()); err != nil {
		return err
	}
	class := w.book.Take(at, h, w.requests.Time, w.requests.Mark)
	w.book.Exclude(w.state.Add(&w.requests, class))
	for i, t := range w.requests.Time {
		if t > w.newest && class[i] == ledger.Counted {
			w.newest = t
		}
	}
	return nil
}

// unmarked returns n rows' worth of marks that say in time.
func (w *worker) unmarked(n int) []uint8 {
	if len(w.zeros) < n {
		w.zeros = make([]uint8, max(n, event.MaxRows))
	}
	return w.zeros[:n]
}

// agree compares the rows of a batch with its header: duplicates are booked by
// the header alone.
func agree(header, body int) error {
	if header == body {
		return nil
	}
	return fmt.Errorf("header %s: got %d, expected the batch's %d rows: %w",
		event.HeaderRows, header, body, event.ErrUndecodable)
}
