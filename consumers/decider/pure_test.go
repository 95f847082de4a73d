package decider

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"penstock/consumers/panes"
	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/schemas/control"
	"penstock/schemas/window"
)

func TestTTLIsWrittenAsPeopleDo(t *testing.T) {
	for d, want := range map[time.Duration]string{
		10 * time.Minute: "10m", 24 * time.Hour: "24h", 90 * time.Minute: "1h30m", 90 * time.Second: "1m30s",
		10 * time.Second: "10s", 0: "0s", time.Hour + time.Second: "1h0m1s",
	} {
		got := ttl(d)
		if back, err := time.ParseDuration(got); got != want || err != nil || back != d {
			t.Errorf("%v: got %q (%v, %v), expected %q", d, got, back, err, want)
		}
	}
}

// Cutting keeps every move once and in order, and no piece is too large.
func TestCutKeepsMoves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		long := rapid.IntRange(1, 1024).Draw(t, "longest owner")
		n := rapid.IntRange(0, 1200).Draw(t, "moves")
		c := control.Command{Scope: "west", Reason: control.Reason{Code: "Often"}, Placement: &control.Moves{}}
		for i := range n {
			// A control character takes six bytes of JSON.
			owner := fmt.Sprintf("%05d", i) + strings.Repeat("\x01", (i*7919)%long)
			c.Placement.Moves = append(c.Placement.Moves, control.Move{Owner: owner, From: "east", To: "west", Version: 1 << 60, Bytes: 1 << 60})
		}
		pieces, err := cut(&c)
		if err != nil {
			t.Fatal(err)
		}
		d := &decision{record: &control.Decision{}}
		var got []control.Move
		for _, p := range pieces {
			if err := d.add(frame{kind: control.Placement, ttl: "24h"}, control.Act, p, map[string]uint64{"west": 1 << 60}); err != nil {
				t.Fatal(err)
			}
			got = append(got, p.Placement.Moves...)
		}
		if !slices.Equal(got, c.Placement.Moves) {
			t.Fatalf("%d moves come out, or in another order; expected %d", len(got), n)
		}
		for _, p := range d.commands {
			if len(p.body) > maxBody || len(p.Placement.Moves) > control.MaxMoves {
				t.Fatalf("a piece of %d bytes with %d moves", len(p.body), len(p.Placement.Moves))
			}
		}
	})
}

func TestMoveTooLargeForAMessage(t *testing.T) {
	c := control.Command{Placement: &control.Moves{Moves: []control.Move{{Owner: strings.Repeat("x", maxBody)}}}}
	if _, err := cut(&c); !errors.Is(err, ErrTooLarge) {
		t.Errorf("got %v, expected ErrTooLarge", err)
	}
}

func TestReasonsAreLimitedAndCounted(t *testing.T) {
	reasons := func(n, size int) []control.Reason {
		out := make([]control.Reason, n)
		for i := range out {
			out[i] = control.Reason{Code: "NoRoom", Owner: strings.Repeat("x", size)}
		}
		return out
	}
	for _, c := range []struct {
		n, size int
		kept    int
		left    int64
	}{
		{0, 0, 0, 0},
		{1, 10, 1, 0},
		{maxReasons, 10, maxReasons, 0},
		{maxReasons + 5, 10, maxReasons - 1, 6},
		{900, 1024, 497, 403}, // 1,053 bytes each, with a comma
	} {
		got, err := limit(reasons(c.n, c.size))
		if err != nil || got == nil {
			t.Fatalf("%d reasons: %v, %v", c.n, got, err)
		}
		var left int64
		if n := len(got); n > 0 && got[n-1].Code == MoreReasons {
			left = got[n-1].Count
			got = got[:n-1]
		}
		if len(got) != c.kept || left != c.left || int64(len(got))+left != int64(c.n) {
			t.Errorf("%d reasons of %d bytes: %d kept, %d left out; expected %d and %d", c.n, c.size, len(got), left, c.kept, c.left)
		}
		if b, err := control.Encode(got); err != nil || len(b) > maxBody {
			t.Errorf("%d bytes, %v", len(b), err)
		}
	}
}

