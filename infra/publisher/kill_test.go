package publisher

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/schemas/event"
)

// doomed is set for the process that kills itself: URL of the bus, folder,
// point, which time, rows in all, seed.
const doomed = "PUBLISHER_DOOMED"

// doom sends rows from the position on, until it comes to its point for the nth
// time, or to the end.
func doom() int {
	var url, dir, point string
	var nth, rows int
	var seed uint64
	if _, err := fmt.Sscan(os.Getenv(doomed), &url, &dir, &point, &nth, &rows, &seed); err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), bustest.Timeout)
	defer cancel()
	b, err := bus.Open(ctx, bus.Options{URL: url, Logger: zerolog.Nop()})
	if err != nil {
		panic(err)
	}
	c, err := b.Client(ctx, "doomed")
	if err != nil {
		panic(err)
	}
	seen := 0
	p, err := New(ctx, Options{
		Client: c, Entry: "web", Logger: zerolog.Nop(), Positions: true, MaxRows: 20, SpoolDir: dir, SpoolMax: 150_000,
		at: func(at string) {
			if at != point {
				return
			}
			if seen++; seen == nth {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		},
	})
	if err != nil {
		panic(err)
	}
	r := rand.New(rand.NewPCG(seed, 0))
	for n := rowOf(p.Position()); n < rows; {
		for to := min(rows, n+1+r.IntN(120)); n < to; n++ {
			row := row(n)
			if err := p.Send(ctx, &row); err != nil {
				panic(err)
			}
			p.Horizon(row.Time)
		}
		if n%3 == 0 {
			p.Malformed(int64(n % 5))
		}
		if err := p.Commit(ctx, at(n)); err != nil {
			panic(err)
		}
	}
	if err := p.End(ctx, row(rows).Time); err != nil {
		panic(err)
	}
	return 0
}

// TestKillAtEachPoint kills a process again and again at each point of a commit,
// and at any time: afterwards every row is stored once, under sequences without a
// gap, and every run has been ended.
func TestKillAtEachPoint(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t, func(o *bus.Options) { o.Listen = "127.0.0.1:0" })
	dir := t.TempDir()
	rounds := 1
	if os.Getenv("PENSTOCK_WHOLE") != "" {
		rounds = 10
	}
	rows := 1500 * rounds
	r := rand.New(rand.NewPCG(4, 4))
	launch := func(point string, nth, rows int) error {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), doomed+"="+strings.Join([]string{
			b.URL(), dir, point, strconv.Itoa(nth), strconv.Itoa(rows), strconv.FormatUint(r.Uint64(), 10),
		}, " "))
		if point == "any" {
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			timer := time.AfterFunc(time.Duration(nth)*time.Millisecond, func() { _ = cmd.Process.Kill() })
			defer timer.Stop()
			return cmd.Wait()
		}
		out, err := cmd.CombinedOutput()
		if err != nil && len(out) > 0 {
			t.Fatalf("%s: %s", point, out)
		}
		return err
	}
	for range rounds {
		for _, point := range []string{"opened", "begun", "cut", "written", "synced", "sent", "any"} {
			nth := 1 + r.IntN(5)
			switch point {
			case "opened", "begun":
				nth = 1
			case "any":
				nth = 20 + r.IntN(60)
			}
			if err := launch(point, nth, rows*100); err == nil {
				t.Errorf("%s: it ended by itself", point)
			}
		}
	}
	c := bustest.Client(t, b)
	if err := launch("never", 1, rows); err != nil {
		t.Fatal(err)
	}
	s := readAll(t, c) // which compares repeats
	for n, times := range s.rows {
		if times != 1 {
			t.Fatalf("row %d is stored %d times", n, times)
		}
	}
	if len(s.rows) < rows {
		t.Errorf("%d rows of %d", len(s.rows), rows)
	}
	for n := range len(s.rows) {
		if s.rows[int64(n)] != 1 {
			t.Fatalf("row %d is missing of %d", n, len(s.rows))
		}
	}
	t.Logf("%d rows, %d repeats of batches", len(s.rows), s.repeats)
	checkEnds(t, s, c.Partitions())
}

// checkEnds sees to it that each run that has batches has an end that names just
// them.
func checkEnds(t *testing.T, s *stored, partitions int) {
	t.Helper()
	ends := map[string][]uint64{}
	for _, m := range s.marks {
		if m.Kind == event.End {
			if have, ok := ends[m.Run]; ok && fmt.Sprint(have) != fmt.Sprint(m.Upto) {
				t.Errorf("run %s ends at %v and at %v", m.Run, have, m.Upto)
			}
			ends[m.Run] = m.Upto
		}
	}
	named := 0
	for run, upto := range ends {
		for p := range partitions {
			for seq := uint64(1); seq <= upto[p]; seq++ {
				named++
				if _, ok := s.bodies[fmt.Sprintf("%s/%d/%d", run, p, seq)]; !ok {
					t.Errorf("run %s, partition %d: batch %d is missing", run, p, seq)
				}
			}
		}
	}
	if named != len(s.bodies) {
		t.Errorf("%d batches are stored, ends name %d", len(s.bodies), named)
	}
}
