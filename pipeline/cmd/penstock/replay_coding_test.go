package main

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"penstock/consumers/decider/coding/threshold"
	"penstock/pipeline/report"
	"penstock/schemas/control"
)

const codedWorld = `
sites:
  - {name: us-east, lat: 37.3719, lon: -79.8164, capacity: 20KB/h}
  - {name: us-west, lat: 37.783, lon: -122.417, capacity: 20KB/h}
coding: {history: 60}
coders:
  - {name: objects, site: us-east, listen: "127.0.0.1:9200", keys_file: keys, stores: [{name: east-1, url: "dir:objects"}]}
  - name: safe
    site: us-east
    listen: "127.0.0.1:9201"
    keys_file: keys
    layout: spread
    n: 4
    k: 2
    stores: [{name: a, url: "dir:a"}, {name: b, url: "dir:b"}, {name: c, url: "dir:c"}, {name: d, url: "dir:d"}]
bus: {sync: interval}
`

// delaysOf are those of the recorded stores, by op.
var delaysOf = map[string]map[string]threshold.Model{
	"east-1": {"read": {Delta: 30, DeltaPerMB: 8, Psi: 15, PsiPerMB: 30}, "write": {Delta: 50, DeltaPerMB: 14, Psi: 12, PsiPerMB: 9}},
	"a":      {"read": threshold.DefaultRead},
	"b":      {"read": threshold.DefaultRead},
	"c":      {"read": threshold.DefaultRead},
	"d":      {"read": {Delta: 40, DeltaPerMB: 12, Psi: 10, PsiPerMB: 20}},
}

// tasksBegin is when the recording of chunk tasks begins: five minutes before a window
// of placement ends.
var tasksBegin = time.Date(2026, 3, 1, 10, 55, 0, 0, time.UTC)

// recordTasks writes a recording of ten minutes of chunk tasks of two coders, with the
// requests that they are parts of: at (12,6), then (6,3), then (2,1), then all of them
// mixed.
func recordTasks(t testing.TB, dir string) string {
	t.Helper()
	type line struct {
		at   time.Time
		text string
	}
	var lines []line
	r := rand.New(rand.NewPCG(8, 8))
	request := func(at time.Time, coder string, stores []string, op string, n, k int) {
		b := 3 / float64(k)
		type task struct {
			store string
			us    int64
		}
		tasks := make([]task, n)
		for i := range tasks {
			m := delaysOf[stores[i%len(stores)]][op]
			tasks[i] = task{stores[i%len(stores)], int64(1000 * (m.Fixed(b) + r.ExpFloat64()*m.Mean(b)))}
		}
		slices.SortFunc(tasks, func(x, y task) int { return cmp.Compare(x.us, y.us) })
		last := tasks[k-1].us
		for i, x := range tasks {
			outcome, us := "done", x.us
			if i >= k {
				outcome, us = "cancelled", last
			}
			end := at.Add(time.Duration(us) * time.Microsecond)
			lines = append(lines, line{end, fmt.Sprintf("%d,%s,%s,us-east,%s,%d,200,%d,,%s,%d,%d", end.UnixMicro(), op, coder, x.store, 3_000_000/k, us, outcome, n, k)})
		}
		end := at.Add(time.Duration(last) * time.Microsecond)
		lines = append(lines, line{end, fmt.Sprintf("%d,%s,%s,us-east,,3000000,200,%d,200,,,", end.UnixMicro(), op, coder, last)})
	}
	codes := [][2]int{{12, 6}, {6, 3}, {2, 1}}
	for i := range 12_000 {
		at := tasksBegin.Add(time.Duration(i) * 49900 * time.Microsecond)
		c := codes[min(i/2500, 2)]
		if i >= 7500 {
			c = codes[i%3]
		}
		op := "read"
		if i%4 == 3 {
			op = "write"
		}
		request(at, "objects", []string{"east-1"}, op, c[0], c[1])
		if i%10 == 0 {
			request(at, "safe", []string{"a", "b", "c", "d"}, "read", 3+i/10%2, 2)
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return a.at.Compare(b.at) })
	var b strings.Builder
	b.WriteString("time,op,to_component,to_site,to_server,bytes,wait_us,service_us,status,outcome,n,k\n")
	for _, l := range lines {
		b.WriteString(l.text + "\n")
	}
	name := filepath.Join(dir, "tasks.csv")
	writeFile(t, name, b.String())
	return name
}

