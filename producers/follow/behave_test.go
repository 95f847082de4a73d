package follow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"penstock/infra/bus/bustest"
	"penstock/infra/publisher"
	"penstock/schemas/event"
	"penstock/schemas/reject"
	"penstock/schemas/subject"
)

// TestLines: line ends of both kinds, blank lines, lines that are too long, a
// line that comes in parts, and a last one that never gets its end.
func TestLines(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) { o.MaxLine = 200 })
	w.append("access.log", strings.TrimSuffix(w.line(), "\n")+"\r\n\r\n\n"+w.line())
	long := strings.Repeat("x", 700)
	w.append("access.log", long+"\n"+w.line()+long)
	w.start()
	w.until("3 rows", func() bool { return w.book.count() == 3 })
	w.crash() // in the middle of a long line
	w.append("access.log", long+" 1 2\n"+w.line())
	w.start()
	w.await()
	last := w.line()
	w.append("access.log", last[:20])
	w.add("access.log.0", 0)
	for range 20 { // the beginning of a line is no line
		w.until("a look", func() bool { return w.book.Position() != nil })
		time.Sleep(time.Millisecond)
	}
	if w.book.count() != w.n-1 {
		t.Errorf("%d rows of %d", w.book.count(), w.n)
	}
	w.append("access.log", last[20:len(last)-1])
	w.rename("access.log", "access.log.1")
	w.await() // the file is surely done
	if got := w.book.figures().bad; got != 2 {
		t.Errorf("%d malformed lines", got)
	}
	if got := w.metric("lines_total blank"); got != 2 && got != 0 {
		t.Errorf("%v blank lines", got)
	}
}

// TestRefused: a file of which no line is a row is left alone, with the field
// named, and others go on; the next start tries it again where it stopped.
func TestRefused(t *testing.T) {
	t.Parallel()
	good := false
	w := newWorld(t, func(o *Options) {
		o.Paths = []string{filepath.Join(filepath.Dir(o.Paths[0]), "*.log")}
		o.Parser = func(path string, sample []byte) (LineParser, error) {
			switch {
			case strings.HasSuffix(path, "none.log"):
				return nil, errors.New("no format fits")
			case strings.HasSuffix(path, "bad.log") && !good:
				return failing{}, nil
			}
			return textParser{}, nil
		}
	})
	for range 150 {
		w.append("bad.log", "1 2\n")
		w.append("none.log", "1 2\n")
	}
	w.add("access.log", 10)
	w.start()
	w.await()
	w.until("two to be refused", func() bool { return w.metric("refused_total") == 2 })
	w.until("the position", func() bool { return w.book.figures().bad == probeLines })
	if s := w.said.String(); !strings.Contains(s, "column status: it is always wrong") || !strings.Contains(s, "no format fits") {
		t.Errorf("said: %s", s)
	}
	w.add("access.log", 10)
	w.await()
	w.stop()
	good = true
	w.add("bad.log", 5)
	w.start()
	w.await()
	if got := w.book.figures().bad; got != 150 {
		t.Errorf("%d malformed lines", got)
	}
}

type failing struct{}

func (failing) Parse([]byte, *event.Request) error {
	return errors.New("column status: it is always wrong")
}

// partsParser joins lines: "P text" is a part, "F text" the last one, of the
// stream named by the letter before.
type partsParser struct{ held map[byte][]byte }

func (p *partsParser) Held() bool { return len(p.held) > 0 }

func (p *partsParser) Rest() (rest [][]byte) {
	for _, b := range p.held {
		rest = append(rest, b)
	}
	return rest
}

func (p *partsParser) Parse(line []byte, r *event.Request) error {
	stream, kind, rest := line[0], line[1], line[3:]
	all := append(p.held[stream], rest...)
	if kind == 'P' {
		p.held[stream] = all
		return ErrPart
	}
	delete(p.held, stream)
	return textParser{}.Parse(all, r)
}

// TestParts: rows whose lines come in parts, of two streams mixed, are there once
// wherever the process dies between them.
func TestParts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) {
		o.Parser = func(string, []byte) (LineParser, error) { return &partsParser{map[byte][]byte{}}, nil }
	})
	var all []string
	for range 10 {
		a, b, c := w.line(), w.line(), w.line()
		all = append(all,
			"aP "+a[:5], "bF "+b[:len(b)-1], "aP "+a[5:9], "bP "+c[:3], "aF "+a[9:len(a)-1], "bF "+c[3:len(c)-1])
	}
	w.start()
	for i, l := range all {
		w.append("access.log", l+"\n")
		if i%4 == 1 {
			before := w.metric("bytes_total")
			w.until("the line to be read", func() bool { return w.metric("bytes_total") > before || w.book.figures().commits > 0 })
			w.crash()
			w.start()
		}
	}
	w.await()
}

// severalParser has rows between bars, and holds nothing.
type severalParser struct{ rest []byte }

func (p *severalParser) Parse(line []byte, r *event.Request) error {
	p.rest = line
	return p.Next(r)
}

