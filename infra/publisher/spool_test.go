package publisher

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/schemas/event"
)

// publishAndKill publishes rows on a bus that is down, waits until they are in
// the spool and kills the publisher. It returns the spool's batches.
func publishAndKill(t *testing.T, p *Publisher, from, to int) map[string]bool {
	t.Helper()
	for i := from; i < to; i++ {
		r := liveRow(i, time.Now())
		p.Publish(&r)
	}
	waitFor(t, "the spool to know of everything", func() bool {
		p.lockAll()
		defer p.unlockAll()
		for i := range p.slots {
			if b := p.slots[i].open; b != nil && b.Len() > 0 {
				return false
			}
		}
		p.spool.mu.Lock()
		defer p.spool.mu.Unlock()
		return slices.Equal(p.spool.head.seqs, p.sequences())
	})
	abandon(p)
	return spoolContent(t, p.o.SpoolDir)
}

// spoolContent is what open batches a spool holds, as text.
func spoolContent(t *testing.T, dir string) map[string]bool {
	t.Helper()
	s, err := openSpool(dir, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.close() }()
	count, err := newCounters(nil, "web")
	if err != nil {
		t.Fatal(err)
	}
	runs, err := s.load(bus.DefaultPartitions, count)
	if err != nil {
		t.Fatal(err)
	}
	content := map[string]bool{}
	for _, r := range runs {
		for _, e := range r.batches {
			m, err := s.read(e.place)
			if err != nil {
				t.Fatal(err)
			}
			content[headerText(m.Header)+string(m.Data)] = true
		}
	}
	return content
}