// tasksReplay are the arguments of a replay of these tasks.
func tasksReplay(t testing.TB, dir, out string, more ...string) []string {
	t.Helper()
	cfg, rec := filepath.Join(dir, "coding.yaml"), filepath.Join(dir, "tasks.csv")
	if _, err := os.Stat(rec); err != nil {
		recordTasks(t, dir)
		writeFile(t, cfg, codedWorld)
	}
	return append([]string{"replay", rec, "--config", cfg, "--out", out}, more...)
}

// TestReplayCodes replays recorded chunk tasks: every window that the recording closes
// is decided, the delays of the stores are found, and the tables follow from them.
// Neither partitions nor batches, flushes or speed change a byte, nor does a kill.
func TestReplayCodes(t *testing.T) {
	t.Parallel()
	dir, base := t.TempDir(), t.TempDir()
	text := must(t, tasksReplay(t, dir, base)...)
	codedReport(t, base, text)
	codedTables(t, base)
	for _, v := range [][]string{
		{"--partitions", "1", "--batch-rows", "100", "--flush", "50ms"},
		{"--partitions", "16", "--flush", "10s", "--route", "follow"},
		{"--partitions", "2", "--speed", "600x"},
	} {
		t.Run(strings.Join(v, " "), func(t *testing.T) {
			t.Parallel()
			out := t.TempDir()
			must(t, tasksReplay(t, dir, out, v...)...)
			same(t, base, out, "commands.jsonl", "decisions.jsonl", "matrices/storage.parquet")
		})
	}
	t.Run("killed", func(t *testing.T) {
		t.Parallel()
		out := t.TempDir()
		if err := process(t, "flushed:14", tasksReplay(t, dir, out)...).Run(); err == nil {
			t.Fatal("the process was to be killed")
		}
		must(t, tasksReplay(t, dir, out)...)
		same(t, base, out, results...)
	})
	t.Run("nothing to code", func(t *testing.T) {
		t.Parallel()
		out, plain := t.TempDir(), filepath.Join(dir, "plain.yaml")
		sites, _, _ := strings.Cut(codedWorld, "coding:")
		writeFile(t, plain, sites)
		args := tasksReplay(t, dir, out)
		args[3] = plain
		if text := must(t, args...); strings.Contains(text, "coding  ") || readReport(t, out).Coding != nil {
			t.Errorf("summary:\n%s", text)
		}
		// The matrix is there all the same.
		same(t, base, out, "matrices/storage.parquet", "matrices/delay.parquet")
	})
}

