package aggregator

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/schemas/event"
	"penstock/schemas/subject"
	"penstock/schemas/window"
)

const hour = int64(3600_000_000)

// batch is one batch on its way to the bus.
type batch struct {
	run       string
	partition int
	seq       uint64
	watermark int64
	rows      []event.Request
	malformed int64
}

func (b batch) message(t testing.TB) bus.Msg {
	t.Helper()
	var rows event.Requests
	for i := range b.rows {
		rows.Append(&b.rows[i])
	}
	var e event.Encoder
	body, err := e.Encode(nil, &rows)
	if err != nil {
		t.Fatal(err)
	}
	h := event.Header{
		Schema: event.RequestSchema, Encoding: event.EncodingS2, Run: b.run, Seq: b.seq,
		Rows: rows.Len(), Watermark: b.watermark, Malformed: b.malformed,
	}
	return bus.Msg{Subject: subject.Events(b.partition, "web-1"), Header: h.Fields(), Data: body}
}

func mark(kind event.MarkKind, run string, watermark int64, upto ...uint64) bus.Msg {
	m := event.Mark{Kind: kind, Run: run, Watermark: watermark, Upto: upto}
	return bus.Msg{Subject: subject.Marks("web-1"), Header: m.Fields()}
}

func publish(t testing.TB, c *bus.Client, msgs ...bus.Msg) {
	t.Helper()
	for _, m := range msgs {
		if _, err := c.Publish(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
}

// rowAt is a read of an owner's data by a user, placed.
func rowAt(at int64, user, owner, site string) event.Request {
	r := event.NewRequest(at)
	r.User, r.Owner, r.ToSite, r.Bytes = user, owner, site, 100
	r.Lat, r.Lon = 10, 20
	r.FromComponent, r.ToComponent, r.Service, r.Network = "web", "store", 1500, 20_000
	r.Status = 200
	return r
}

// start runs an aggregator until the test ends or stop is called.
func start(t testing.TB, o Options) (stop func()) {
	t.Helper()
	o.Logger = zerolog.New(zerolog.NewTestWriter(t)).Level(zerolog.WarnLevel)
	a, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("aggregator: %v", err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// output is what readers see of a partition: merged windows and last commit.
type output struct {
	tables map[string]*window.Table
	commit *window.Commit
	count  int // commits
	deltas window.Account
	lost   []window.Interval
	counts map[int64]window.WindowCount
	runs   map[string]window.Account
}

// outputs reads WINDOWS until the last commit of the partition satisfies done.
func outputs(t testing.TB, c *bus.Client, group string, partition int, done func(*window.Commit) bool) output {
	t.Helper()
	r, err := c.Read(t.Context(), subject.WindowsStream, []string{subject.Windows(group, partition)}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	out := output{tables: map[string]*window.Table{}, counts: map[int64]window.WindowCount{}, runs: map[string]window.Account{}}
	var panes []*window.Table
	deadline := time.After(bustest.Timeout)
	for {
		select {
		case m, ok := <-r.C():
			if !ok {
				t.Fatal(r.Err())
			}
			if m.Header[event.HeaderSchema][0] == window.PanesSchema {
				p, err := window.DecodeTable(m.Data)
				if err != nil {
					t.Fatal(err)
				}
				panes = append(panes, p)
				continue
			}
			commit, err := window.CommitOf(m.Header, m.Data)
			if err != nil {
				t.Fatal(err)
			}
			if lengths := m.Header[window.HeaderPanes]; len(lengths) > 0 {
				panes = append(panes, joined(t, lengths[0], m.Data)...)
			}
			if commit.Panes != len(panes) {
				t.Fatalf("commit of %d panes after %d", commit.Panes, len(panes))
			}
			out.apply(commit, panes)
			panes = nil
			if done(commit) {
				return out
			}
		case <-deadline:
			t.Fatalf("no such commit after %v; last %+v", bustest.Timeout, out.commit)
		}
	}
}

// joined returns the panes in front of a commit.
func joined(t testing.TB, lengths string, body []byte) []*window.Table {
	t.Helper()
	bodies, _, err := window.Part(lengths, body)
	if err != nil {
		t.Fatal(err)
	}
	var panes []*window.Table
	for _, b := range bodies {
		p, err := window.DecodeTable(b)
		if err != nil {
			t.Fatal(err)
		}
		panes = append(panes, p)
	}
	return panes
}

func (o *output) apply(c *window.Commit, panes []*window.Table) {
	for _, p := range panes {
		name := p.Rollup.Name
		if have := o.tables[name]; have != nil {
			p = window.Merge(p.Rollup, have, p)
		}
		o.tables[name] = p
	}
	o.commit = c
	o.count++
	o.deltas.Add(c.Account)
	o.lost = append(o.lost, c.Incomplete...)
	for _, w := range c.Windows {
		s := o.counts[w.Start]
		s.Start, s.Counted, s.Late = w.Start, s.Counted+w.Counted, s.Late+w.Late
		o.counts[w.Start] = s
	}
	for _, r := range c.Runs {
		o.runs[r.Run] = r.Account
	}
}

func watermarkAt(w int64) func(*window.Commit) bool {
	return func(c *window.Commit) bool { return c.Watermark >= w }
}

// column returns a table as key → value of one integer column.
func column(t *window.Table, name string) map[string]int64 {
	out := map[string]int64{}
	if t == nil {
		return out
	}
	for i := range t.Len() {
		k := fmt.Sprint(t.Start[i] / hour)
		for d := range t.Keys {
			k += " " + t.Keys[d].At(i)
		}
		out[k] += t.Column(name)[i]
	}
	return out
}

func TestEventsBecomePanesAtABarrier(t *testing.T) {
	b := bustest.Start(t, func(o *bus.Options) { o.Partitions = 1 })
	c := bustest.Client(t, b)
	start(t, Options{Client: bustest.Client(t, b), Group: window.Owners})
	start(t, Options{Client: bustest.Client(t, b), Group: window.Fast})
	publish(t, c,
		batch{run: "R", seq: 1, watermark: 0, rows: []event.Request{rowAt(5, "ann", "bob", "east"), rowAt(hour+1, "ann", "bob", "east")}}.message(t),
		mark(event.Barrier, "R", hour, 1))
	owners := outputs(t, c, window.Owners, 0, watermarkAt(hour))
	if got := column(owners.tables["traffic"], "requests"); got["0 bob east"] != 1 || got["1 bob east"] != 1 {
		t.Fatalf("traffic %v", got)
	}
	if got := owners.commit.Total; got.Counted != 2 || !got.Holds() {
		t.Fatalf("account %+v", got)
	}
	fast := outputs(t, c, window.Fast, 0, watermarkAt(hour))
	d := fast.tables["delay"]
	if d == nil || d.Len() != 2 || d.Column("service_us")[0] != 1500 {
		t.Fatalf("delay %+v", d)
	}
}