func (p *severalParser) Next(r *event.Request) error {
	if len(p.rest) == 0 {
		return io.EOF
	}
	var one []byte
	one, p.rest, _ = bytes.Cut(p.rest, []byte("|"))
	return textParser{}.Parse(one, r)
}

// TestSeveral: lines with several rows are published once, also when the process
// dies after a group that ended in the middle of one.
func TestSeveral(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) {
		o.Publisher = &narrow{book: o.Publisher.(*book)}
		o.Parser = func(string, []byte) (LineParser, error) { return &severalParser{}, nil }
	})
	const lines, each = 12, 10
	for range lines {
		var all []string
		for i := range each {
			if i == 4 {
				all = append(all, "bad")
			}
			all = append(all, strings.TrimSuffix(w.line(), "\n"))
		}
		w.append("access.log", strings.Join(all, "|")+"\n")
	}
	for deaths := 0; w.book.count() < lines*each; deaths++ {
		if deaths > 200 {
			t.Fatal("it gets nowhere")
		}
		w.book.mu.Lock()
		w.book.dieAt = 3
		w.book.mu.Unlock()
		w.start()
		w.until("its death", func() bool { return len(w.ended) > 0 || w.book.count() >= lines*each })
		w.crash()
	}
	w.check()
	if got := w.book.figures().bad; got != lines {
		t.Errorf("%d malformed records, want %d", got, lines)
	}
}

// narrow is a book whose groups are full after 7 rows.
type narrow struct {
	*book
	rows int
}

func (n *narrow) Send(ctx context.Context, r *event.Request) error {
	if n.rows >= 7 {
		return publisher.ErrGroup
	}
	n.rows++
	return n.book.Send(ctx, r)
}

func (n *narrow) Commit(ctx context.Context, position []byte) error {
	n.rows = 0
	return n.book.Commit(ctx, position)
}

// TestNoRow: lines that a parser passes over are counted.
func TestNoRow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) {
		o.Parser = func(string, []byte) (LineParser, error) { return commented{}, nil }
	})
	w.append("access.log", strings.Repeat("# comment\n", 200))
	w.add("access.log", 5)
	w.start()
	w.await()
	if got := w.metric("lines_total no-row"); got != 200 || w.book.figures().bad != 0 {
		t.Errorf("%v without a row, %d malformed", got, w.book.figures().bad)
	}
}

type commented struct{ textParser }

func (c commented) Parse(line []byte, r *event.Request) error {
	if line[0] == '#' {
		return ErrNoRow
	}
	return c.textParser.Parse(line, r)
}

// TestGlobs: old files of a glob are read too, compressed ones as well, each
// once, whatever they are renamed to.
func TestGlobs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) { o.Paths = []string{o.Paths[0] + "*", o.Paths[0]} })
	for i := 3; i >= 1; i-- {
		w.add(fmt.Sprintf("access.log.%d", i), 40)
	}
	w.compress("access.log.3")
	w.compress("access.log.2")
	w.add("access.log", 40)
	if err := os.Mkdir(w.path("access.log.d"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(w.path("access.log"), w.path("access.log.same")); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.await()
	w.remove("access.log.same")
	for _, name := range []string{"rename and create", "copy and truncate", "rename and compress", "copy, truncate and compress"} {
		rotations[name](w)
		w.add("access.log", 20)
		w.await()
	}
	w.crash()
	rotations["copy, truncate and compress"](w)
	w.add("access.log", 20)
	w.start()
	w.await()
	w.stop()
	w.start()
	w.add("access.log", 1)
	w.await()
}

// TestFromEnd: what is there at the very first start is passed over, half a line
// too; what comes later is not.
func TestFromEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) {
		o.FromEnd = true
		o.Paths = []string{o.Paths[0] + "*"}
	})
	w.append("access.log", "1 1000000 old\n2 1000001 half of")
	w.append("access.log.1", "1 1000002 old\n")
	w.start()
	w.until("the first position", func() bool { return w.book.Position() != nil && w.metric("files live") > 0 })
	w.append("access.log", " a line\n")
	w.add("access.log", 10)
	w.rename("access.log.1", "access.log.2")
	rotations["rename and compress"](w)
	w.add("access.log", 10)
	w.await()
	w.crash()
	w.add("access.log", 10)
	w.append("access.log.9", "") // a new one, of the same family
	w.start()
	w.await()
	if got := w.book.count(); got != w.n {
		t.Errorf("%d rows of %d", got, w.n)
	}
}

