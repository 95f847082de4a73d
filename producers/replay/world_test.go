package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/objectstore"
	"penstock/infra/objectstore/dir"
	"penstock/producers/replay/writes"
	"penstock/schemas/control"
	"penstock/schemas/event"
	"penstock/schemas/subject"
)

const hour = int64(3_600_000_000)

// epoch is the start of the first window of the test's recordings.
var epoch = time.Date(2016, 9, 14, 8, 0, 0, 0, time.UTC)

var places = []struct {
	name     string
	lat, lon float64
}{{"east", 37.37, -79.81}, {"central", 29.42, -98.5}, {"west", 37.78, -122.42}}

// world is a real bus with three stores, and what answers a replay there: a
// decider and an executor of a few lines each.
type world struct {
	t      testing.TB
	bus    *bus.Bus
	client *bus.Client
	sites  []Site
	state  string
	skip   map[int64]bool // ends of windows that nobody decides
	advise bool

	cancel  context.CancelFunc
	running sync.WaitGroup
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, state: t.TempDir(), skip: map[int64]bool{}}
	w.bus = bustest.Start(t, func(o *bus.Options) { o.Partitions, o.Purpose = 3, bus.Replay })
	w.client = bustest.Client(t, w.bus)
	root := t.TempDir()
	for _, p := range places {
		s, err := dir.Open(filepath.Join(root, p.name), dir.Options{NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		w.sites = append(w.sites, Site{Name: p.name, Lat: p.lat, Lon: p.lon, Store: s})
	}
	return w
}

// start runs parts of the loop beside the test, until its end.
func (w *world) start(parts ...func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	if w.cancel == nil {
		w.cancel = cancel
	} else {
		before := w.cancel
		w.cancel = func() { before(); cancel() }
	}
	for _, p := range parts {
		w.running.Go(func() {
			if err := p(ctx); err != nil && ctx.Err() == nil {
				w.t.Errorf("a part of the world failed: %v", err)
			}
		})
	}
	w.t.Cleanup(func() {
		w.cancel()
		w.running.Wait()
	})
}

// each calls fn for the messages of a stream until ctx ends.
func (w *world) each(ctx context.Context, stream, subj string, fn func(m *bus.Msg) error) error {
	r, err := w.client.Read(ctx, stream, []string{subj}, 0)
	if err != nil {
		return err
	}
	defer r.Close()
	for m := range r.C() {
		if err := fn(&m); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// fails says which moves the executor cannot do.
func fails(owner string, version uint64) bool {
	h := fnv.New32a()
	fmt.Fprint(h, owner, version)
	return h.Sum32()%5 == 0
}

// decide answers each barrier once: a few moves that follow from the window's
// end and from the moves before.
func (w *world) decide(ctx context.Context) error {
	decided, last := map[int64]bool{}, uint64(0)
	at, versions := map[int]int{}, map[int]uint64{}
	return w.each(ctx, subject.EventsStream, "events.all.*", func(m *bus.Msg) error {
		mark, err := event.ParseMark(m.Header, w.client.Partitions())
		if err != nil || mark.Kind != event.Barrier || decided[mark.Watermark] || w.skip[mark.Watermark] {
			return err
		}
		decided[mark.Watermark] = true
		rnd := rand.New(rand.NewPCG(uint64(mark.Watermark), 7))
		win := control.Window{Start: time.UnixMicro(mark.Watermark - hour).UTC(), End: time.UnixMicro(mark.Watermark).UTC()}
		mode := control.Act
		if w.advise {
			mode = control.Advise
		}
		moves := make([][]control.Move, len(places))
		for _, o := range rnd.Perm(owners)[:rnd.IntN(4)] {
			if _, ok := at[o]; !ok {
				at[o] = o % len(places)
			}
			from, to := at[o], (at[o]+1+rnd.IntN(2))%len(places)
			versions[o]++
			moves[to] = append(moves[to], control.Move{
				Owner: ownerName(o), From: places[from].name, To: places[to].name, Version: versions[o], Bytes: 1,
			})
			if !fails(ownerName(o), versions[o]) && !w.advise {
				at[o] = to
			}
		}
		d := control.Decision{Version: 1, Kind: control.Placement, Window: win, Mode: mode, Reasons: []control.Reason{}, Commands: []control.CommandRef{}}
		var msgs []bus.Msg
		for to, ms := range moves {
			if len(ms) == 0 {
				continue
			}
			c := control.Command{
				Version: 1, Kind: control.Placement, Scope: places[to].name, Epoch: 1, Window: win, Mode: mode, TTL: "24h",
				Placement: &control.Moves{Moves: ms},
			}
			body, err := control.Encode(&c)
			if err != nil {
				return err
			}
			d.Commands = append(d.Commands, control.CommandRef{Scope: c.Scope, Epoch: 1, Moves: len(ms)})
			msgs = append(msgs, bus.Msg{Subject: subject.Commands("placement", c.Scope), Data: body})
		}
		body, err := control.Encode(&d)
		if err != nil {
			return err
		}
		all := append([]bus.Msg{{Subject: subject.Decisions("placement"), Data: body}}, msgs...)
		end, err := w.client.PublishFenced(ctx, all, last)
		last = end - uint64(len(msgs))
		return err
	})
}

// execute does the moves, and answers each.
func (w *world) execute(ctx context.Context) error {
	return w.each(ctx, subject.CommandsStream, subject.CommandsOf("placement"), func(m *bus.Msg) error {
		c, err := control.DecodeCommand(m.Data)
		if err != nil {
			return err
		}
		for _, mv := range c.Placement.Moves {
			o := control.Outcome{
				Version: 1, Kind: control.Placement, Scope: c.Scope, Owner: mv.Owner, Move: mv.Version, Status: control.Done, By: "test",
			}
			switch {
			case c.Mode != control.Act:
				o.Status = control.Advised
			case fails(mv.Owner, mv.Version):
				o.Status = control.Failed
			default:
				if err := w.move(ctx, &mv); err != nil {
					return fmt.Errorf("%+v: %w", mv, err)
				}
			}
			body, err := control.Encode(&o)
			if err != nil {
				return err
			}
			if _, err := w.client.Publish(ctx, bus.Msg{Subject: subject.Outcomes("placement", c.Scope), Data: body}); err != nil {
				return err
			}
		}
		return nil
	})
}

func (w *world) store(name string) writes.Store {
	for _, s := range w.sites {
		if s.Name == name {
			return s.Store
		}
	}
	return nil
}

func (w *world) move(ctx context.Context, mv *control.Move) error {
	from, to := w.store(mv.From), w.store(mv.To)
	var records []objectstore.Record
	err := from.Scan(ctx, mv.Owner, writes.File, func(n uint64, p []byte) error {
		records = append(records, objectstore.Record{Number: n, Payload: bytes.Clone(p)})
		return nil
	})
	if err != nil {
		return err
	}
	// A copy that was left here earlier is made anew.
	old, err := to.Stat(ctx, mv.Owner)
	if err == nil && old.State == objectstore.Retired {
		err = to.Delete(ctx, mv.Owner, old)
	}
	if err == nil {
		_, err = to.AppendAll(ctx, mv.Owner, writes.File, records)
	}
	if err != nil {
		return err
	}
	m, err := from.Stat(ctx, mv.Owner)
	if err != nil {
		return err
	}
	return from.Mark(ctx, mv.Owner, m, objectstore.Mark{State: objectstore.Retired, Version: mv.Version, Site: mv.To})
}

const owners = 9

func ownerName(o int) string { return fmt.Sprintf("user%d@example.org", o) }

// recording is rows of a few windows: reads and writes of a few users, out of
// order inside a minute, with late and future ones among them. Each owner's
// place is that of the site of its number.
func recording(windows, rows int) []event.Request {
	rnd := rand.New(rand.NewPCG(5, 5))
	var out []event.Request
	start := epoch.UnixMicro()
	add := func(at int64, user, owner int, op event.Op, size int64) {
		r := event.NewRequest(at)
		r.User, r.Owner, r.Op, r.Bytes = ownerName(user), ownerName(owner), op, size
		r.Lat, r.Lon = float32(places[user%len(places)].lat), float32(places[user%len(places)].lon)
		out = append(out, r)
	}
	for o := range owners {
		add(start+int64(o), o, o, event.Write, int64(o))
	}
	step := hour / int64(rows)
	for w := range windows {
		for i := range rows {
			at := start + int64(w)*hour + int64(i)*step + step/2
			op := event.Read
			if rnd.IntN(4) == 0 {
				op = event.Write
			}
			back := rnd.Int64N(50_000_000)
			switch rnd.IntN(60) {
			case 0:
				back = 5 * 60_000_000 // late
			case 1:
				back = -9 * hour // future
			}
			add(max(at-back, start), rnd.IntN(owners), rnd.IntN(owners), op, rnd.Int64N(3000))
		}
	}
	return out
}

// slice is a source of rows; bad lines come before the row of their index.
type slice struct {
	rows []event.Request
	bad  map[int]Bad
	tell func(Bad)
	i    int
}

func (s *slice) Next(r *event.Request) error {
	if b, ok := s.bad[s.i]; ok {
		s.tell(b)
	}
	if s.i >= len(s.rows) {
		return io.EOF
	}
	*r = s.rows[s.i]
	s.i++
	return nil
}

func (*slice) Close() error { return nil }

// watch notes what an observer is told.
type watch struct {
	rows, late int
	windows    []string
}

func (o *watch) Row(r *event.Request, _ string) {
	o.rows++
	if r.Mark == event.Late {
		o.late++
	}
}

func (o *watch) Window(end int64, d *control.Decision, moves []control.Move, outcomes []control.Outcome) {
	s := fmt.Sprintf("%d %s after %d rows:", end, d.Window.End.Format("15h"), o.rows)
	for i, m := range moves {
		s += fmt.Sprintf(" %s→%s v%d", m.Owner, m.To, m.Version)
		if i < len(outcomes) {
			s += " " + string(outcomes[i].Status)
		}
	}
	o.windows = append(o.windows, s)
}

// options of a replay of the rows in this world.
func (w *world) options(rows []event.Request, hook func(string)) Options {
	return Options{
		Client: w.client, Fingerprint: Fingerprint{"recording": "test"}, Sites: w.sites, StateDir: w.state,
		Open: func(bad func(Bad)) (Source, error) { return &slice{rows: rows, tell: bad}, nil },
		NewPublisher: func(_ context.Context, run string, acked []uint64) (Publisher, error) {
			return newPublisher(w.client, run, acked, hook), nil
		},
	}
}

func try(t testing.TB, o Options) (Summary, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bustest.Timeout)
	defer cancel()
	return Run(ctx, o)
}

func mustRun(t testing.TB, o Options) Summary {
	t.Helper()
	s, err := try(t, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// batcher is a publisher that cuts batches of ten rows and sends them one by
// one. The hook hears of every step.
type batcher struct {
	client    *bus.Client
	run       string
	acked     []uint64
	hook      func(string)
	parts     []event.Requests
	seq       []uint64
	horizon   int64
	malformed int64
	encoder   event.Encoder
}

func newPublisher(c *bus.Client, run string, acked []uint64, hook func(string)) *batcher {
	if acked == nil {
		acked = make([]uint64, c.Partitions())
	}
	if hook == nil {
		hook = func(string) {}
	}
	return &batcher{client: c, run: run, acked: acked, hook: hook, parts: make([]event.Requests, c.Partitions()), seq: make([]uint64, c.Partitions())}
}

func (p *batcher) Send(ctx context.Context, r *event.Request) error {
	p.hook("row")
	i := event.Partition(r.Owner, r.User, r.Trace, len(p.parts))
	p.parts[i].Append(r)
	if p.parts[i].Len() < 10 {
		return nil
	}
	return p.cut(ctx, i)
}

func (p *batcher) cut(ctx context.Context, i int) error {
	b := &p.parts[i]
	if b.Len() == 0 && (i > 0 || p.malformed == 0) {
		return nil
	}
	p.seq[i]++
	h := event.Header{Schema: event.RequestSchema, Encoding: event.EncodingS2, Run: p.run, Seq: p.seq[i], Rows: b.Len(), Watermark: p.horizon}
	if i == 0 {
		h.Malformed, p.malformed = p.malformed, 0
	}
	body, err := p.encoder.Encode(nil, b)
	b.Reset()
	if err != nil || h.Seq <= p.acked[i] {
		return err
	}
	p.hook("batch")
	_, err = p.client.Publish(ctx, bus.Msg{Subject: subject.Events(i, "replay"), Header: h.Fields(), Data: body})
	return err
}

func (p *batcher) mark(ctx context.Context, kind event.MarkKind, watermark int64) error {
	for i := range p.parts {
		if err := p.cut(ctx, i); err != nil {
			return err
		}
	}
	p.hook("mark")
	m := event.Mark{Kind: kind, Run: p.run, Watermark: watermark, Upto: p.seq}
	if _, err := p.client.Publish(ctx, bus.Msg{Subject: subject.Marks("replay"), Header: m.Fields()}); err != nil {
		return err
	}
	p.hook("marked")
	return nil
}

func (p *batcher) Barrier(ctx context.Context, w int64) error { return p.mark(ctx, event.Barrier, w) }
func (p *batcher) End(ctx context.Context, w int64) error     { return p.mark(ctx, event.End, w) }
func (p *batcher) Horizon(us int64)                           { p.horizon = us }
func (p *batcher) Malformed(n int64)                          { p.malformed += n }
func (p *batcher) Sequences() []uint64                        { return p.seq }
func (p *batcher) Close(context.Context) error                { return nil }

// all returns the messages of a stream.
func (w *world) all(stream string) []bus.Msg {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bustest.Timeout)
	defer cancel()
	state, err := w.client.State(ctx, stream)
	if err != nil {
		w.t.Fatal(err)
	}
	if state.Msgs == 0 {
		return nil
	}
	r, err := w.client.Read(ctx, stream, nil, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	defer r.Close()
	return bustest.Take(w.t, r, int(state.Msgs))
}

// content is what the stores hold, by site, owner and object, marks included.
func (w *world) content() map[string]string {
	w.t.Helper()
	ctx, out := context.Background(), map[string]string{}
	for _, s := range w.sites {
		err := s.Store.Owners(ctx, func(owner string, m objectstore.Mark) error {
			l, err := s.Store.List(ctx, owner)
			for _, o := range l.Objects {
				digest, err := s.Store.Digest(ctx, owner, o.Name)
				if err != nil {
					return err
				}
				out[s.Name+"/"+owner+"/"+o.Name] = m.String() + " " + digest
			}
			return err
		})
		if err != nil {
			w.t.Fatal(errors.Join(err))
		}
	}
	return out
}

// decisions is the number of decided windows.
func (w *world) decisions() (n int) {
	for _, m := range w.all(subject.CommandsStream) {
		if m.Subject == subject.Decisions("placement") {
			n++
		}
	}
	return n
}
