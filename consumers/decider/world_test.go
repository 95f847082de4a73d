package decider

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/schemas/control"
	"penstock/schemas/subject"
	"penstock/schemas/window"
)

// hour is a window's width and epoch its first start, in µs.
const (
	hour  = int64(time.Hour / time.Microsecond)
	epoch = int64(1431936000000000) // 2015-05-18T08:00:00Z
)

var baseConfig = toyConfig{Sites: []string{"east", "west", "north"}, Least: 3}

// breaking is baseConfig with promises that can be broken.
var breaking = toyConfig{Sites: baseConfig.Sites, Least: baseConfig.Least, Breaks: 3}

// world is a bus with a stand-in for the aggregators and one for the executors.
type world struct {
	t      testing.TB
	ctx    context.Context
	bus    *bus.Bus
	client *bus.Client
	last   map[string]uint64 // sequence of the last commit by subject
	flush  int
	seen   uint64 // last message of COMMANDS that next has read
	reader *bus.Reader
	// answer says how a move ends; nil: done.
	answer func(m control.Move) control.Status
}

func newWorld(t testing.TB, partitions int, purpose bus.Purpose) *world {
	t.Helper()
	return newWorldOn(t, bustest.Start(t, func(o *bus.Options) { o.Partitions, o.Purpose = partitions, purpose }))
}

func newWorldOn(t testing.TB, b *bus.Bus) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	w := &world{t: t, ctx: ctx, bus: b, client: bustest.Client(t, b), last: map[string]uint64{}}
	r, err := w.client.Read(ctx, subject.CommandsStream, nil, 0)
	w.ok(err)
	w.reader = r
	t.Cleanup(r.Close)
	return w
}

func (w *world) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// row is requests for an owner in window n.
type row struct {
	n        int
	owner    string
	requests int64
}

// commit publishes a flush of a partition in one message: rows and a watermark,
// the end of window n.
func (w *world) commit(p, n int, incomplete []window.Interval, rows ...row) {
	w.t.Helper()
	w.flush++
	id := fmt.Sprintf("flush-%d", w.flush)
	subj := subject.Windows(window.Owners, p)
	var tables [][]byte
	if len(rows) > 0 {
		t := window.NewTable(window.Traffic)
		for _, r := range rows {
			t.Append(epoch+int64(r.n)*hour, []string{r.owner, "east"}, []int64{r.requests, r.requests, 0, r.requests * 10, 0})
		}
		t.Sort()
		body, err := t.Encode(nil)
		w.ok(err)
		tables = append(tables, body)
	}
	c := window.Commit{
		Group: window.Owners, Partition: p, Flush: id, Owner: "test", Watermark: epoch + int64(n+1)*hour,
		Panes: len(tables), Incomplete: incomplete,
	}
	body, err := c.Encode()
	w.ok(err)
	m := bus.Msg{Subject: subj, Header: map[string][]string{control.HeaderSchema: {window.CommitSchema}, window.HeaderFlush: {id}}}
	var lengths string
	if m.Data, lengths = window.Join(tables, body); lengths != "" {
		m.Header[window.HeaderPanes] = []string{lengths}
	}
	last, err := w.client.PublishFenced(w.ctx, []bus.Msg{m}, w.last[subj])
	w.ok(err)
	w.last[subj] = last
}

// close publishes window n whole, each owner's rows on the owner's partition.
func (w *world) close(n int, rows ...row) {
	w.t.Helper()
	byPart := make([][]row, w.client.Partitions())
	for _, r := range rows {
		h := fnv.New32a()
		_, _ = h.Write([]byte(r.owner))
		p := int(h.Sum32()) % len(byPart)
		byPart[p] = append(byPart[p], r)
	}
	for p, rows := range byPart {
		w.commit(p, n, nil, rows...)
	}
}

// decided is a decision as read back from COMMANDS.
type decided struct {
	record   *control.Decision
	header   map[string][]string
	seq      uint64
	parts    int
	commands []*control.Command
}

// next waits for the next decision, all its parts included.
func (w *world) next() *decided {
	w.t.Helper()
	out := &decided{}
	want := -1
	for {
		select {
		case <-w.ctx.Done():
			w.t.Fatalf("no decision (read up to sequence %d)", w.seen)
		case m, ok := <-w.reader.C():
			if !ok {
				w.t.Fatal(w.reader.Err())
			}
			w.seen = m.Seq
			if strings.HasPrefix(m.Subject, "decisions.") {
				d, err := control.DecodeDecision(m.Data)
				w.ok(err)
				_, of, err := Part(m.Header)
				w.ok(err)
				out.record, out.header, out.seq = d, m.Header, m.Seq
				out.parts++
				want = len(d.Commands)
				if out.parts < of {
					continue
				}
			} else {
				c, err := control.DecodeCommand(m.Data)
				w.ok(err)
				out.commands = append(out.commands, c)
			}
			if len(out.commands) == want {
				return out
			}
		}
	}
}