func TestDivide(t *testing.T) {
	commands := func(n, size int) []*command {
		out := make([]*command, n)
		for i := range out {
			out[i] = &command{body: make([]byte, size)}
		}
		return out
	}
	for _, c := range []struct {
		n, size int
		want    []int
	}{
		{0, 0, []int{0}},
		{899, 10, []int{899}},
		{900, 10, []int{899, 1}},
		{1800, 10, []int{899, 899, 2}},
		{130, maxBody, []int{64, 64, 2}},
	} {
		var got []int
		for _, p := range divide(commands(c.n, c.size)) {
			got = append(got, len(p))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%d commands of %d bytes: parts of %v, expected %v", c.n, c.size, got, c.want)
		}
	}
}

func TestTrimKeepsWhatIsNeeded(t *testing.T) {
	many := func(n int) (out []uint64) {
		for i := range n {
			out = append(out, uint64(1000+10*i))
		}
		return out
	}
	for _, c := range []struct {
		name     string
		records  int
		subject  []uint64
		snapshot uint64
		want     uint64
	}{
		{"few messages of the subject", 64, many(63), 5000, 0},
		{"few windows", 23, many(64), 5000, 0},
		{"no second snapshot", 64, many(64), 0, 0},
		{"the snapshot is the oldest", 64, many(64), 900, 900},
		{"the last 64 of the subject", 64, many(64), 5000, 1000},
		{"the last 24 windows", 64, []uint64{keepLeast - 1: 9}, 5000, 0},
	} {
		h := history{snapshot: c.snapshot, records: many(c.records)}
		if got := h.below(c.subject); got != c.want {
			t.Errorf("%s: below %d, expected %d", c.name, got, c.want)
		}
	}
	h := history{snapshot: 5000, records: many(64)}
	subject := make([]uint64, keepLeast)
	for i := range subject {
		subject[i] = 4000 + uint64(i)
	}
	if got := h.below(subject); got != 1000+10*40 {
		t.Errorf("below %d, expected what was decided 24 windows ago", got)
	}
	for i := range 100 {
		h.command("west", uint64(i))
	}
	if got := h.commands["west"]; len(got) != keepLeast || got[0] != 36 || got[keepLeast-1] != 99 {
		t.Errorf("kept %v", got)
	}
}

func TestAnAnswerCountsOnce(t *testing.T) {
	var a answers
	a.ask(1, "west", 7, []control.Move{{Owner: "ann", Version: 1}, {Owner: "bob", Version: 4}})
	for _, c := range []struct {
		owner   string
		version uint64
		status  control.Status
		want    bool
	}{
		{"ann", 2, control.Done, false},
		{"ann", 1, control.Imported, false},
		{"ann", 1, control.Done, true},
		{"ann", 1, control.Done, false},
		{"", 0, control.Done, false},
		{"bob", 4, control.Failed, true},
	} {
		o := &control.Outcome{Owner: c.owner, Move: c.version, Status: c.status}
		if got := a.answer(o); got != c.want {
			t.Errorf("%s %d: first %v, expected %v", c.owner, c.version, got, c.want)
		}
	}
	if n := a.unanswered(); n != 0 {
		t.Errorf("%d unanswered", n)
	}
	if _, found := a.oldest("west"); found {
		t.Error("an answered command still waits")
	}
	if len(a.Asked) != 0 {
		t.Errorf("%d windows are remembered for nothing", len(a.Asked))
	}
}

func TestPartHeader(t *testing.T) {
	for in, want := range map[string][2]int{"": {1, 1}, "1/2": {1, 2}, "3/3": {3, 3}} {
		h := map[string][]string{}
		if in != "" {
			h[control.HeaderPart] = []string{in}
		}
		if part, of, err := Part(h); err != nil || part != want[0] || of != want[1] {
			t.Errorf("%q: %d of %d, %v", in, part, of, err)
		}
	}
	for _, in := range []string{"0/2", "3/2", "x", "1/", "/1", "1/2/3"} {
		if _, _, err := Part(map[string][]string{control.HeaderPart: {in}}); !errors.Is(err, control.ErrUndecodable) {
			t.Errorf("%q: %v, expected ErrUndecodable", in, err)
		}
	}
}

