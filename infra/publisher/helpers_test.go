package publisher

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/schemas/event"
	"penstock/schemas/subject"
)

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), bustest.Timeout)
	t.Cleanup(cancel)
	return ctx
}

// newReplay opens a publisher of a replay that is closed with the test.
func newReplay(t testing.TB, c *bus.Client, f ...func(*Options)) *Publisher {
	t.Helper()
	o := Options{Client: c, Entry: "web", Run: "run-1", Logger: zerolog.Nop()}
	return open(t, o, f)
}

// newLive opens a live publisher that is closed with the test.
func newLive(t testing.TB, c *bus.Client, f ...func(*Options)) *Publisher {
	t.Helper()
	o := Options{Client: c, Entry: "web", Logger: zerolog.Nop(), MaxAge: 10 * time.Millisecond}
	f = append([]func(*Options){func(o *Options) { o.SpoolDir = t.TempDir() }}, f...)
	return open(t, o, f)
}

func open(t testing.TB, o Options, fs []func(*Options)) *Publisher {
	t.Helper()
	for _, f := range fs {
		f(&o)
	}
	p, err := New(testContext(t), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = p.Close(ctx) // what a test left undone is of no interest here
	})
	return p
}

// abandon stops a publisher as a kill does: nothing is cut, sent or noted any
// more.
func abandon(p *Publisher) {
	p.closing.Do(func() {
		p.ended.Store(true)
		p.stop()
		p.tasks.Wait()
		p.link.close()
		if p.spool != nil {
			_ = p.spool.close()
		}
	})
}

// row is the n-th row of a test: 50 owners, one row a millisecond.
func row(n int) event.Request {
	r := event.NewRequest(1_700_000_000_000_000 + int64(n)*1000)
	r.Owner = fmt.Sprintf("owner-%d", n%50)
	r.User = fmt.Sprintf("user-%d", n%7)
	r.ToSite, r.Bytes, r.Status = "east", int64(n), 200
	return r
}

// stored is everything that EVENTS holds, decoded.
type stored struct {
	bodies  map[string]string // run/partition/seq → header and body
	repeats int               // batches stored more than once
	rows    map[int64]int     // times that a row (by bytes) was stored, repeats left out
	marks   []event.Mark
	dropped []event.Dropped
	lines   int64
	last    uint64   // sequence of the last message
	order   []string // runs in the order of their first and last appearance
}

// readAll reads EVENTS from its start to its end.
func readAll(t testing.TB, c *bus.Client) *stored {
	t.Helper()
	s := &stored{bodies: map[string]string{}, rows: map[int64]int{}}
	st, err := c.State(testContext(t), subject.EventsStream)
	if err != nil {
		t.Fatal(err)
	}
	if st.Msgs == 0 {
		return s
	}
	r, err := c.Read(testContext(t), subject.EventsStream, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for {
		m := bustest.Take(t, r, 1)[0]
		s.add(t, m, c.Partitions())
		if m.Seq >= st.LastSeq {
			return s
		}
	}
}

func (s *stored) add(t testing.TB, m bus.Msg, partitions int) {
	t.Helper()
	s.last = m.Seq
	if event.IsMark(m.Header) {
		mark, err := event.ParseMark(m.Header, partitions)
		if err != nil {
			t.Fatal(err)
		}
		s.marks = append(s.marks, mark)
		s.dropped = append(s.dropped, mark.Dropped...)
		s.order = append(s.order, mark.Run+" "+string(mark.Kind))
		return
	}
	h, err := event.ParseHeader(m.Header)
	if err != nil {
		t.Fatal(err)
	}
	entry, partition, err := subject.Entry(m.Subject)
	if err != nil || entry != "web" {
		t.Fatalf("subject %s: %v", m.Subject, err)
	}
	s.order = append(s.order, h.Run)
	key := fmt.Sprintf("%s/%d/%d", h.Run, partition, h.Seq)
	content := headerText(m.Header) + string(m.Data)
	if have, ok := s.bodies[key]; ok {
		s.repeats++
		if have != content {
			t.Errorf("batch %s has other content the second time", key)
		}
		return
	}
	s.bodies[key] = content
	s.lines += h.Malformed
	for _, d := range h.Dropped {
		d.Partition = partition
		s.dropped = append(s.dropped, d)
	}
	if h.Schema == event.GaugeSchema {
		return // see gauges
	}
	var d event.Decoder
	var batch event.Requests
	if err := d.Decode(m.Data, h.Encoding, &batch); err != nil {
		t.Fatal(err)
	}
	if batch.Len() != h.Rows {
		t.Errorf("batch %s: %d rows, header says %d", key, batch.Len(), h.Rows)
	}
	for i := range batch.Len() {
		r := batch.Row(i)
		s.rows[r.Bytes]++
		if got := event.Partition(r.Owner, r.User, r.Trace, partitions); got != partition {
			t.Errorf("row %d is on partition %d, not %d", r.Bytes, partition, got)
		}
	}
}

func headerText(h map[string][]string) string {
	out := ""
	for _, k := range slices.Sorted(maps.Keys(h)) {
		out += fmt.Sprint(k, h[k], "\n")
	}
	return out
}

// waitFor waits until ok, looking often.
func waitFor(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(bustest.Timeout)
	tick := time.NewTicker(200 * time.Microsecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