// settle answers every move of a decision, once each, as an executor does.
func (w *world) settle(d *decided) {
	w.t.Helper()
	for _, c := range d.commands {
		for _, m := range c.Placement.Moves {
			status := control.Done
			if w.answer != nil {
				status = w.answer(m)
			}
			if c.Mode != control.Act {
				status = control.Advised
			}
			w.outcome(m, status)
		}
	}
}

func (w *world) outcome(m control.Move, status control.Status) {
	w.t.Helper()
	body, err := control.Encode(control.Outcome{
		Version: 1, Kind: control.Placement, Scope: m.To, Owner: m.Owner, Move: m.Version, Status: status, By: "test", At: time.Unix(0, 0).UTC(),
	})
	w.ok(err)
	_, err = w.client.Publish(w.ctx, bus.Msg{Subject: subject.Outcomes("placement", m.To), Data: body})
	w.ok(err)
}

// set writes an operator's switch; a nil value deletes it.
func (w *world) set(key string, value any) {
	w.t.Helper()
	kv, err := w.client.KV(w.ctx, subject.OperatorKV)
	w.ok(err)
	if value == nil {
		w.ok(kv.Delete(w.ctx, key))
		return
	}
	body, isText := value.(string)
	if !isText {
		b, err := control.Encode(value)
		w.ok(err)
		body = string(b)
	}
	_, err = kv.Put(w.ctx, key, []byte(body))
	w.ok(err)
}

// running is a decider in a goroutine.
type running struct {
	*Decider
	w      *world
	client *bus.Client
	cancel context.CancelFunc
	done   chan error
}

// options are those of the tests; change may change them.
func (w *world) options(change ...func(*Options)) Options {
	o := Options{
		Config: baseConfig.bytes(), Factory: toyFactory(0), Mode: control.Act, Purpose: bus.Replay,
		SnapshotEvery: 4, Logger: zerolog.Nop(),
	}
	for _, f := range change {
		f(&o)
	}
	return o
}

// reading are the options of somebody who only looks.
func (w *world) reading(change ...func(*Options)) Options {
	o := w.options(change...)
	o.Client = w.client
	return o
}

// restartBus takes the server down and up under everybody.
func (w *world) restartBus() {
	w.t.Helper()
	bustest.Restart(w.t, w.bus)
	for w.client.NC.FlushTimeout(time.Second) != nil {
		w.ok(w.ctx.Err())
	}
}

// make makes a decider with a client of its own.
func (w *world) make(change ...func(*Options)) *running {
	w.t.Helper()
	c, err := w.bus.Client(w.ctx, "decider")
	w.ok(err)
	o := w.options(change...)
	o.Client = c
	d, err := New(o)
	w.ok(err)
	return &running{Decider: d, w: w, client: c, done: make(chan error, 1)}
}

func (r *running) start() *running {
	ctx, cancel := context.WithCancel(r.w.ctx)
	r.cancel = cancel
	go func() { r.done <- r.Run(ctx) }()
	return r
}

func (w *world) start(change ...func(*Options)) *running {
	w.t.Helper()
	return w.make(change...).start()
}

// wait waits until the decider has ended by itself.
func (r *running) wait() error {
	r.w.t.Helper()
	defer r.client.Close()
	defer r.cancel()
	select {
	case err := <-r.done:
		return err
	case <-r.w.ctx.Done():
		r.w.t.Fatal("the decider does not end")
		return nil
	}
}

// settled waits until the decider is between windows: what it has sent is
// acknowledged.
func (r *running) settled() {
	r.w.t.Helper()
	_, _, err := r.Explain(r.w.ctx, "nobody")
	r.w.ok(err)
}

// stop ends the decider cleanly.
func (r *running) stop() {
	r.w.t.Helper()
	r.cancel()
	if err := r.wait(); err != nil {
		r.w.t.Fatal(err)
	}
}

// kill takes the bus away from the decider, as kill -9 does: nothing more is
// written by it.
func (r *running) kill() {
	r.w.t.Helper()
	r.client.Close()
	if err := r.wait(); err != nil && !errors.Is(err, bus.ErrClosed) {
		r.w.t.Logf("killed: %v", err)
	}
}

// dump is COMMANDS to the letter: subjects and bodies, without coordinates.
func (w *world) dump() string {
	w.t.Helper()
	st, err := w.client.State(w.ctx, subject.CommandsStream)
	w.ok(err)
	var b strings.Builder
	if st.Msgs == 0 {
		return ""
	}
	r, err := w.client.Read(w.ctx, subject.CommandsStream, nil, 0)
	w.ok(err)
	defer r.Close()
	for m := range r.C() {
		fmt.Fprintf(&b, "%s %s\n", m.Subject, m.Data)
		if m.Seq == st.LastSeq {
			break
		}
	}
	return b.String()
}

func codes(d *control.Decision) string {
	var out []string
	for _, r := range d.Reasons {
		out = append(out, r.Code)
	}
	return strings.Join(out, " ")
}