// codedReport checks what report and summary say.
func codedReport(t *testing.T, base, text string) {
	t.Helper()
	r := readReport(t, base)
	if r.Coding == nil || r.Coding.Windows != 60 || r.Coding.Incomplete != 0 || len(r.Coding.Coders) != 2 || r.Coding.Tables < 3 {
		t.Fatalf("summary:\n%s", text)
	}
	objects, safe := &r.Coding.Coders[0], &r.Coding.Coders[1]
	for _, m := range objects.Models {
		want := delaysOf[m.Store][m.Op]
		for name, x := range map[string][2]float64{
			"Δ": {m.Model.Delta, want.Delta}, "Δ/MB": {m.Model.DeltaPerMB, want.DeltaPerMB}, "Ψ": {m.Model.Psi, want.Psi}, "Ψ/MB": {m.Model.PsiPerMB, want.PsiPerMB},
		} {
			if math.Abs(x[0]/x[1]-1) > 0.1 {
				t.Errorf("%s, %s: %s is %.2f, found %.2f", m.Store, m.Op, name, x[1], x[0])
			}
		}
	}
	// A store that is hardly ever among the first two has too few tasks that ended.
	if len(objects.Models) != 2 || len(safe.Models) != 3 {
		t.Errorf("models of %d and %d, expected reads and writes of one store and reads of three", len(objects.Models), len(safe.Models))
	}
	if x := objects.Read; math.Abs(x.Requests-9000) > 1e-3 || len(x.K) != 3 || x.Failed != 0 || math.Abs(x.K[0].Share-4000.0/12_000) > 0.01 || x.Neighbours > 0.4 {
		t.Errorf("reads %+v", x)
	}
	if x := safe.Read; math.Abs(x.Requests-1200) > 1e-3 || len(x.Codes) != 2 || x.Codes[0] != (report.CodeUsed{N: 3, K: 2, Share: 0.5}) || x.Neighbours != 1 {
		t.Errorf("reads of the spread coder %+v", x)
	}
	if p := safe.Price; p.RequestsPerRead != 3.5 || p.AsWere != 1.4 || p.MostRequests != 4 || p.Most != 1.6 {
		t.Errorf("price %+v", p)
	}
	if len(objects.Series) != 60 || objects.Series[0].Read.K != 6 || objects.Series[30].Read.K != 1 {
		t.Errorf("series of %d windows", len(objects.Series))
	}
	for _, want := range []string{
		"coding   60 windows decided by policy tofec, ", "  objects: 9\u202f000 reads, 3\u202f000 writes; ", "    east-1 read: Δ ", "    reads by k: 1: 3", "3.50 requests to stores a read, $1.40 a million reads, at most $1.6\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in the summary:\n%s", want, text)
		}
	}
	page, err := os.ReadFile(filepath.Join(base, "report.html"))
	if err != nil || strings.Count(string(page), "objects: codes") != 2 || !strings.Contains(string(page), "<h2>Coding</h2>") { // title and alternative text
		t.Errorf("the page: %v", err)
	}
}

// codedTables checks that the last tables follow from the models that they name.
func codedTables(t *testing.T, base string) {
	t.Helper()
	last := map[string]*control.CodingTable{}
	for _, c := range bodies[control.Command](t, base, "commands.jsonl") {
		if c.Kind != control.Coding || c.Mode != control.Act {
			t.Errorf("%s in mode %s", c.Kind, c.Mode)
		}
		last[c.Scope] = c.Coding
	}
	for scope, l := range map[string]threshold.Limits{
		"objects": {Connections: 16, SizeMB: 3, KMax: 6, NMax: 12, RMax: 2},
		"safe":    {Connections: 16, SizeMB: 3, KMin: 2, KMax: 2, NMax: 4, RMax: 2},
	} {
		got := last[scope]
		m := got.Model.Read
		want, err := threshold.Corrected(threshold.Model{Delta: m.Delta, DeltaPerMB: m.DeltaPerMB, Psi: m.Psi, PsiPerMB: m.PsiPerMB}, l)
		if err != nil {
			t.Fatal(err)
		}
		if d := threshold.Apart(threshold.Table{K: got.Read.K, N: got.Read.N}, capped(want)); d > 1e-3 {
			t.Errorf("%s: %+v, expected %+v", scope, got.Read, want)
		}
	}
	if n, k := (threshold.Table{K: last["safe"].Read.K, N: last["safe"].Read.N}).Code(0, 2); n != 4 || k != 2 {
		t.Errorf("the spread coder reads (%d,%d) from an empty queue", n, k)
	}
}

// capped are thresholds as tables have them.
func capped(t threshold.Table) threshold.Table {
	for _, h := range [][]float64{t.K, t.N} {
		for i := range h {
			h[i] = min(h[i], control.MaxBacklog)
		}
	}
	return t
}
