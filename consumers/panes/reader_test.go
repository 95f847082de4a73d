package panes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/schemas/subject"
	"penstock/schemas/window"
)

// sender publishes flushes as an aggregator does.
type sender struct {
	t      *testing.T
	ctx    context.Context
	client *bus.Client
	last   map[int]uint64
	total  map[int]window.Account
	n      int
}

func newSender(t *testing.T) *sender {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bustest.Timeout)
	t.Cleanup(cancel)
	b := bustest.Start(t, func(o *bus.Options) { o.Partitions, o.Purpose = 2, bus.Replay })
	return &sender{t: t, ctx: ctx, client: bustest.Client(t, b), last: map[int]uint64{}, total: map[int]window.Account{}}
}

// flush publishes a flush of one row, in one message or in a batch.
func (s *sender) flush(p int, w, amount int64, whole bool) {
	s.t.Helper()
	s.n++
	id := fmt.Sprintf("flush-%d", s.n)
	pane, err := table(s.t, window.Traffic, []string{fmt.Sprintf("o%d@%d:%d", p, w, amount)}).Encode(nil)
	s.ok(err)
	account := window.Account{Received: amount, Counted: amount}
	total := s.total[p]
	total.Add(account)
	s.total[p] = total
	c := window.Commit{Group: window.Owners, Partition: p, Flush: id, Panes: 1, Watermark: (w + 1) * hour, Account: account, Total: total}
	body, err := c.Encode()
	s.ok(err)
	header := func(schema string) map[string][]string {
		return map[string][]string{headerSchema: {schema}, window.HeaderFlush: {id}}
	}
	subj := subject.Windows(window.Owners, p)
	msgs := []bus.Msg{{Subject: subj, Header: header(window.PanesSchema), Data: pane}, {Subject: subj, Header: header(window.CommitSchema), Data: body}}
	if whole {
		joined, lengths := window.Join([][]byte{pane}, body)
		msgs = msgs[1:]
		msgs[0].Data = joined
		msgs[0].Header[window.HeaderPanes] = []string{lengths}
	}
	s.last[p], err = s.client.PublishFenced(s.ctx, msgs, s.last[p])
	s.ok(err)
}

