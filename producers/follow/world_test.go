package follow

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"penstock/schemas/event"
)

var errCrash = errors.New("the process has died")

// book is a publisher in memory. Like a real one it keeps rows and position of
// whole groups, and forgets the rest with the process.
type book struct {
	mu       sync.Mutex
	rows     map[int64]int // times that a row was committed, by number
	marks    map[event.Timing]int
	bad      int64
	position []byte
	horizon  int64
	commits  int

	pending []event.Request
	lines   int64
	next    int64 // horizon
	dead    bool
	dieAt   int // commits, from now on; 0 never
}

func newBook() *book { return &book{rows: map[int64]int{}, marks: map[event.Timing]int{}} }

func (b *book) Send(_ context.Context, r *event.Request) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.dead {
		return errCrash
	}
	b.pending = append(b.pending, *r)
	return nil
}

func (b *book) Malformed(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lines += n
}

func (b *book) Horizon(us int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next = us
}

func (b *book) Commit(_ context.Context, position []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.dieAt > 0 {
		if b.dieAt--; b.dieAt == 0 {
			b.dead = true
		}
	}
	if b.dead {
		return errCrash
	}
	for _, r := range b.pending {
		b.rows[r.Bytes]++
		b.marks[r.Mark]++
	}
	b.bad += b.lines
	b.pending, b.lines = nil, 0
	b.position = bytes.Clone(position)
	b.horizon = max(b.horizon, b.next)
	b.commits++
	return nil
}

func (b *book) Position() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.position)
}

func (b *book) Run() string { return "run" }

// reborn is what the next process finds.
func (b *book) reborn() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dead, b.dieAt, b.pending, b.lines = false, 0, nil, 0
}

// figures are what a book holds beside its rows.
type figures struct {
	bad     int64
	horizon int64
	commits int
	marks   map[event.Timing]int
}

func (b *book) figures() figures {
	b.mu.Lock()
	defer b.mu.Unlock()
	return figures{b.bad, b.horizon, b.commits, maps.Clone(b.marks)}
}

func (b *book) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.rows)
}

// textParser reads lines "time number anything".
type textParser struct{}

func (textParser) Parse(line []byte, r *event.Request) error {
	f := bytes.SplitN(line, []byte(" "), 3)
	if len(f) != 3 {
		return fmt.Errorf("column fields: got %d, expected 3", len(f))
	}
	at, err := strconv.ParseInt(string(f[0]), 10, 64)
	if err != nil {
		return fmt.Errorf("column time: %w", err)
	}
	n, err := strconv.ParseInt(string(f[1]), 10, 64)
	if err != nil {
		return fmt.Errorf("column number: %w", err)
	}
	r.Time, r.Bytes, r.Owner = at, n, "o"+string(f[1])
	return nil
}

func text(string, []byte) (LineParser, error) { return textParser{}, nil }

// world is a folder with logs, and a follower that is started and killed.
type world struct {
	t    testing.TB
	dir  string
	book *book
	opts []func(*Options)
	reg  *prometheus.Registry

	said   *said
	n      int // lines that were written
	cancel context.CancelFunc
	ended  chan error
}

