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
	"penstock/pipeline/demo/servers"
)

// TestServersDemo runs the demonstration as CI can afford it: a day of a few seconds. All is
// real. What a busy machine can break is not judged: costs, estimates, and that servers went
// on and off in so short a day (issue: make servers-demo).
func TestServersDemo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "demo")
	c := process(t, "", "--json", "demo", "servers", "--day", "6s", "--rate", "30", "--seed", "7", "-o", dir)
	c.Stdout = nil
	out, err := c.Output()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	var r servers.Result
	if e := json.Unmarshal(out, &r); e != nil {
		t.Fatalf("%v, %v: %s", err, e, out)
	}
	for _, c := range r.Checks {
		switch {
		case c.Kept:
		case c.Timed:
			t.Logf("not judged here: %s: %s, expected %s", c.What, c.Got, c.Want)
		default:
			t.Errorf("%s: %s, expected %s", c.What, c.Got, c.Want)
		}
	}
	if len(r.Checks) != 8 || len(r.Sites) != 2 || len(r.Servers) != 6 || len(r.Curve) == 0 || len(r.Faults) != 2 {
		t.Fatalf("%d checks, %d sites, %d servers, %d moments, faults %+v", len(r.Checks), len(r.Sites), len(r.Servers), len(r.Curve), r.Faults)
	}
	ours, theirs := &r.Sites[0], &r.Sites[1]
	if ours.Due == 0 || ours.Due != theirs.Due || ours.ServerSeconds <= 0 || theirs.ServerSeconds < 6*6-10 {
		t.Errorf("%+v and %+v", ours, theirs)
	}
	if len(r.Tables) == 0 || r.Tables[0].Reason != "FirstTable" || r.Tables[0].On != 2 || r.Outcomes["done"] == 0 {
		t.Errorf("tables %+v, outcomes %v", r.Tables, r.Outcomes)
	}
	for _, s := range r.Servers[:2] {
		if s.Ups == 0 || s.Done == 0 {
			t.Errorf("server %+v", s)
		}
	}
	// What it leaves can be used.
	for _, name := range []string{"penstock.yaml", "entry-penstock-a.yaml", "entry-plain-b.yaml"} {
		if _, err := config.Load(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	if text := must(t, "audit", "--state", filepath.Join(dir, "state")); !strings.Contains(text, "every event is accounted for") {
		t.Errorf("audit: %s", text)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "report.html")); err != nil || strings.Count(string(b), "<img") != 6 {
		t.Errorf("report: %d bytes, %v", len(b), err)
	}
}

func TestServersDemoKeepsWhatIsNotItsOwn(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "thesis.txt"), "years of work")
	if _, errs, code := command(t, "demo", "servers", "-o", dir); code != 2 || !strings.Contains(errs, "holds something else") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if _, errs, code := command(t, "demo", "servers", "-o", filepath.Join(dir, "x"), "--policy", "best"); code != 2 || !strings.Contains(errs, "A1") {
		t.Errorf("no policy: exit code %d: %s", code, errs)
	}
	for _, args := range [][]string{
		{"demo", "server", "--listen", "127.0.0.1:0", "--control", "127.0.0.1:0", "--workers", "0"},
		{"demo", "server", "--listen", "nowhere", "--control", "127.0.0.1:0", "--workers", "1"},
		{"demo", "server", "--listen", "127.0.0.1:0", "--control", "nowhere", "--workers", "1"},
		{"demo", "switch", "status", "--room", "http://127.0.0.1:1", "--server", "127.0.0.1:2"},
	} {
		c := process(t, "", args...)
		c.WaitDelay = time.Minute
		if err := c.Run(); err == nil {
			t.Errorf("%q runs", args)
		}
	}
}
