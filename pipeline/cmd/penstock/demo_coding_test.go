package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"penstock/pipeline/config"
	"penstock/pipeline/demo/coding"
)

// codingDemo runs the demonstration as CI can afford it: a light and a heavy load. All is
// real. On a machine that is too busy for delays to say anything the run is void; what no
// clock decides holds there too (issue: make coding-demo).
func codingDemo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "demo")
	c := process(t, "", "--json", "demo", "coding", "--fast", "--seed", "7", "-o", dir)
	c.Stdout = nil
	out, err := c.Output()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	var r coding.Result
	if e := json.Unmarshal(out, &r); e != nil {
		t.Fatalf("%v, %v: %s", err, e, out)
	}
	if why := busy(&r); why != "" {
		t.Logf("the machine was the limit, delays are not judged: %s", why)
	} else if err != nil || len(r.Broken) > 0 || len(r.Checks) != 21 {
		t.Errorf("%v: %d checks, broken: %q", err, len(r.Checks), r.Broken)
	}
	if len(r.Arms) != 3 || len(r.Phases) != 2 {
		t.Fatalf("%d coders, %d phases", len(r.Arms), len(r.Phases))
	}
	answers := int64(0)
	for _, a := range r.Arms {
		if a.Due == 0 || a.Wrong > 0 || a.Failed > 0 || a.Answered == 0 || uint64(a.Answered+a.Refused) > a.Due {
			t.Errorf("%s: of %d requests %d were answered, %d refused, %d failed, %d wrong: %q", a.Policy, a.Due, a.Answered, a.Refused, a.Failed, a.Wrong, a.Told)
		}
		if l := a.Left; l.Unintended > 0 || l.Deletes > l.Repeats || l.Connections > 0 {
			t.Errorf("%s leaves %+v", a.Policy, l)
		}
		answers += int64(a.Answered)
	}
	ours, wide := &r.Arms[0], &r.Arms[2]
	if ours.Due != wide.Due || wide.Gone == 0 || r.Commands == 0 || r.Outcomes["done"] == 0 {
		t.Errorf("%d and %d requests; %d chunks cancelled; %d commands, outcomes %v", ours.Due, wide.Due, wide.Gone, r.Commands, r.Outcomes)
	}
	// The account is exact on any machine, of all that was sent; what is late is in it.
	if a := r.Account; a == nil || !a.Holds() || a.Duplicate+a.Malformed+a.Quarantined+a.LostBatches > 0 || a.Received < 2*answers {
		t.Errorf("account %+v of %d answers", a, answers)
	}
	if !slices.ContainsFunc(r.Checks, func(c coding.Check) bool { return strings.HasPrefix(c.What, coding.Accounted) && c.Kept }) {
		t.Errorf("the account is not of all that was sent: %q", r.Broken)
	}
	// What it leaves can be used.
	for _, name := range []string{"serve.yaml", "tofec.yaml", "wide.yaml"} {
		if _, err := config.Load(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	if text := must(t, "audit", "--state", filepath.Join(dir, "state")); !strings.Contains(text, "every event is accounted for") {
		t.Errorf("audit: %s", text)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "report.html")); err != nil || strings.Count(string(b), "<img") != 5 {
		t.Errorf("report: %d bytes, %v", len(b), err)
	}
}

// busy says why delays show nothing: the run says so, or others took half of the
// processors, of which there is one for each of its processes at best.
func busy(r *coding.Result) string {
	for i := range r.Usage {
		if u := &r.Usage[i]; u.All-u.Ours > 0.5 {
			return u.String()
		}
	}
	return strings.Join(r.Void, "; ")
}

func TestCodingDemoKeepsWhatIsNotItsOwn(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "thesis.txt"), "years of work")
	if _, errs, code := command(t, "demo", "coding", "-o", dir); code != 2 || !strings.Contains(errs, "holds something else") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if _, errs, code := command(t, "demo", "coding", "-o", filepath.Join(dir, "x"), "--scale", "0.01"); code != 2 || !strings.Contains(errs, "scale") {
		t.Errorf("no scale: exit code %d: %s", code, errs)
	}
}