// TestSpoolIsSentByTheNextStart kills a publisher without a bus, twice, and
// starts a third: the old batches come first, byte for byte, each run is ended,
// and only then the new one opens.
func TestSpoolIsSentByTheNextStart(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	c := bustest.Client(t, b)
	dir := t.TempDir()
	opts := func(o *Options) { o.SpoolDir, o.MaxRows = dir, 50 }
	b.Suspend()
	first := newLive(t, c, opts)
	publishAndKill(t, first, 0, 1000)
	second := newLive(t, c, opts)
	if second.Stats().RecoveredBatches == 0 {
		t.Fatal("nothing was recovered")
	}
	want := publishAndKill(t, second, 1000, 1500)
	third := newLive(t, c, opts)
	r := liveRow(1500, time.Now())
	third.Publish(&r)
	if err := b.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := third.End(testContext(t), time.Now().UnixMicro()); err != nil {
		t.Fatal(err)
	}
	if err := third.Close(testContext(t)); err != nil {
		t.Fatal(err)
	}
	s := readAll(t, c)
	if len(s.rows) != 1501 || s.repeats != 0 {
		t.Errorf("%d rows, %d repeats", len(s.rows), s.repeats)
	}
	for _, content := range s.bodies {
		delete(want, content)
	}
	if len(want) != 0 {
		t.Errorf("%d spooled batches are not stored as they were", len(want))
	}
	// Else windows could pass what it has once the earlier ones have ended.
	if m := s.marks[0]; s.order[0] != third.Run()+" heartbeat" || m.Watermark != earliest {
		t.Errorf("the new run is not heard of first: %v, %+v", s.order[0], m)
	}
	s.order = slices.DeleteFunc(s.order, func(o string) bool { return strings.HasSuffix(o, "heartbeat") })
	order := slices.Compact(s.order)
	if !reflect.DeepEqual(order, []string{
		first.Run(), first.Run() + " end", second.Run(), second.Run() + " end", third.Run(), third.Run() + " end",
	}) {
		t.Errorf("order %v", order)
	}
	for _, m := range s.marks {
		if m.Run == first.Run() && !reflect.DeepEqual(m.Upto, first.Sequences()) {
			t.Errorf("end of the first run: %v, cut were %v", m.Upto, first.Sequences())
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.spool")); len(left) != 0 {
		t.Errorf("left in the spool: %v", left)
	}
}

// TestKillBetweenSendAndAnswer kills publishers that are sending: what was
// stored and not noted is sent again, equal, and nothing is missing.
func TestKillBetweenSendAndAnswer(t *testing.T) {
	t.Parallel()
	c := bustest.Client(t, bustest.Start(t))
	dir := t.TempDir()
	n, dropped := 0, 0
	for range 5 {
		p := newLive(t, c, func(o *Options) { o.SpoolDir, o.MaxRows = dir, 20 })
		publishAndKill(t, p, n, n+700)
		n += 700
		dropped += sum(p.Stats().Dropped)
	}
	last := newLive(t, c, func(o *Options) { o.SpoolDir = dir })
	if err := last.End(testContext(t), time.Now().UnixMicro()); err != nil {
		t.Fatal(err)
	}
	s := readAll(t, c) // which compares repeats
	if len(s.rows) != n || dropped != 0 {
		t.Errorf("%d rows of %d, %d dropped; %d repeats", len(s.rows), n, dropped, s.repeats)
	}
}

// TestTornSpool cuts a spool file anywhere in its last record: the batches
// before it are sent, the end is counted as torn, and names no more than that.
func TestTornSpool(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	c := bustest.Client(t, b)
	b.Suspend()
	dir := t.TempDir()
	p := newLive(t, c, func(o *Options) { o.SpoolDir, o.MaxRows = dir, 50 })
	whole := publishAndKill(t, p, 0, 1000)
	paths, err := filepath.Glob(filepath.Join(dir, "*.spool"))
	if err != nil || len(paths) != 1 {
		t.Fatal(paths, err)
	}
	content, err := os.ReadFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	for name, torn := range map[string][]byte{
		"cut short": content[:len(content)-10],
		"last byte": append(bytes.Clone(content[:len(content)-1]), content[len(content)-1]^1),
		"garbage":   append(bytes.Clone(content), "garbage"...),
	} {
		if err := os.WriteFile(paths[0], torn, 0o600); err != nil {
			t.Fatal(err)
		}
		got := spoolContent(t, dir)
		want := len(whole) - 1
		if name == "garbage" {
			want++
		}
		if len(got) != want {
			t.Errorf("%s: %d batches of %d", name, len(got), len(whole))
		}
	}
	if err := os.WriteFile(paths[0], []byte("no spool at all"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := b.Resume(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the connection", c.NC.IsConnected)
	next := newLive(t, c, func(o *Options) { o.SpoolDir = dir })
	if s := next.Stats(); s.TornBytes != 15 || s.RecoveredBatches != 0 {
		t.Errorf("stats %+v", s)
	}
	if _, err := os.Stat(paths[0] + ".unreadable"); err != nil {
		t.Error(err)
	}
	if _, err := New(testContext(t), next.o); !errors.Is(err, ErrSpoolInUse) {
		t.Errorf("a second publisher on the spool: %v", err)
	}
}

// TestDropsSurviveAKill drops for want of room, without a bus, and kills: the
// next start announces with the old run's end what the old run could not.
func TestDropsSurviveAKill(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	c := bustest.Client(t, b)
	b.Suspend()
	dir := t.TempDir()
	p := newLive(t, c, func(o *Options) { o.SpoolDir, o.MaxRows, o.SpoolMax = dir, 50, 50_000 })
	publishAndKill(t, p, 0, 3000)
	if p.Stats().Dropped[DropSpool] == 0 {
		t.Fatalf("nothing was dropped: %+v", p.Stats())
	}
	if err := b.Resume(); err != nil {
		t.Fatal(err)
	}
	next := newLive(t, c, func(o *Options) { o.SpoolDir = dir })
	if err := next.End(testContext(t), time.Now().UnixMicro()); err != nil {
		t.Fatal(err)
	}
	s := readAll(t, c)
	if dropped := sum(p.Stats().Dropped); len(s.rows)+dropped != 3000 {
		t.Errorf("%d stored, %d dropped", len(s.rows), dropped)
	}
	checkSequences(t, s, p)
}

// TestSpoolFilesGo fills and empties a small spool: it stays within its bound,
// refuses what does not fit, and gives room back.
func TestSpoolFilesGo(t *testing.T) {
	t.Parallel()
	s, err := openSpool(t.TempDir(), 100_000)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.close() }()
	s.begin("run", "web", 1)
	body := bytes.Repeat([]byte("x"), 5000)
	var places []*place
	seq := uint64(0)
	put := func() error {
		seq++
		e := &entry{seq: seq, header: &event.Header{}, msg: bus.Msg{Subject: "events.0.web", Header: event.Fields{"K": {"a", "b"}}}}
		p, err := s.append(e, body)
		if err == nil {
			places = append(places, p)
		}
		return err
	}
	for range 3 {
		for err = put(); err == nil; err = put() {
			if s.size() > 100_000 {
				t.Fatalf("%d bytes", s.size())
			}
		}
		if !errors.Is(err, errFull) || len(places) < 14 {
			t.Fatalf("after %d batches: %v", len(places), err)
		}
		for _, p := range places {
			m, err := s.read(p)
			if err != nil || !bytes.Equal(m.Data, body) || len(m.Header["K"]) != 2 {
				t.Fatalf("read %+v: %v", m, err)
			}
			s.done(p)
		}
		places = nil
	}
	// Small batches are bounded by their number.
	body = nil
	for err = put(); err == nil; {
		err = put()
	}
	if !errors.Is(err, errFull) || len(places) != 100_000/leastCost {
		t.Errorf("%d small batches", len(places))
	}
	s.finish("run")
	if s.size() != 0 || len(s.files) != 0 {
		t.Errorf("%d bytes in %d files are left", s.size(), len(s.files))
	}
}

// FuzzSpoolFile reads any bytes as a spool file: no panic, and what is taken is
// within bounds and can be read again.
func FuzzSpoolFile(f *testing.F) {
	h := head{run: "run", entry: "web", seqs: []uint64{1, 2}, watermark: 5}
	good := appendRecord(nil, headRecord, h.append)
	rec := spooled{partition: 1, seq: 3, rows: 4, from: 1, to: 2, msg: bus.Msg{
		Subject: "events.1.web", Header: event.Fields{"A": {"b"}}, Data: []byte("body"),
	}}
	good = appendRecord(good, batchRecord, rec.append)
	good = appendRecord(good, dropRecord, func(b []byte) []byte {
		return appendDropped(b, event.Dropped{Partition: 1, First: 4, Last: 5, Rows: 2})
	})
	f.Add(good)
	f.Add(good[:len(good)-3])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		var r oldRun
		count, err := newCounters(nil, "web")
		if err != nil {
			t.Fatal(err)
		}
		rest, err := r.parseHead(b, 2)
		if err != nil {
			return
		}
		left, _ := r.parse(b, rest, &segment{}, count)
		if len(left) > len(rest) {
			t.Errorf("%d bytes are left of %d", len(left), len(rest))
		}
		for _, e := range r.batches {
			if e.partition < 0 || e.partition > 1 || e.place.offset+int64(e.place.length) > int64(len(b)) {
				t.Errorf("batch %+v at %+v", e, e.place)
			}
		}
	})
}