func (s *sender) ok(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func two() Options { return Options{Group: window.Owners, Partitions: 2} }

func TestReaderGoesOnBehindASnapshot(t *testing.T) {
	s := newSender(t)
	for w := range int64(3) {
		s.flush(0, w, 1, w%2 == 0)
		s.flush(1, w, 2, false)
	}
	asm := New(two())
	r, err := Read(s.ctx, s.client, asm)
	s.ok(err)
	var ends []int64
	take := func(n int) {
		t.Helper()
		for range n {
			_, err := r.Next(s.ctx)
			s.ok(err)
			for w := asm.Close(); w != nil; w = asm.Close() {
				ends = append(ends, w.End/hour)
				if w.Tables["traffic"].Len() != 2 {
					t.Errorf("window ending %d has %d rows", w.End/hour, w.Tables["traffic"].Len())
				}
			}
		}
	}
	take(3)
	r.Close()
	asm = restartedT(t, asm)
	r, err = Read(s.ctx, s.client, asm)
	s.ok(err)
	defer r.Close()
	s.flush(0, 3, 1, true)
	s.flush(1, 3, 1, true)
	take(5)
	if fmt.Sprint(ends) != "[1 2 3 4]" {
		t.Errorf("windows ending %v", ends)
	}
	if st := asm.Stats(); st.Missed != 0 || st.Flushes != 8 {
		t.Errorf("stats %+v", st)
	}
}

func restartedT(t *testing.T, asm *Assembler) *Assembler {
	t.Helper()
	var b bytes.Buffer
	if err := asm.Snapshot(&b); err != nil {
		t.Fatal(err)
	}
	out := New(asm.opts)
	if err := out.Restore(&b); err != nil {
		t.Fatal(err)
	}
	return out
}

// What was trimmed before it was read is noticed, and its windows are incomplete.
func TestReaderNoticesWhatIsGone(t *testing.T) {
	s := newSender(t)
	for w := range int64(6) {
		s.flush(0, w, 1, false)
		s.flush(1, w, 1, false)
	}
	// Partition 0 lacks its first three flushes.
	s.ok(s.client.Trim(s.ctx, subject.WindowsStream, 13, subject.Windows(window.Owners, 0)))
	var incomplete, whole []int64
	st, err := Each(s.ctx, s.client, two(), Visitor{Window: func(w *Window) error {
		if len(w.Incomplete) > 0 {
			incomplete = append(incomplete, w.Start/hour)
		} else {
			whole = append(whole, w.Start/hour)
		}
		return nil
	}})
	s.ok(err)
	// The first commit left has its watermark at 4, and one more window is allowed.
	if fmt.Sprint(incomplete) != "[0 1 2 3 4]" || fmt.Sprint(whole) != "[5]" || st.Missed != 1 {
		t.Errorf("incomplete %v, whole %v, stats %+v", incomplete, whole, st)
	}
}

func TestEachEndsAtAnUncommittedFlush(t *testing.T) {
	s := newSender(t)
	if st, err := Each(s.ctx, s.client, two(), Visitor{}); err != nil || st.Flushes != 0 {
		t.Fatalf("an empty stream: %+v, %v", st, err)
	}
	s.flush(0, 0, 1, false)
	s.flush(1, 0, 1, false)
	pane, err := table(t, window.Traffic, []string{"x@0:1"}).Encode(nil)
	s.ok(err)
	_, err = s.client.Publish(s.ctx, bus.Msg{
		Subject: subject.Windows(window.Owners, 0), Data: pane,
		Header: map[string][]string{headerSchema: {window.PanesSchema}, window.HeaderFlush: {"torn"}},
	})
	s.ok(err)
	flushes, windows := 0, 0
	_, err = Each(s.ctx, s.client, two(), Visitor{
		Flush:  func(*Flush) error { flushes++; return nil },
		Window: func(*Window) error { windows++; return nil },
	})
	if err != nil || flushes != 2 || windows != 1 {
		t.Errorf("%d flushes, %d windows, %v", flushes, windows, err)
	}
	stop := errors.New("enough")
	if _, err := Each(s.ctx, s.client, two(), Visitor{Flush: func(*Flush) error { return stop }}); !errors.Is(err, stop) {
		t.Errorf("got %v, expected the visitor's error", err)
	}
}

func TestReaderStopsAtWhatItCannotDecode(t *testing.T) {
	for _, c := range []struct {
		name   string
		schema string
		body   string
		want   error
	}{
		{"pane", window.PanesSchema, "junk", window.ErrUndecodable},
		{"commit", window.CommitSchema, "{", window.ErrUndecodable},
		{"schema", "panes/2", "", ErrForeign},
		{"group", window.CommitSchema, `{"version":1,"flush":"x","group":"fast"}`, ErrForeign},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := New(two()).Message(subject.Windows(window.Owners, 0), 7, map[string][]string{headerSchema: {c.schema}}, []byte(c.body))
			if !errors.Is(err, c.want) {
				t.Errorf("got %v, expected %v", err, c.want)
			}
		})
	}
}

// BenchmarkClose merges a window of a million rows from 8 partitions with 12
// flushes each.
func BenchmarkClose(b *testing.B) {
	const parts, flushes, owners = 8, 12, 10_400
	var tables [parts][flushes]*window.Table
	for p := range parts {
		for f := range flushes {
			t := window.NewTable(window.Traffic)
			for o := range owners {
				t.Append(0, []string{fmt.Sprintf("owner-%d-%d", p, o*3), "east"}, []int64{1, 1, 0, 1000, 0})
			}
			t.Sort()
			tables[p][f] = t
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		a := New(Options{Group: window.Owners, Partitions: parts})
		seq := uint64(0)
		for p := range parts {
			for f := range flushes {
				seq += 2
				_ = a.Pane(p, seq-1, "f", tables[p][f])
				wm := int64(0)
				if f == flushes-1 {
					wm = hour
				}
				_, _ = a.Commit(p, seq, &window.Commit{Group: window.Owners, Partition: p, Flush: "f", Panes: 1, Watermark: wm})
			}
		}
		if w := a.Close(); w == nil || w.Tables["traffic"].Len() != parts*owners {
			b.Fatal("the window did not close whole")
		}
	}
}
