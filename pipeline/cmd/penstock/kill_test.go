package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"penstock/consumers/executor/locations"
	"penstock/infra/bus"
	"penstock/schemas/control"
)

var kills = flag.Int("kills", 4, "how often TestKill kills the process")

// killPoint draws where to kill for the nth time: half of the time while the
// mover's journal has an open move, a quarter inside a flush, a quarter anywhere.
func killPoint(r *rand.Rand, nth int) string {
	switch nth % 4 {
	case 0, 2:
		return fmt.Sprintf("move:%d", 1+r.IntN(25))
	case 1:
		return fmt.Sprintf("%s:%d", []string{"flush", "flushed"}[r.IntN(2)], 1+r.IntN(40))
	default:
		return fmt.Sprintf("after:%d", 100+r.IntN(2500))
	}
}

// TestKill kills the whole process again and again during the paper's day and
// gives the same command each time. What comes out must be what an undisturbed
// run gives (P16).
func TestKill(t *testing.T) {
	t.Parallel()
	day := paperDay(t)
	undisturbed := filepath.Join(t.TempDir(), "undisturbed")
	must(t, "replay", day, "-c", example("paper.yaml"), "--out", undisturbed)
	out := filepath.Join(t.TempDir(), "killed")
	args := []string{"replay", day, "-c", example("paper.yaml"), "--out", out}
	r := rand.New(rand.NewPCG(1, uint64(*kills)))
	// A run that ends before it comes to its point is finished, and the next one
	// begins afresh: the last thing before the comparison is always a kill.
	for killed := 0; killed < *kills; {
		point := killPoint(r, killed)
		c := process(t, point, args...)
		began := time.Now()
		if err := startAndKill(c, point); err == nil {
			t.Logf("%s: the run ended before it", point)
			continue
		}
		killed++
		t.Logf("kill %d at %s after %.1f s", killed, point, time.Since(began).Seconds())
	}
	must(t, args...)
	same(t, undisturbed, out, results...)
	if a, b := locationsOf(t, undisturbed), locationsOf(t, out); a != b {
		t.Errorf("locations differ: %s", firstDifference([]byte(a), []byte(b)))
	}
	a, b := readReport(t, undisturbed), readReport(t, out)
	if !b.Account.Holds() || b.Account.Counted != a.Account.Counted || b.Account.Late != a.Account.Late ||
		b.Account.Received-b.Account.Duplicate != a.Account.Received || b.Account.LostBatches != 0 {
		t.Errorf("account %+v, undisturbed %+v: duplicate alone may differ", b.Account, a.Account)
	}
	if b.Stores == nil || len(b.Stores.Faults) > 0 || b.Stores.Owners != a.Stores.Owners || b.Stores.Bytes != a.Stores.Bytes || b.Stores.Records != a.Stores.Records {
		t.Errorf("stores %+v, undisturbed %+v", b.Stores, a.Stores)
	}
}

// startAndKill runs the process until it has killed itself, or kills it after
// the milliseconds of an "after" point. Nil: it ended by itself.
func startAndKill(c *exec.Cmd, point string) error {
	var ms int
	if n, _ := fmt.Sscanf(point, "after:%d", &ms); n == 0 {
		return c.Run()
	}
	if err := c.Start(); err != nil {
		return err
	}
	timer := time.AfterFunc(time.Duration(ms)*time.Millisecond, func() { _ = c.Process.Kill() })
	defer timer.Stop()
	return c.Wait()
}

// paperDay makes the recording of the paper's day.
func paperDay(t *testing.T) string {
	day := filepath.Join(t.TempDir(), "day.parquet")
	must(t, "import", "workload", example("paper-day.yaml"), "-o", day)
	return day
}

// locationsOf lists the table of locations of a replay, sorted.
func locationsOf(t *testing.T, out string) string {
	b, err := bus.Open(t.Context(), bus.Options{Dir: filepath.Join(out, "state", "bus"), Purpose: bus.Replay, Logger: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	client, err := b.Client(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	table, err := locations.Open(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	err = table.List(t.Context(), func(owner string, l control.Location) error {
		body, err := control.Encode(l)
		lines = append(lines, owner+" "+string(body))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
