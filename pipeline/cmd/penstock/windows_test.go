package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet/file"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"
	"github.com/rs/zerolog"

	"penstock/infra/bus/bustest"
	"penstock/infra/publisher"
	"penstock/infra/testserver"
	"penstock/schemas/control"
	"penstock/schemas/event"
	"penstock/schemas/subject"
)

// tenMinutes is the example configuration with windows of ten minutes.
func tenMinutes(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(example("world.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "ten.yaml")
	text := strings.Replace(string(b), "  cooldown: 2h ", "  window: 10m\n  cooldown: 20m ", 1)
	if text == string(b) {
		t.Fatal("the example has changed")
	}
	writeFile(t, name, text)
	return name
}

// interactions are the requests of each (hour, user, owner) in a replay's matrix,
// and the widths of its windows.
func interactions(t *testing.T, out string) (sums map[string]int64, widths map[time.Duration]bool) {
	t.Helper()
	r, err := file.OpenParquetFile(filepath.Join(out, "matrices", "interactions.parquet"), false)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	fr, err := pqarrow.NewFileReader(r, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	table, err := fr.ReadTable(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer table.Release()
	sums, widths = map[string]int64{}, map[time.Duration]bool{}
	tr := array.NewTableReader(table, 0)
	defer tr.Release()
	for tr.Next() {
		rec := tr.Record()
		col := func(name string) arrow.Array { return rec.Column(rec.Schema().FieldIndices(name)[0]) }
		start, end := col("window_start").(*array.Timestamp), col("window_end").(*array.Timestamp)
		user, owner, n := col("user").(*array.String), col("owner").(*array.String), col("requests").(*array.Int64)
		for i := range int(rec.NumRows()) {
			at := time.UnixMicro(int64(start.Value(i))).UTC()
			widths[time.UnixMicro(int64(end.Value(i))).Sub(at)] = true
			sums[fmt.Sprint(at.Truncate(time.Hour).Unix(), user.Value(i), owner.Value(i))] += n.Value(i)
		}
	}
	return sums, widths
}

// people is a made-up recording of six hours: readers in three places who ask for
// the data of others, most of it now here, now there.
func people(t *testing.T) string {
	t.Helper()
	rng := rand.New(rand.NewPCG(7, 8))
	at := [][2]float64{{40, -80}, {52, 5}, {-20, -50}}
	var rows strings.Builder
	rows.WriteString("time,op,user,owner,bytes,lat,lon\n")
	for ms := 0; ms < 6*3600_000; ms += rng.IntN(20_000) {
		place := at[(ms/5_400_000+rng.IntN(6)/5)%3]
		op := []string{"read", "read", "write"}[rng.IntN(3)]
		fmt.Fprintf(&rows, "%s,%s,u%d,o%d,%d,%v,%v\n", time.UnixMilli(1_700_000_000_000+int64(ms)).UTC().Format(time.RFC3339Nano),
			op, rng.IntN(40), rng.IntN(25), rng.IntN(90_000), place[0], place[1])
	}
	name := filepath.Join(t.TempDir(), "people.csv")
	writeFile(t, name, rows.String())
	return name
}

// TestWindowsOfTenMinutes replays a recording in windows of ten minutes: they are
// decided the same however it is cut, and add up to the hours of a replay in
// windows of an hour.
func TestWindowsOfTenMinutes(t *testing.T) {
	recording := people(t)
	args := func(out, cfg string, more ...string) []string {
		return append([]string{"replay", recording, "--config", cfg, "--out", out}, more...)
	}
	ten, base, cut, hours := tenMinutes(t), t.TempDir(), t.TempDir(), t.TempDir()
	must(t, args(base, ten, "--partitions", "2")...)
	must(t, args(cut, ten, "--partitions", "5", "--batch-rows", "100", "--flush", "50ms")...)
	must(t, args(hours, example("world.yaml"))...)
	same(t, base, cut, results...)
	r, h := readReport(t, base), readReport(t, hours)
	if r.Account != h.Account || !r.Account.Holds() {
		t.Errorf("account %+v, in hours %+v", r.Account, h.Account)
	}
	if len(r.Windows) < 5*len(h.Windows) || r.Moves.Done == 0 {
		t.Errorf("%d windows of ten minutes with %d moves, %d of an hour", len(r.Windows), r.Moves.Done, len(h.Windows))
	}
	byHour := map[time.Time]int64{}
	for _, w := range r.Windows {
		if w.End.Sub(w.Start) != 10*time.Minute || !w.Start.Equal(w.Start.Truncate(10*time.Minute)) || w.Mode != string(control.Act) {
			t.Errorf("window %s to %s, mode %q", w.Start, w.End, w.Mode)
		}
		for _, n := range w.Traffic {
			byHour[w.Start.Truncate(time.Hour)] += n
		}
	}
	for _, w := range h.Windows {
		var sum int64
		for _, n := range w.Traffic {
			sum += n
		}
		if byHour[w.Start] != sum {
			t.Errorf("%d bytes in the ten minutes of %s, and %d in the hour", byHour[w.Start], w.Start, sum)
		}
	}
	narrow, widths := interactions(t, base)
	wide, _ := interactions(t, hours)
	if len(wide) < 100 || !maps.Equal(narrow, wide) || len(widths) != 1 || !widths[10*time.Minute] {
		t.Errorf("interactions: %d in windows %v, %d in hours", len(narrow), widths, len(wide))
	}

	out, errs, code := command(t, args(base, example("world.yaml"))...)
	if code != 0 {
		t.Errorf("a finished replay is replaced, also by windows of another width: exit code %d\n%s%s", code, out, errs)
	}
}

// TestServeInShortWindows publishes live traffic to a process with windows of two
// seconds: each is decided within moments of its end, and moves are made.
func TestServeInShortWindows(t *testing.T) {
	t.Parallel()
	const width, limit = 2 * time.Second, 4 * time.Second
	dir := t.TempDir()
	cfg := configure(t, dir, settings{2, 0.3})
	b, err := os.ReadFile(cfg)
	if err != nil {
		t.Fatal(err)
	}
	hours := filepath.Join(dir, "hours.yaml")
	writeFile(t, hours, string(b))
	writeFile(t, cfg, strings.Replace(string(b), "placement: {", "placement: {window: 2s, ", 1))
	listen := testserver.FreeAddress(t)
	args := []string{"--config", cfg, "--state", filepath.Join(dir, "state"), "--listen", listen}
	s := serve(t, args...)
	must(t, "mode", "placement", "act", "--nats", s.bus)
	refused(t, 1, []string{"serve", "--nats", s.bus, "--config", hours, "--state", filepath.Join(dir, "other")},
		"stream WINDOWS: metadata penstock.window: have 2s, want 1h0m0s", "placement.window")

	w := gatherLive(t, s.bus)
	in, err := w.c.Read(t.Context(), subject.CommandsStream, []string{subject.Decisions(string(control.Placement))}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	moved := 0
	var worst time.Duration
	for n := 0; n < 3; {
		m := bustest.Take(t, in, 1)[0]
		d, err := control.DecodeDecision(m.Data)
		if err != nil {
			t.Fatal(err)
		}
		if d.Window.End.Sub(d.Window.Start) != width {
			t.Fatalf("window %s to %s", d.Window.Start, d.Window.End)
		}
		moved += moves(d)
		worst = max(worst, m.Time.Sub(d.Window.End))
		n++
	}
	if worst > limit || worst < 0 {
		t.Errorf("a window was decided %s after its end", worst)
	}
	t.Logf("decided at most %s after a window's end", worst.Round(time.Millisecond))
	if moved == 0 {
		t.Error("nothing was moved")
	}
	s.stop()
}

// gatherLive publishes live requests of people in the west for data in the east,
// until the test ends.
func gatherLive(t *testing.T, url string) *crowd {
	t.Helper()
	c := connect(t, url, "")
	p, err := publisher.New(t.Context(), publisher.Options{Client: c, Entry: "web-1", MaxAge: 100 * time.Millisecond, SpoolDir: t.TempDir(), Logger: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for i := 0; ; i++ {
			r := event.NewRequest(time.Now().UnixMicro())
			r.Owner, r.User = ownerName(i%6), ownerName(i%6)
			r.ToSite, r.Lat, r.Lon, r.Bytes, r.Status = "east", places["west"][0], places["west"][1], 100, 200
			p.Publish(&r)
			select {
			case <-done:
				return
			case <-time.After(5 * time.Millisecond): // The rate of the traffic.
			}
		}
	}()
	t.Cleanup(func() {
		close(done)
		<-ended
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = p.Close(ctx) // The bus is gone by then.
	})
	return &crowd{t: t, c: c, p: p, at: map[string]string{}}
}