// TestLinks: a symbolic link that leads to another file each day, as containers
// have them.
func TestLinks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) { o.Paths = []string{filepath.Join(filepath.Dir(o.Paths[0]), "current")} })
	link := func(to string) {
		t.Helper()
		w.append(to, "")
		_ = os.Remove(w.path("current")) // the first time it is not there
		if err := os.Symlink(w.path(to), w.path("current")); err != nil {
			t.Fatal(err)
		}
	}
	link("day-a.log")
	w.add("current", 20)
	w.start()
	w.await()
	w.add("current", 20)
	link("day-b.log")
	w.add("day-a.log", 5) // late
	w.add("current", 20)
	w.await()
	w.crash()
	w.add("current", 20)
	link("day-c.log")
	w.add("current", 20)
	w.start()
	w.await()
	w.rename("day-c.log", "day-c.log.20260131-235959") // as the kubelet does
	w.add("day-c.log.20260131-235959", 5)
	w.append("day-c.log", "")
	w.add("current", 20)
	w.await()
}

// TestTroubles: what cannot be opened is tried again, and holds nothing up.
func TestTroubles(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) { o.Paths = []string{filepath.Join(filepath.Dir(o.Paths[0]), "*.log")} })
	if err := os.Symlink(w.path("loop.log"), w.path("loop.log")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(w.path("nothing"), w.path("dangling.log")); err != nil {
		t.Fatal(err)
	}
	w.add("access.log", 10)
	w.start()
	w.await()
	w.until("the trouble to be counted", func() bool { return w.metric("troubles_total") >= 1 })
	if !strings.Contains(w.said.String(), "loop.log") {
		t.Errorf("said: %s", w.said.String())
	}
	w.remove("loop.log")
	w.add("loop.log", 10)
	w.add("nothing", 10)
	w.await()
	before := w.book.figures().horizon
	w.until("the horizon to move on", func() bool { return w.book.figures().horizon > before })
}

// TestShortened: a power cut took the end of a file; the rest is not read again.
func TestShortened(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add("access.log", 100)
	w.start()
	w.await()
	w.stop()
	fi, err := os.Stat(w.path("access.log"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(w.path("access.log"), fi.Size()-100); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.until("it to be seen", func() bool { return w.metric("rotations_total shortened") == 1 })
	w.append("access.log", "\n")
	w.add("access.log", 10)
	w.await()
}

// TestUnreadable: a copy that cannot be found, and a compressed one that breaks
// off, are given up, told and counted.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) { o.SearchFor = 150 * time.Millisecond })
	w.add("access.log", 50)
	w.start()
	w.await()
	if err := os.Truncate(w.path("access.log"), 0); err != nil {
		t.Fatal(err)
	}
	w.add("access.log", 50)
	w.await()
	w.until("the rest to be given up", func() bool { return w.metric("lost_total") == 1 })
	w.stop()
	w.add("access.log", 50)
	w.rename("access.log", "access.log.1")
	w.compress("access.log.1")
	fi, err := os.Stat(w.path("access.log.1.gz"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(w.path("access.log.1.gz"), fi.Size()-20); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.add("access.log", 1)
	w.until("it to be given up", func() bool { return w.metric("lost_total") == 1 })
}

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

// TestManyFiles follows more files than may be open.
func TestManyFiles(t *testing.T) {
	t.Parallel()
	const files = 1500
	w := newWorld(t, func(o *Options) {
		o.Paths, o.MaxOpen = []string{filepath.Join(filepath.Dir(o.Paths[0]), "*.log")}, 20
		o.PollMost, o.ScanEvery = 200*time.Millisecond, 200*time.Millisecond
	})
	for i := range files {
		w.add(fmt.Sprintf("site-%d.log", i), 2)
	}
	w.start()
	w.await()
	for i := range files {
		if i%3 == 0 {
			w.add(fmt.Sprintf("site-%d.log", i), 1)
		}
	}
	w.await()
	if open := w.metric("open_files"); open > 21 {
		t.Errorf("%v files are open", open)
	}
	w.stop()
	w.start()
	w.add("site-7.log", 1)
	w.await()
	if p := len(w.book.Position()); p > files*400 {
		t.Errorf("a position of %d bytes", p)
	}
}

// TestForget: of the files that are done only so many are remembered, and those
// that are forgotten are not read again.
func TestForget(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) { o.KeepDone = 2 })
	w.add("access.log", 5)
	w.start()
	for i := range 6 {
		w.await()
		rotations["rename and compress"](w)
		w.add("access.log", 5)
		w.await()
		w.until("it to be done", func() bool { return w.metric("files done") >= float64(min(i, 2)) && w.metric("files moved") == 0 })
	}
	w.until("the others to be forgotten", func() bool { return w.metric("files done") == 2 })
	w.stop()
	w.start()
	w.add("access.log", 5)
	w.await()
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

// TestAsleep: a glob that is taken away and comes back goes on where it was.
func TestAsleep(t *testing.T) {
	t.Parallel()
	away := false
	w := newWorld(t, func(o *Options) {
		if away {
			o.Paths = []string{filepath.Join(filepath.Dir(o.Paths[0]), "other.log")}
		}
	})
	w.add("access.log", 10)
	w.start()
	w.await()
	w.stop()
	away = true
	w.start()
	w.add("other.log", 5)
	w.await()
	w.stop()
	w.add("access.log", 10)
	away = false
	w.start()
	w.await()
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
