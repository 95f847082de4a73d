package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"penstock/infra/shareddata"
)

// accessLog returns the arguments that replay the access log with its places.
func accessLog(t *testing.T, out string, more ...string) []string {
	return append([]string{
		"replay", filepath.Join(shareddata.Dir(t, "apache-logs"), "access.log.gz"),
		"--geoip", shareddata.Dir(t, "ip2country-cc0"), "--config", example("world.yaml"), "--out", out,
	}, more...)
}

// TestAccessLogIsDecidedTheSameHoweverItIsCut replays ten thousand lines of a
// real access log: its account, its decisions, and that neither partitions nor
// batches nor flushes change a byte of them. The variants are pairwise.
func TestAccessLogIsDecidedTheSameHoweverItIsCut(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	must(t, accessLog(t, base)...)
	r := readReport(t, base)
	a := r.Account
	if a.Received != 10000 || a.Counted != 9999 || a.Malformed != 1 || !a.Holds() {
		t.Errorf("account %+v, expected 10,000 = 9,999 counted + 1 malformed", a)
	}
	over := 0
	for _, w := range r.Windows {
		if strings.HasPrefix(w.Case, "overhead") {
			over++
		}
	}
	if r.Moves.Done < 20 || over == 0 || r.Reasons["NoRoom"]+r.Reasons["Cooldown"]+r.Reasons["MoveLimit"] == 0 {
		t.Errorf("%d moves, %d overhead windows, reasons %v; expected 20 moves, an overhead window, and NoRoom or a guardrail",
			r.Moves.Done, over, r.Reasons)
	}
	for _, v := range []struct{ partitions, rows, flush string }{
		{"1", "100", "50ms"}, {"1", "8192", "10s"}, {"4", "8192", "50ms"}, {"4", "100", "10s"}, {"16", "100", "50ms"}, {"16", "8192", "10s"},
	} {
		t.Run(fmt.Sprintf("partitions=%s/rows=%s/flush=%s", v.partitions, v.rows, v.flush), func(t *testing.T) {
			out := t.TempDir()
			must(t, accessLog(t, out, "--partitions", v.partitions, "--batch-rows", v.rows, "--flush", v.flush)...)
			same(t, base, out, results...)
			if got := readReport(t, out).Account; got != a {
				t.Errorf("account %+v, expected %+v", got, a)
			}
		})
	}
}

func TestPacedReplayDecidesTheSame(t *testing.T) {
	until := []string{"--until", "2015-05-17T16:00:00Z"}
	base, paced := t.TempDir(), t.TempDir()
	must(t, accessLog(t, base, until...)...)
	must(t, accessLog(t, paced, append(until, "--speed", "36000x", "--partitions", "4")...)...)
	same(t, base, paced, results...)
	s := readReport(t, paced).Schedule
	if s == nil || s.Speed != "36000x" {
		t.Errorf("schedule %+v", s)
	}
}

func TestDisorderLeavesLateRowsAndTheSameDecisions(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	must(t, accessLog(t, base, "--disorder", "1s")...)
	r := readReport(t, base)
	if r.Account.Late == 0 || !r.Account.Holds() || r.Account.Received != 10000 {
		t.Errorf("account %+v, expected late rows", r.Account)
	}
	for _, v := range [][]string{{"--partitions", "1", "--batch-rows", "100"}, {"--partitions", "16", "--flush", "50ms"}} {
		out := t.TempDir()
		must(t, accessLog(t, out, append(v, "--disorder", "1s")...)...)
		same(t, base, out, results...)
	}
}

func TestRunsThatCannotBeGivesNoReport(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		p := filepath.Join(dir, name)
		writeFile(t, p, text)
		return p
	}
	good := write("good.csv", "time,op,user,owner,bytes,lat,lon\n2024-01-01T00:00:00Z,read,ann,bob,5,40,-80\n")
	junk := write("junk.log", strings.Repeat("this is no access log\n", 5))
	half := write("half.csv", "time,op,user,owner,bytes\n2024-01-01T00:00:00Z,read,ann,bob,5\nyesterday,read,ann,bob,5\n")
	bad := write("bad.yaml", "sites:\n  - {name: a, lat: 100, lon: 0, capacity: 1MB/h}\nplacment: {}\n")
	world := example("world.yaml")
	for _, c := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"nothing parses", []string{junk, "-c", world, "--format", "accesslog"}, 1, "none of the first 5 lines can be read"},
		{"strict", []string{half, "-c", world, "--strict"}, 1, "half.csv line 3"},
		{"bad configuration", []string{good, "-c", bad}, 2, "bad.yaml:3: placment"},
		{"unsupported speed", []string{good, "-c", world, "--speed", "fast"}, 2, "expected max or a factor"},
		{"no such file", []string{filepath.Join(dir, "none.csv"), "-c", world}, 2, "none.csv"},
		{"partitions", []string{good, "-c", world, "--partitions", "26"}, 2, "expected 1 to 25"},
		{"unknown flag", []string{good, "-c", world, "--speeed", "max"}, 2, "unknown flag"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			_, errs, code := command(t, append(append([]string{"replay"}, c.args...), "--out", out)...)
			if code != c.code || !strings.Contains(errs, c.want) {
				t.Errorf("exit code %d, expected %d, with %q in\n%s", code, c.code, c.want, errs)
			}
		})
	}
	out := t.TempDir()
	must(t, "replay", half, "-c", world, "--out", out)
	if a := readReport(t, out).Account; a.Received != 2 || a.Malformed != 1 || a.Counted != 1 {
		t.Errorf("account %+v, expected one counted and one malformed", a)
	}
}

func TestAnUnfinishedOtherReplayIsNotTouched(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rec := filepath.Join(dir, "r.csv")
	var rows strings.Builder
	rows.WriteString("time,op,user,owner,bytes,lat,lon\n")
	for h := range 40 {
		fmt.Fprintf(&rows, "2024-01-%02dT%02d:00:00Z,read,ann,bob,5,40,-80\n", 1+h/24, h%24)
	}
	writeFile(t, rec, rows.String())
	out := filepath.Join(dir, "out")
	child := process(t, "window:20", "replay", rec, "-c", example("world.yaml"), "--out", out)
	if err := child.Run(); err == nil {
		t.Fatal("the process was to be killed at its twentieth window")
	}
	_, errs, code := command(t, "replay", rec, "-c", example("gowalla.yaml"), "--out", out)
	if code != 2 || !strings.Contains(errs, "policy was") || !strings.Contains(errs, "--fresh") {
		t.Errorf("exit code %d\n%s", code, errs)
	}
	must(t, "replay", rec, "-c", example("world.yaml"), "--out", out)
	must(t, "replay", rec, "-c", example("gowalla.yaml"), "--out", out) // Finished: afresh.
	// A first try that got nowhere does not take the folder.
	junk := filepath.Join(dir, "junk.csv")
	writeFile(t, junk, "time,op,bytes\nnever,read,1\n")
	if _, errs, code := command(t, "replay", junk, "-c", example("world.yaml"), "--out", out); code != 1 || !strings.Contains(errs, "junk.csv line 2") {
		t.Errorf("exit code %d\n%s", code, errs)
	}
	must(t, "replay", rec, "-c", example("gowalla.yaml"), "--out", out)
	if got := len(readReport(t, out).Sites); got != 4 {
		t.Errorf("%d sites", got)
	}
}
