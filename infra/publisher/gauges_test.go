package publisher

import (
	"testing"
	"time"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/schemas/event"
	"penstock/schemas/subject"
)

func gauge(n int, at time.Time) event.Gauge {
	g := event.NewGauge(at.UnixMicro())
	g.Site, g.Server, g.Backlog = "east", "objects", int64(n)
	return g
}

// gauges decodes the gauges of EVENTS, with the sequences of their batches.
func gauges(t *testing.T, c *bus.Client) (rows []event.Gauge, seqs []uint64) {
	t.Helper()
	st, err := c.State(testContext(t), subject.EventsStream)
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Read(testContext(t), subject.EventsStream, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var d event.GaugeDecoder
	var b event.Gauges
	for seq := uint64(0); seq < st.LastSeq; {
		m := bustest.Take(t, r, 1)[0]
		seq = m.Seq
		if event.IsMark(m.Header) {
			continue
		}
		h, err := event.ParseHeader(m.Header)
		if err != nil {
			t.Fatal(err)
		}
		if h.Schema != event.GaugeSchema {
			continue
		}
		if m.Subject != subject.Events(0, "web") {
			t.Errorf("gauges on %s", m.Subject)
		}
		if err := d.Decode(m.Data, h.Encoding, &b); err != nil || b.Len() != h.Rows {
			t.Fatalf("%d of %d gauges: %v", b.Len(), h.Rows, err)
		}
		for i := range b.Len() {
			rows = append(rows, b.Row(i))
		}
		seqs = append(seqs, h.Seq)
	}
	return rows, seqs
}

// Gauges go out beside rows, under one numbering, each once, also those that a spool
// has kept over a kill; what no batch may hold is counted.
func TestGauges(t *testing.T) {
	t.Parallel()
	c := bustest.Client(t, bustest.Start(t, func(o *bus.Options) { o.Partitions = 1 }))
	dir := t.TempDir()
	now := time.Now()
	p := newLive(t, c, func(o *Options) { o.SpoolDir, o.MaxRows = dir, 4 })
	for n := range 6 {
		r := liveRow(n, now)
		p.Publish(&r)
		g := gauge(n, now)
		p.Gauge(&g)
	}
	bad := gauge(9, now)
	bad.Site = ""
	p.Gauge(&bad)
	waitFor(t, "all of it", func() bool { return p.Stats().Sent == 12 })
	if s := p.Stats(); s.Invalid != 1 {
		t.Errorf("%+v, expected one that is invalid", s)
	}
	if err := p.End(testContext(t), now.UnixMicro()); err != nil {
		t.Fatal(err)
	}
	p.Gauge(&bad) // too late and wrong: counted as the latter
	late := gauge(10, now)
	p.Gauge(&late)
	if s := p.Stats(); s.Dropped[DropClosed] != 1 || s.Invalid != 2 {
		t.Errorf("%+v, expected one that came after the end", s)
	}
	rows, seqs := gauges(t, c)
	if len(rows) != 6 {
		t.Fatalf("%d gauges, expected 6", len(rows))
	}
	for i, g := range rows {
		if g != gauge(i, now) {
			t.Errorf("gauge %d: %+v", i, g)
		}
	}
	if len(seqs) < 2 {
		t.Errorf("batches %v, expected one of 4 and what was left", seqs)
	}
	all := readAll(t, c)
	if len(all.rows) != 6 || all.repeats != 0 {
		t.Errorf("%d rows, %d repeats beside them", len(all.rows), all.repeats)
	}
}

// Gauges that a killed process had cut are sent by the next one.
func TestGaugesOutliveAKill(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t, func(o *bus.Options) { o.Partitions = 1 })
	c := bustest.Client(t, b)
	dir := t.TempDir()
	now := time.Now()
	p := newLive(t, c, func(o *Options) { o.SpoolDir, o.AckTimeout = dir, time.Hour })
	c.NC.Close() // nothing goes out any more
	g := gauge(7, now)
	p.Gauge(&g)
	waitFor(t, "the spool", func() bool { return p.Stats().SpoolBytes > 0 && p.Stats().Waiting > 0 })
	p.packed()
	abandon(p)
	c = bustest.Client(t, b)
	q := newLive(t, c, func(o *Options) { o.SpoolDir = dir })
	if err := q.Close(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if rows, _ := gauges(t, c); len(rows) != 1 || rows[0] != g {
		t.Errorf("got %+v, expected the gauge of before", rows)
	}
}
