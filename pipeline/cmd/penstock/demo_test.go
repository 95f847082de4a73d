package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"penstock/pipeline/config"
	"penstock/pipeline/demo"
)

// liveDemo runs the demonstration as CI can afford it: everything is real, and
// each promise of it is checked by itself (issue: make live-demo).
func liveDemo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "demo")
	c := process(t, "", "--json", "demo", "live", "--fast", "--seed", "7", "-o", dir)
	c.Stdout = nil
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	var r demo.Result
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if len(r.Broken) != 0 || r.Answers == 0 || uint64(r.Answers) != r.Load.Sent || r.Hops[0]+r.Hops[1] != r.Answers {
		t.Errorf("broken %q; of %d requests %d were answered, with hops %v", r.Broken, r.Load.Sent, r.Answers, r.Hops)
	}
	if len(r.Trips) != 1 || !r.Trips[0].Followed || r.Trips[0].Windows < 1 || r.Trips[0].Windows > 2 {
		t.Errorf("trips %+v", r.Trips)
	}
	if r.Moves < 100 || r.Stale[1] == 0 {
		t.Errorf("%d moves, %v answers to stale clients", r.Moves, r.Stale)
	}
	if r.Books.Acknowledged == 0 || r.Books.Acknowledged != r.Books.Sent || r.Books.Found != r.Books.Acknowledged {
		t.Errorf("books %+v", r.Books)
	}
	if a := r.Account; a.Received < int64(r.Answers) || a.Received != a.Counted+a.Late+a.Duplicate+a.Malformed+a.Quarantined {
		t.Errorf("account %+v of %d answers", a, r.Answers)
	}
	near := map[string]demo.Delay{}
	for _, p := range r.Phases {
		for _, w := range p.Ways {
			if w.Way == demo.Nearest.String() {
				near[p.Name] = w
			}
		}
	}
	before, moved, after := near["before"], near["just moved to us-east"], near["data followed to us-east"]
	if before.Hop > 0.2 || moved.Hop < 0.5 || after.Hop > 0.2 {
		t.Errorf("of the crowd's requests took a hop: %.2f before, %.2f after it had moved, %.2f when its data had followed", before.Hop, moved.Hop, after.Hop)
	}
	// The sites are 5,500 km apart, which is a round trip of 115 ms, whatever else
	// this machine does. How long answers take without a hop is its own affair.
	if moved.P50 < 100 || before.P50 <= 0 || after.P50 <= 0 {
		t.Errorf("p50 was %.1f ms before, %.1f ms after the crowd had moved and %.1f ms when its data had followed", before.P50, moved.P50, after.P50)
	}
	// What it leaves can be used: the configurations have no faults, and the account
	// can be read again.
	for _, name := range []string{"penstock.yaml", "entry-eu-west.yaml"} {
		if _, err := config.Load(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	if text := must(t, "audit", "--state", filepath.Join(dir, "state")); !strings.Contains(text, "every event is accounted for") {
		t.Errorf("audit: %s", text)
	}
}

func TestLiveDemoKeepsWhatIsNotItsOwn(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "thesis.txt")
	writeFile(t, file, "years of work")
	_, errs, code := command(t, "demo", "live", "-o", dir)
	if code != 2 || !strings.Contains(errs, "holds something else") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
	if _, errs, code = command(t, "demo", "live", "-o", filepath.Join(dir, "x"), "--people", "3"); code != 2 {
		t.Errorf("three people: exit code %d: %s", code, errs)
	}
}

// TestDemoPartEndsWithItsInput: a process of the demonstration ends when the one
// that started it has, however that ended, and passes a failure on.
func TestDemoPartEndsWithItsInput(t *testing.T) {
	t.Parallel()
	c := process(t, "", "demo", "part", "--", "demo", "notes", "--site", "east", "--store", t.TempDir(), "--listen", "127.0.0.1:0")
	c.WaitDelay = time.Minute
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stdout = nil
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, 256)
	n, err := out.Read(said)
	if err != nil || !strings.HasPrefix(string(said[:n]), "notes of east at 127.0.0.1:") {
		t.Errorf("%q, %v", said[:n], err)
	}
	_ = in.Close()
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
	c = process(t, "", "demo", "part", "--", "serve", "--config", "nowhere.yaml")
	var exit *exec.ExitError
	if err := c.Run(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("a part that fails: %v", err)
	}
}
