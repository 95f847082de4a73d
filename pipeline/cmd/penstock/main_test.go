package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"penstock/pipeline/report"
)

// The test binary is the command too: run with PENSTOCK_RUN it does what its
// arguments say, so that tests can kill and stop real processes. With
// PENSTOCK_KILL=point:n it kills itself the nth time that it comes to the point.
func TestMain(m *testing.M) {
	if os.Getenv("PENSTOCK_RUN") == "" {
		// Most tests wait for processes and for windows to end: more of them run beside
		// each other than there are processors, unless -parallel says how many.
		if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))); err != nil {
			panic(err)
		}
		os.Exit(m.Run())
	}
	hook := func(string) {}
	if point, n, ok := strings.Cut(os.Getenv("PENSTOCK_KILL"), ":"); ok {
		hook = killAt(point, n)
	}
	os.Exit(runSignalled(os.Args[1:], os.Stdout, os.Stderr, hook))
}

func killAt(point, n string) func(string) {
	nth, err := strconv.ParseInt(n, 10, 64)
	if err != nil {
		panic(err)
	}
	var seen atomic.Int64
	return func(p string) {
		if p == point && seen.Add(1) == nth {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // The signal comes at once, but not before the next line.
		}
	}
}

// command runs the command line in this process.
func command(t testing.TB, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, &out, &errs)
	return out.String(), errs.String(), code
}

// must runs the command line and fails the test unless it exits with 0.
func must(t testing.TB, args ...string) string {
	t.Helper()
	out, errs, code := command(t, args...)
	if code != 0 {
		t.Fatalf("penstock %s: exit code %d\n%s%s", strings.Join(args, " "), code, out, errs)
	}
	return out
}

func readReport(t testing.TB, out string) *report.Report {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(out, "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	var r report.Report
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	return &r
}

// same fails the test unless the named files are equal in both folders.
func same(t testing.TB, a, b string, names ...string) {
	t.Helper()
	for _, n := range names {
		x, err := os.ReadFile(filepath.Join(a, n))
		if err != nil {
			t.Fatal(err)
		}
		y, err := os.ReadFile(filepath.Join(b, n))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(x, y) {
			t.Errorf("%s differs between %s and %s: %s", n, a, b, firstDifference(x, y))
		}
	}
}

func firstDifference(x, y []byte) string {
	xs, ys := bytes.Split(x, []byte("\n")), bytes.Split(y, []byte("\n"))
	for i := range min(len(xs), len(ys)) {
		if !bytes.Equal(xs[i], ys[i]) {
			return fmt.Sprintf("line %d\n%.600s\n%.600s", i+1, xs[i], ys[i])
		}
	}
	return fmt.Sprintf("%d and %d lines", len(xs), len(ys))
}

// results are the files of a replay that must not depend on anything but the
// recording and the configuration.
var results = []string{
	"commands.jsonl", "decisions.jsonl", "matrices/traffic.parquet", "matrices/interactions.parquet",
	"matrices/places.parquet", "matrices/late.parquet", "matrices/delay.parquet", "matrices/service.parquet", "matrices/storage.parquet",
}

// example is a configuration of infra/examples.
func example(name string) string { return filepath.Join("..", "..", "..", "infra", "examples", name) }

// TestVersionSaysWhatItDoesNotKnow: a test binary has no revision.
func TestVersionSaysWhatItDoesNotKnow(t *testing.T) {
	if text := must(t, "version"); !strings.Contains(text, ", revision unknown)") {
		t.Errorf("version: %s", text)
	}
}
