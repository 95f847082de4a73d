package screen

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode"

	"penstock/infra/clock"
)

// Options of a screen.
type Options struct {
	// Clock says when another plain line is due. Defaults to the machine's.
	Clock clock.Clock
	// Terminal: the picture is drawn.
	Terminal bool
	// Width is that of a terminal, in columns; nil is 100. It is asked at each
	// drawing: terminals change their size.
	Width func() int
	// Every is the least time between plain lines of frames.
	Every time.Duration
}

// Frame is what is to be seen at one moment.
type Frame struct {
	Picture []string
	Line    string // the same in short
}

// Screen is safe for concurrent use.
type Screen struct {
	mu    sync.Mutex
	w     io.Writer
	o     Options
	drawn int    // rows of the picture that stands there
	last  Frame  // drawn, or to be drawn after what is said
	line  string // printed last
	at    time.Time
}

// New returns a screen on w.
func New(w io.Writer, o Options) *Screen {
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	if o.Width == nil {
		o.Width = func() int { return 100 }
	}
	return &Screen{w: w, o: o}
}

// Show draws a frame in the place of the last one, or prints its line.
func (s *Screen) Show(f Frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.o.Terminal {
		now := s.o.Clock.Now()
		if f.Line == s.line || !s.at.IsZero() && now.Sub(s.at) < s.o.Every {
			return
		}
		s.line, s.at = f.Line, now
		fmt.Fprintln(s.w, plain(f.Line))
		return
	}
	s.last = f
	var out bytes.Buffer
	s.erase(&out)
	s.draw(&out)
	_, _ = s.w.Write(out.Bytes()) // Nobody looks at a terminal that can't be written to.
}

// Say prints a line that stays.
func (s *Screen) Say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out bytes.Buffer
	s.erase(&out)
	for line := range strings.SplitSeq(fmt.Sprintf(format, args...), "\n") {
		out.WriteString(plain(line))
		out.WriteByte('\n')
	}
	s.draw(&out)
	_, _ = s.w.Write(out.Bytes())
}

// Leave lets the last picture stand: what is drawn from now on comes below it.
func (s *Screen) Leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drawn, s.last = 0, Frame{}
}

// erase moves to the picture's beginning and clears to the end of the screen.
func (s *Screen) erase(out *bytes.Buffer) {
	if s.drawn > 0 {
		fmt.Fprintf(out, "\x1b[%dA\x1b[J", s.drawn)
	}
	s.drawn = 0
}

func (s *Screen) draw(out *bytes.Buffer) {
	width := max(s.o.Width(), 1)
	for _, line := range s.last.Picture {
		out.WriteString(cut(plain(line), width))
		out.WriteByte('\n')
	}
	s.drawn = len(s.last.Picture)
}

// plain shows control characters, which could move the cursor, as dots.
func plain(line string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '·'
		}
		return r
	}, line)
}

// cut shortens a line to a number of columns, each rune taking one.
func cut(line string, width int) string {
	n := 0
	for i := range line {
		if n++; n > width {
			return line[:i]
		}
	}
	return line
}

// Watch shows frames, one now and one each time that a ticker ticks, until the
// context ends; the last picture stays.
func (s *Screen) Watch(ctx context.Context, t clock.Ticker, frame func() Frame) {
	for {
		s.Show(frame())
		select {
		case <-t.C():
		case <-ctx.Done():
			s.Leave()
			return
		}
	}
}
