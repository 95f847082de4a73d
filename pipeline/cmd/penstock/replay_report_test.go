package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A what-if over a recording that says which site served: the report compares it
// with how it was, and with each baseline, over the same requests.
func TestReportComparesWithHowItWasAndEachBaseline(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rec := filepath.Join(dir, "r.csv")
	var rows strings.Builder
	rows.WriteString("time,op,user,owner,bytes,lat,lon,to_site\n")
	const n = 60
	for i := range n {
		// All live near Dublin and were served from the other side of the globe.
		fmt.Fprintf(&rows, "2024-01-01T%02d:%02d:00Z,read,u%d,o%d,1000,53,-6,sa-east\n", i/20, i%20, i%7, i%5)
	}
	writeFile(t, rec, rows.String())
	out := filepath.Join(dir, "out")
	text := must(t, "replay", rec, "-c", example("world.yaml"), "--route", "follow", "--out", out)
	r := readReport(t, out)
	was := r.Baselines["as-it-was"]
	if was.Unknown != "" || was.Requests != n || r.Requests != n || was.Series.Traffic["sa-east"][0] != 20_000 || r.AsRecorded {
		t.Errorf("as it was: %q, %v requests, traffic %v; this replay %v requests", was.Unknown, was.Requests, was.Series.Traffic, r.Requests)
	}
	if !(r.Latency.Mean < 10 && was.Latency.Mean > 150) || was.BytesMoved.Known() {
		t.Errorf("latency %v ms, as it was %v; bytes moved then %v", r.Latency.Mean, was.Latency.Mean, was.BytesMoved)
	}
	for _, name := range []string{"nearest-replica", "distance-only", "volley", "akkio-like"} {
		if b, ok := r.Baselines[name]; !ok || b.Requests != n || !strings.Contains(text, name) {
			t.Errorf("%s: %v requests, or it is not printed", name, b.Requests)
		}
	}
	// As it was recorded: the same report says that nothing of the serving is new.
	text = must(t, "replay", rec, "-c", example("world.yaml"), "--route", "recorded", "--out", out)
	r = readReport(t, out)
	if !r.AsRecorded || r.Latency.Mean != r.Baselines["as-it-was"].Latency.Mean || !slices.Equal(r.Series.Traffic["sa-east"], r.Baselines["as-it-was"].Series.Traffic["sa-east"]) {
		t.Errorf("as recorded %v: latency %v, as it was %v", r.AsRecorded, r.Latency.Mean, r.Baselines["as-it-was"].Latency.Mean)
	}
	if !strings.Contains(text, "served where the recording says") {
		t.Errorf("the summary does not say so:\n%s", text)
	}
}
