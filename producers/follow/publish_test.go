package follow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"penstock/infra/bus/bustest"
	"penstock/infra/publisher"
	"penstock/schemas/event"
	"penstock/schemas/reject"
	"penstock/schemas/subject"
)

// TestMarks: rows are marked against the horizon and the clock; the horizon waits
// for files that are behind and follows the clock when all are read.
func TestMarks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) { o.Disorder, o.MaxSkew = 100*time.Millisecond, time.Minute })
	w.add("access.log", 10)
	w.start()
	w.await()
	began := time.Now().UnixMicro()
	w.until("the horizon to follow the clock", func() bool {
		return w.book.figures().horizon > began
	})
	w.append("access.log", fmt.Sprintf("%d 1000000 late\n", began-1_000_000))
	w.append("access.log", fmt.Sprintf("%d 1000001 future\n", began+3600_000_000))
	w.append("access.log", fmt.Sprintf("%d 1000002 soon\n", time.Now().UnixMicro()+5_000_000))
	w.until("three rows more", func() bool { return w.book.count() == 13 })
	if w.book.figures().marks[event.Late] != 1 || w.book.figures().marks[event.Future] != 1 || w.metric("rows_total late") != 1 {
		t.Errorf("marks %v", w.book.figures().marks)
	}
	if w.book.figures().horizon > time.Now().UnixMicro() {
		t.Error("the horizon is beyond the clock")
	}
	w.crash()
	w.add("access.log", 20)
	time.Sleep(300 * time.Millisecond) // more than the disorder
	w.start()
	w.await()
	if got := w.book.figures().marks[event.Late]; got != 1 {
		t.Errorf("%d rows are late after a start", got)
	}
}

// TestStdin reads standard input to its end, and ends.
func TestStdin(t *testing.T) {
	t.Parallel()
	in, out := io.Pipe()
	w := newWorld(t, func(o *Options) { o.Paths, o.Stdin = []string{"-"}, in })
	w.start()
	for range 100 {
		l := w.line()
		_, _ = io.WriteString(out, l[:7])
		_, _ = io.WriteString(out, l[7:])
	}
	w.await()
	_, _ = io.WriteString(out, strings.TrimSuffix(w.line(), "\n"))
	_ = out.Close()
	if err := <-w.ended; err != nil {
		t.Fatal(err)
	}
	w.cancel = nil
	w.check()
}

// TestStdinStops: a follower that waits for its input ends all the same.
func TestStdinStops(t *testing.T) {
	t.Parallel()
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, func(o *Options) { o.Paths, o.Stdin = []string{"-", o.Paths[0]}, in })
	w.start()
	_, _ = out.WriteString(w.line())
	w.add("access.log", 10)
	w.await()
	w.stop()
	_, _ = in.Close(), out.Close()
}

// TestOptions and positions that cannot be used.
func TestOptions(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{
		"no parser":    {Paths: []string{"a"}, Publisher: newBook()},
		"no paths":     {Parser: text, Publisher: newBook()},
		"no publisher": {Parser: text, Paths: []string{"a"}},
		"bad pattern":  {Parser: text, Paths: []string{"[a"}, Publisher: newBook()},
		"no stdin":     {Parser: text, Paths: []string{"-"}, Publisher: newBook()},
	} {
		if _, err := New(o); !errors.Is(err, ErrOption) {
			t.Errorf("%s: %v", name, err)
		}
	}
	b := newBook()
	b.position = []byte{99}
	if _, err := New(Options{Parser: text, Paths: []string{"a"}, Publisher: b}); !errors.Is(err, ErrPosition) {
		t.Errorf("a position of another: %v", err)
	}
}

// TestRealPublisher: malformed lines are in the account and sampled, and a group
// that is too large is committed at once.
func TestRealPublisher(t *testing.T) {
	t.Parallel()
	c := bustest.Client(t, bustest.Start(t))
	p, err := publisher.New(t.Context(), publisher.Options{Client: c, Entry: "web", Positions: true, SpoolDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, func(o *Options) {
		o.Publisher, o.Client, o.Entry = &full{Publisher: p}, c, "web"
	})
	w.add("access.log", 100)
	w.append("access.log", "1 x 3\n")
	w.start()
	w.until("rows and a sample", func() bool {
		st, err := c.State(t.Context(), subject.RejectsStream)
		return err == nil && st.Msgs == 1 && p.Stats().Sent == 100
	})
	w.stop()
	r, err := c.Read(t.Context(), subject.RejectsStream, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	m := bustest.Take(t, r, 1)[0]
	if string(m.Data) != "1 x 3" || m.Header[reject.HeaderLine][0] != "101" || m.Header[reject.HeaderField][0] != "number" {
		t.Errorf("sample %q %v", m.Data, m.Header)
	}
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// full is a publisher whose group is full after 7 rows.
type full struct {
	*publisher.Publisher
	rows int
}

func (f *full) Send(ctx context.Context, r *event.Request) error {
	if f.rows >= 7 {
		return publisher.ErrGroup
	}
	f.rows++
	return f.Publisher.Send(ctx, r)
}

func (f *full) Commit(ctx context.Context, position []byte) error {
	f.rows = 0
	return f.Publisher.Commit(ctx, position)
}

// BenchmarkFollow reads a backlog as fast as it can, without a bus.
func BenchmarkFollow(b *testing.B) {
	w := newWorld(b, func(o *Options) { o.Publisher = discard{} })
	var text bytes.Buffer
	for range 100_000 {
		text.WriteString(w.line())
	}
	for n := 0; n < b.N; n += 100_000 {
		w.append("access.log", text.String())
	}
	b.ReportAllocs()
	b.ResetTimer()
	w.start()
	w.until("all", func() bool { return w.metric("lines_total row") >= float64(b.N) })
}

type discard struct{}

func (discard) Send(context.Context, *event.Request) error { return nil }
func (discard) Commit(context.Context, []byte) error       { return nil }
func (discard) Horizon(int64)                              {}
func (discard) Malformed(int64)                            {}
func (discard) Position() []byte                           { return nil }
func (discard) Run() string                                { return "run" }
