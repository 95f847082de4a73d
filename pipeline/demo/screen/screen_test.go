package screen

import (
	"bytes"
	"context"
	"os"
	"testing"
	"time"

	"penstock/infra/clock"
)

func TestATerminalIsDrawnInPlace(t *testing.T) {
	var out bytes.Buffer
	width := 10
	s := New(&out, Options{Terminal: true, Width: func() int { return width }})
	step := func(do func(), want string) {
		t.Helper()
		out.Reset()
		do()
		if out.String() != want {
			t.Errorf("%q, expected %q", out.String(), want)
		}
	}
	frame := func(lines ...string) func() {
		return func() { s.Show(Frame{Picture: lines, Line: "in short"}) }
	}
	step(frame("one", "two"), "one\ntwo\n")
	step(frame("one", "2", "three"), "\x1b[2A\x1b[Jone\n2\nthree\n")
	step(func() { s.Say("said %d\nfor good", 1) }, "\x1b[3A\x1b[Jsaid 1\nfor good\none\n2\nthree\n")
	step(frame("über zehn Spalten"), "\x1b[3A\x1b[Jüber zehn \n")
	width = 4
	step(frame("\x1b[2J\tx"), "\x1b[1A\x1b[J·[2J\n")
	step(s.Leave, "")
	step(func() { s.Say("below") }, "below\n")
	step(frame("one"), "one\n")
}

func TestElsewherePlainLines(t *testing.T) {
	var out bytes.Buffer
	c := clock.NewManual(time.Unix(1000, 0))
	s := New(&out, Options{Clock: c, Every: 5 * time.Second})
	show := func(line string) { s.Show(Frame{Picture: []string{"a picture"}, Line: line}) }
	show("first")
	show("too soon")
	s.Say("said")
	c.Advance(5 * time.Second)
	show("first")
	show("second\x07")
	c.Advance(4 * time.Second)
	show("too soon again")
	c.Advance(time.Second)
	show("third")
	s.Leave()
	if want := "first\nsaid\nsecond·\nthird\n"; out.String() != want {
		t.Errorf("%q, expected %q", out.String(), want)
	}
}

func TestWidthOfWhatIsNoTerminal(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if w := WidthOf(f)(); w != 100 {
		t.Errorf("%d columns", w)
	}
	var out bytes.Buffer
	s := New(&out, Options{Terminal: true})
	s.Show(Frame{Picture: []string{string(bytes.Repeat([]byte("x"), 200))}})
	if out.Len() != 101 {
		t.Errorf("%d bytes", out.Len())
	}
}

func TestWatchShowsFramesUntilTheEnd(t *testing.T) {
	var out bytes.Buffer
	c := clock.NewManual(time.Unix(1000, 0))
	s := New(&out, Options{Terminal: true, Clock: c})
	ctx, cancel := context.WithCancel(t.Context())
	tick := c.NewTicker(time.Second)
	defer tick.Stop()
	n := 0
	shown := make(chan int)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Watch(ctx, tick, func() Frame {
			n++
			shown <- n
			return Frame{Picture: []string{"frame"}}
		})
	}()
	<-shown
	c.Advance(time.Second)
	if n := <-shown; n != 2 {
		t.Errorf("frame %d", n)
	}
	cancel()
	<-done
	out.Reset()
	s.Say("below")
	if out.String() != "below\n" {
		t.Errorf("%q", out.String())
	}
}
