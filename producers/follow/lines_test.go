package follow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"penstock/infra/publisher"
	"penstock/producers/accesslog"
	"penstock/schemas/event"
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
	w.until("one to be refused again", func() bool { return w.metric("files refused") == 1 })
	w.remove("none.log")
	w.until("it to be forgotten", func() bool { return w.metric("files refused") == 0 })
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

// The parsers of package accesslog are what follows.
var (
	_ LineParser = (*accesslog.Lines)(nil)
	_ Holder     = (*accesslog.Lines)(nil)
	_ Several    = (*accesslog.Lines)(nil)
)

// TestAccessLog follows a container's log of NGINX through package accesslog.
func TestAccessLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) {
		o.Parser = func(_ string, sample []byte) (LineParser, error) {
			l, choice, err := accesslog.OpenLines(accesslog.ChoiceOptions{Sample: sample}, accesslog.Options{Key: []byte("of this test")})
			if err == nil && choice.Wrapping != accesslog.WrapCRI {
				err = fmt.Errorf("wrapping %v", choice.Wrapping)
			}
			return l, err
		}
	})
	write := func() {
		now := time.Now().UTC()
		line := fmt.Sprintf(`192.0.2.%d - - [%s] "GET /u/%d HTTP/1.1" 200 %d "-" "test"`,
			w.n%250, now.Format("02/Jan/2006:15:04:05 -0700"), w.n, w.n)
		w.n++
		cut := len(line) / 2
		at := now.Format(time.RFC3339Nano)
		w.append("access.log", at+" stdout P "+line[:cut]+"\n")
		w.append("access.log", at+" stdout F "+line[cut:]+"\n")
	}
	w.start()
	for i := range 60 {
		write()
		switch i % 20 {
		case 7:
			w.crash()
			w.start()
		case 15:
			rotations["rename and compress"](w)
		}
	}
	w.await()
	if got := w.book.figures().bad; got != 0 {
		t.Errorf("%d malformed lines: %s", got, w.said)
	}
}