func newWorld(t testing.TB, opts ...func(*Options)) *world {
	w := &world{t: t, dir: t.TempDir(), book: newBook(), opts: opts}
	t.Cleanup(w.crash)
	return w
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

// start starts a follower of access.log.
func (w *world) start() {
	w.t.Helper()
	w.reg = prometheus.NewRegistry()
	o := Options{
		Paths: []string{w.path("access.log")}, Parser: text, Publisher: w.book, Logger: w.log(), Registerer: w.reg,
		PollLeast: time.Millisecond, PollMost: 5 * time.Millisecond, ScanEvery: 5 * time.Millisecond,
		CommitEvery: 2 * time.Millisecond, Settle: 60 * time.Millisecond, Linger: 150 * time.Millisecond,
		SearchFor: 20 * time.Second, // longer than a machine stands still
	}
	for _, f := range w.opts {
		f(&o)
	}
	f, err := New(o)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel, w.ended = cancel, make(chan error, 1)
	go func() { w.ended <- f.Run(ctx) }()
}

// log is shown if the test fails.
func (w *world) log() zerolog.Logger {
	if w.said == nil {
		w.said = &said{}
		w.t.Cleanup(func() {
			if w.t.Failed() {
				w.t.Log(w.said.String())
			}
		})
	}
	return zerolog.New(w.said)
}

// said is what the follower logged.
type said struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

// stop ends the follower as SIGTERM does.
func (w *world) stop() {
	w.t.Helper()
	w.cancel()
	if err := <-w.ended; err != nil {
		w.t.Fatal(err)
	}
	w.cancel = nil
}

// crash ends the follower without a commit.
func (w *world) crash() {
	if w.cancel == nil {
		return
	}
	w.book.mu.Lock()
	w.book.dead = true
	w.book.mu.Unlock()
	w.cancel()
	<-w.ended
	w.cancel = nil
	w.book.reborn()
}

// line is the next line.
func (w *world) line() string {
	l := fmt.Sprintf("%d %d GET /page/%d\n", time.Now().UnixMicro(), w.n, w.n*7919)
	w.n++
	return l
}

// add appends lines to a file.
func (w *world) add(name string, lines int) {
	w.t.Helper()
	var b bytes.Buffer
	for range lines {
		b.WriteString(w.line())
	}
	w.append(name, b.String())
}

func (w *world) append(name, text string) {
	w.t.Helper()
	f, err := os.OpenFile(w.path(name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		w.t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) rename(from, to string) {
	w.t.Helper()
	if err := os.Rename(w.path(from), w.path(to)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) remove(name string) {
	w.t.Helper()
	if err := os.Remove(w.path(name)); err != nil {
		w.t.Fatal(err)
	}
}

// shift makes room for name.1, as logrotate does, compressed ones too.
func (w *world) shift(name string) {
	w.t.Helper()
	for i := 30; i >= 1; i-- {
		for _, ext := range []string{"", ".gz"} {
			from := fmt.Sprintf("%s.%d%s", name, i, ext)
			if _, err := os.Stat(w.path(from)); err == nil {
				w.rename(from, fmt.Sprintf("%s.%d%s", name, i+1, ext))
			}
		}
	}
}

// copyTruncate rotates a log whose writer holds still.
func (w *world) copyTruncate(name string) {
	w.t.Helper()
	w.shift(name)
	b, err := os.ReadFile(w.path(name))
	if err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(w.path(name+".1"), b, 0o600); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Truncate(w.path(name), 0); err != nil {
		w.t.Fatal(err)
	}
}

// compress does what gzip does: another file, the time of the old one, which goes.
func (w *world) compress(name string) {
	w.t.Helper()
	in, err := os.Open(w.path(name))
	if err != nil {
		w.t.Fatal(err)
	}
	defer in.Close()
	fi, err := in.Stat()
	if err != nil {
		w.t.Fatal(err)
	}
	out, err := os.Create(w.path(name + ".gz"))
	if err != nil {
		w.t.Fatal(err)
	}
	z := gzip.NewWriter(out)
	if _, err := io.Copy(z, in); err != nil {
		w.t.Fatal(err)
	}
	if err := errors.Join(z.Close(), out.Close(), os.Chtimes(w.path(name+".gz"), fi.ModTime(), fi.ModTime())); err != nil {
		w.t.Fatal(err)
	}
	w.remove(name)
}

// await waits until every line is committed, and none twice.
func (w *world) await() {
	w.t.Helper()
	w.until("all lines", func() bool { return w.book.count() >= w.n })
	w.check()
}

func (w *world) check() {
	w.t.Helper()
	w.book.mu.Lock()
	defer w.book.mu.Unlock()
	var missing, twice []int64
	for n := range int64(w.n) {
		switch w.book.rows[n] {
		case 0:
			missing = append(missing, n)
		case 1:
		default:
			twice = append(twice, n)
		}
	}
	if len(missing) > 0 || len(twice) > 0 {
		w.t.Fatalf("of %d lines missing %v, doubled %v; files %v", w.n, some(missing), some(twice), w.files())
	}
}

func some(ns []int64) string {
	if len(ns) > 12 {
		return fmt.Sprintf("%d: %v … %v", len(ns), ns[:6], ns[len(ns)-6:])
	}
	return fmt.Sprint(ns)
}

func (w *world) files() []string {
	var out []string
	entries, _ := os.ReadDir(w.dir)
	for _, e := range entries {
		if fi, err := e.Info(); err == nil {
			id, _ := idOf(fi)
			out = append(out, fmt.Sprintf("%s %d %d", e.Name(), fi.Size(), id.ino))
		}
	}
	return out
}

func (w *world) until(what string, ok func() bool) {
	w.t.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case err := <-w.ended:
			w.ended <- err
			if ok() {
				return
			}
			w.t.Fatalf("waiting for %s, the follower ended: %v", what, err)
		case <-deadline:
			w.check()
			w.t.Fatalf("waited in vain for %s: %v", what, w.metrics())
		}
	}
}

// metrics are the counters that are not 0, by name and labels.
func (w *world) metrics() map[string]float64 {
	out := map[string]float64{}
	all, err := w.reg.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, family := range all {
		for _, m := range family.GetMetric() {
			name := family.GetName()[len("penstock_follow_"):]
			for _, l := range m.GetLabel() {
				if l.GetName() != "files" {
					name += " " + l.GetValue()
				}
			}
			if v := m.GetCounter().GetValue() + m.GetGauge().GetValue(); v != 0 {
				out[name] += v
			}
		}
	}
	return out
}

func (w *world) metric(name string) float64 { return w.metrics()[name] }