func TestOptions(t *testing.T) {
	for name, o := range map[string]Options{
		"nothing": {}, "no factory": {Config: baseConfig.bytes()},
	} {
		if _, err := New(o); !errors.Is(err, ErrOptions) {
			t.Errorf("%s: %v, expected ErrOptions", name, err)
		}
	}
	w := newWorld(t, 1, 0)
	for name, change := range map[string]func(*Options){
		"mode":     func(o *Options) { o.Mode = "fast" },
		"snapshot": func(o *Options) { o.SnapshotEvery = -1 },
		"ttl":      func(o *Options) { o.TTL = -1 },
	} {
		if _, err := New(w.reading(change)); !errors.Is(err, ErrOptions) {
			t.Errorf("%s: %v, expected ErrOptions", name, err)
		}
	}
	if _, err := New(w.reading(func(o *Options) { o.Config = []byte(`{"sites":["one"]}`) })); err == nil {
		t.Error("a configuration that the policy refuses was taken")
	}
	// The policy decides hours: on a bus with windows of half an hour it can, on
	// one with windows of two it can't.
	for width, good := range map[time.Duration]bool{30 * time.Minute: true, 2 * time.Hour: false} {
		w := newWorldOn(t, bustest.Start(t, func(o *bus.Options) { o.Partitions, o.Window = 1, width }))
		if _, err := New(w.reading(func(*Options) {})); (err == nil) != good || err != nil && !errors.Is(err, ErrOptions) {
			t.Errorf("on a bus with windows of %s: %v", width, err)
		}
	}
}

func snapshotBytes(tb testing.TB) []byte {
	tb.Helper()
	p, err := toyFactory(0)(baseConfig.bytes())
	if err != nil {
		tb.Fatal(err)
	}
	p.(*toy).Owners["ann"] = &toyOwner{Requests: 3}
	s := state{Windows: 1, Epochs: map[string]uint64{"west": 2}}
	s.Answers.ask(1, "west", 7, []control.Move{{Owner: "ann", Version: 1}})
	var b bytes.Buffer
	if err := writeSnapshot(&b, &s, panes.New(panes.Options{Group: window.Owners, Partitions: 2}), p); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// Every snapshot with a bit turned, or cut short, is refused.
func TestDamagedSnapshotsAreRefused(t *testing.T) {
	whole := snapshotBytes(t)
	read := func(body []byte) error {
		head, rest, err := openSnapshot(body)
		if err != nil {
			return err
		}
		p, err := toyFactory(0)(baseConfig.bytes())
		if err != nil {
			t.Fatal(err)
		}
		return readSnapshot(head, rest, panes.New(panes.Options{Group: window.Owners, Partitions: 2}), p)
	}
	if err := read(whole); err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		if err := read(whole[:i]); !errors.Is(err, ErrSnapshot) {
			t.Fatalf("cut at %d of %d bytes: %v, expected ErrSnapshot", i, len(whole), err)
		}
		body := slices.Clone(whole)
		body[i] ^= 1 << (i % 8)
		if err := read(body); !errors.Is(err, ErrSnapshot) {
			t.Fatalf("byte %d changed: %v, expected ErrSnapshot", i, err)
		}
	}
}

func FuzzSnapshot(f *testing.F) {
	f.Add(snapshotBytes(f))
	f.Fuzz(func(_ *testing.T, body []byte) {
		head, rest, err := openSnapshot(body)
		if err != nil {
			return
		}
		p, _ := toyFactory(0)(baseConfig.bytes())
		_ = readSnapshot(head, rest, panes.New(panes.Options{Group: window.Owners, Partitions: 2}), p)
	})
}
