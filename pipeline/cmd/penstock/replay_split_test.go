package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"penstock/schemas/control"
)

const splitWorld = `
sites:
  - {name: us-east, lat: 37.3719, lon: -79.8164, capacity: 20KB/h}
  - {name: us-west, lat: 37.783, lon: -122.417, capacity: 20KB/h}
components:
  - {name: web, sites: [us-east, us-west]}
  - {name: cart, sites: [us-east, us-west]}
bus: {sync: interval}
`

// unsplit is the same without components.
func unsplit() string {
	sites, _, _ := strings.Cut(splitWorld, "components:")
	return sites
}

// callsBegin is when the recording of calls begins: five minutes before a window of
// placement ends.
var callsBegin = time.Date(2026, 3, 1, 10, 55, 0, 0, time.UTC)

// calls writes a recording of ten minutes of calls between components at two sites:
// most of web's calls to cart stay at its site, and from the third minute to the
// sixth cart at us-east takes 300 ms more. Owners ask for their data too, so that
// placement has something to decide.
func calls(t testing.TB, dir string) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("time,trace,user,owner,lat,lon,from_component,from_site,to_component,to_site,op,bytes,wait_us,service_us,network_us,status\n")
	r := rand.New(rand.NewPCG(5, 5))
	sites := []string{"us-east", "us-west"}
	for s := range 600 {
		for i, site := range sites {
			for n := range 3 {
				at := callsBegin.Add(time.Duration(s)*time.Second + time.Duration(n)*300*time.Millisecond + time.Duration(i)*70*time.Millisecond)
				trace := fmt.Sprintf("%032x", s*100+i*10+n+1)
				owner, user, place := "", "", ","
				if n == 0 && s%20 == 0 {
					owner = fmt.Sprint("owner-", s/20%7)
					user, place = owner, []string{"38,-80", "38,-122"}[(s/300+i)%2]
				}
				fmt.Fprintf(&b, "%s,%s,%s,%s,%s,,%s,web,%s,read,900,0,%d,%d,200\n",
					at.Format("2006-01-02T15:04:05.000Z"), trace, user, owner, place, site, site, 4000+r.IntN(500), 300+r.IntN(100))
				to := i
				if (3*s+n)%6 == 5 {
					to = 1 - i // One call in six is made elsewhere.
				}
				service, network := 20_000+r.IntN(2000), 500+r.IntN(100)
				if to != i {
					network += 62_000
				}
				if to == 0 && s >= 180 && s < 360 {
					service += 300_000
				}
				fmt.Fprintf(&b, "%s,%s,,,,,web,%s,cart,%s,read,500,0,%d,%d,200\n",
					at.Add(30*time.Millisecond).Format("2006-01-02T15:04:05.000Z"), trace, site, sites[to], service, network)
			}
		}
	}
	name := filepath.Join(dir, "calls.csv")
	writeFile(t, name, b.String())
	return name
}

// callsReplay are the arguments of a replay of these calls.
func callsReplay(t testing.TB, dir, out string, more ...string) []string {
	t.Helper()
	cfg, rec := filepath.Join(dir, "split.yaml"), filepath.Join(dir, "calls.csv")
	if _, err := os.Stat(rec); err != nil {
		calls(t, dir)
		writeFile(t, cfg, splitWorld)
	}
	return append([]string{"replay", rec, "--config", cfg, "--out", out}, more...)
}

// bodies decodes the lines of a file of a replay's.
func bodies[T any](t testing.TB, out, name string) (all []T) {
	t.Helper()
	f, err := os.Open(filepath.Join(out, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in := bufio.NewScanner(f)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var x T
		if err := json.Unmarshal(in.Bytes(), &x); err != nil {
			t.Fatal(err)
		}
		all = append(all, x)
	}
	if err := in.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestReplaySplits replays calls between components: every window that the recording
// closes is decided, and the calls leave what got slow and come back. Neither
// partitions nor batches, flushes or speed change a byte, nor does a kill.
func TestReplaySplits(t *testing.T) {
	t.Parallel()
	dir, base := t.TempDir(), t.TempDir()
	text := must(t, callsReplay(t, dir, base)...)
	inOrder(t, base)
	splitReport(t, base, text)
	for _, v := range [][]string{
		{"--partitions", "1", "--batch-rows", "100", "--flush", "50ms"},
		{"--partitions", "16", "--flush", "10s"},
		{"--partitions", "2", "--speed", "600x"},
	} {
		t.Run(strings.Join(v, " "), func(t *testing.T) {
			t.Parallel()
			out := t.TempDir()
			must(t, callsReplay(t, dir, out, v...)...)
			same(t, base, out, results...)
		})
	}
	t.Run("without waiting", func(t *testing.T) { t.Parallel(); splitWithoutWaiting(t, dir, base) })
	t.Run("killed", func(t *testing.T) { t.Parallel(); splitKilled(t, dir, base) })
	t.Run("until", func(t *testing.T) { t.Parallel(); splitUntil(t, dir, base) })
	t.Run("nothing to split", func(t *testing.T) { t.Parallel(); splitNothing(t, dir) })
}

// inOrder checks that every window is decided, and that those of both kinds stand in
// order of their ends, then of the kinds.
func inOrder(t *testing.T, base string) {
	t.Helper()
	kinds := map[control.Kind]int{}
	var was control.Decision
	for _, d := range bodies[control.Decision](t, base, "decisions.jsonl") {
		kinds[d.Kind]++
		if d.Window.End.Before(was.Window.End) || d.Window.End.Equal(was.Window.End) && (was.Kind != control.Placement || d.Kind != control.Split) {
			t.Errorf("%s to %s stands behind %s to %s", d.Kind, d.Window.End, was.Kind, was.Window.End)
		}
		was = d
	}
	// Ten minutes of windows of 10 s.
	if kinds[control.Split] != 60 || kinds[control.Placement] != 2 {
		t.Errorf("decided %v, expected 60 of split and 2 of placement", kinds)
	}
}

// splitReport checks what report and summary say.
func splitReport(t *testing.T, base, text string) {
	t.Helper()
	r := readReport(t, base)
	if r.Split == nil || r.Split.Windows != 60 || r.Split.Tables < 4 || r.Split.Changes < 4 || r.Split.Incomplete != 0 {
		t.Fatalf("report %+v", r.Split)
	}
	if x := r.Split.Largest; x == nil || x.From != "web" || x.To != "cart" || x.Off != "us-east" || x.Moved < 0.3 {
		t.Errorf("largest shift %+v, expected calls of web to leave cart at us-east", x)
	}
	for _, l := range r.Split.Links {
		if l.From != "web" || l.FromSite != "us-east" {
			continue
		}
		least := 1.0
		for _, p := range l.Series {
			least = min(least, p.Shares[0].Share)
		}
		if end := l.Shares[0]; end.Site != "us-east" || end.Share < 0.9 || least > 0.1 {
			t.Errorf("us-east keeps at least %v of its calls to cart and %v at the end: %+v", least, end, l)
		}
		if len(l.Calls) != 2 || l.Calls[0].Calls != 1500 || l.Calls[0].ServiceMS < 100 || l.Calls[1].NetworkMS < 62 {
			t.Errorf("recorded calls %+v", l.Calls)
		}
	}
	if !strings.Contains(text, "split    60 windows decided by policy greedy, ") || !strings.Contains(text, "web at us-east → cart, us-east to us-west, LowerDelay") {
		t.Errorf("summary:\n%s", text)
	}
	// Explain counts tables as the report does.
	tables, changes := 0, 0
	for _, scope := range []string{"entry", "web"} {
		var n, others int
		text := must(t, "explain", "split", scope, "--state", filepath.Join(base, "state"))
		if _, counted, ok := strings.Cut(text, "as the bus has them: "); ok {
			if _, err := fmt.Sscanf(counted, "%d, %d of them with other shares", &n, &others); err != nil {
				t.Error(err)
			}
		}
		tables, changes = tables+n, changes+others
	}
	if tables != r.Split.Tables || changes != r.Split.Changes {
		t.Errorf("explain tells of %d tables, %d with other shares, the report of %d and %d", tables, changes, r.Split.Tables, r.Split.Changes)
	}
	page, err := os.ReadFile(filepath.Join(base, "report.html"))
	if err != nil || strings.Count(string(page), "web at us-east → cart: ") != 4 { // titles and alternative texts
		t.Errorf("the page: %v", err)
	}
}

// splitKilled kills a replay at a flush and behind its first answered window: the same
// command goes on and ends with the same, another configuration of split is refused
// by name, and so is none at all.
func splitKilled(t *testing.T, dir, base string) {
	t.Helper()
	for _, at := range []string{"flushed:14", "window:2"} {
		out := t.TempDir()
		if err := process(t, at, callsReplay(t, dir, out)...).Run(); err == nil {
			t.Fatalf("the process was to be killed at %s", at)
		}
		if at == "window:2" {
			for _, text := range []string{splitWorld + "split: {history: 9}\n", unsplit()} {
				other := filepath.Join(dir, "other.yaml")
				writeFile(t, other, text)
				args := callsReplay(t, dir, out)
				args[3] = other
				if _, errs, code := command(t, args...); code != 2 || !strings.Contains(errs, "split was sha256:") || !strings.Contains(errs, "--fresh") {
					t.Errorf("exit code %d\n%s", code, errs)
				}
			}
		}
		must(t, callsReplay(t, dir, out)...)
		same(t, base, out, results...)
	}
}

// splitWithoutWaiting checks that split, which nobody waits for in any case, is decided
// as ever where nobody waits for placement either, whose moves then come when they do.
func splitWithoutWaiting(t *testing.T, dir, base string) {
	t.Helper()
	out := t.TempDir()
	must(t, callsReplay(t, dir, out, "--partitions", "4", "--batch-rows", "100", "--no-wait")...)
	for _, name := range []string{"decisions.jsonl", "commands.jsonl"} {
		of := func(dir string) (lines []string) {
			body, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(body)) {
				if strings.Contains(line, `"kind":"split"`) {
					lines = append(lines, line)
				}
			}
			return lines
		}
		if got, want := of(out), of(base); !slices.Equal(got, want) || len(want) < 4 {
			t.Errorf("%s: %d lines, expected %d, or others", name, len(got), len(want))
		}
	}
	same(t, base, out, "matrices/delay.parquet")
}

// splitUntil checks that windows up to --until are decided as without it.
func splitUntil(t *testing.T, dir, base string) {
	t.Helper()
	half := t.TempDir()
	must(t, callsReplay(t, dir, half, "--until", "2026-03-01T10:59:30Z")...)
	all := bodies[control.Decision](t, base, "decisions.jsonl")
	n := 0
	for _, d := range bodies[control.Decision](t, half, "decisions.jsonl") {
		if d.Kind == control.Split {
			if d.State != all[n].State || !d.Window.End.Equal(all[n].Window.End) {
				t.Errorf("window to %s: state %s, expected %s", d.Window.End, d.State, all[n].State)
			}
			n++
		}
	}
	if n != 27 {
		t.Errorf("%d windows of split were decided, expected 27", n)
	}
}

// splitNothing checks that without components nothing is decided of split, and
// nothing said of it.
func splitNothing(t *testing.T, dir string) {
	t.Helper()
	out, plain := t.TempDir(), filepath.Join(dir, "plain.yaml")
	writeFile(t, plain, unsplit())
	args := callsReplay(t, dir, out)
	args[3] = plain
	if text := must(t, args...); strings.Contains(text, "split  ") {
		t.Errorf("summary:\n%s", text)
	}
	for _, d := range bodies[control.Decision](t, out, "decisions.jsonl") {
		if d.Kind != control.Placement {
			t.Errorf("a decision of %s", d.Kind)
		}
	}
	for _, name := range []string{"report.json", "report.html"} {
		body, err := os.ReadFile(filepath.Join(out, name))
		if err != nil || strings.Contains(strings.ToLower(string(body)), "split") {
			t.Errorf("%s tells of split: %v", name, err)
		}
	}
	if r := readReport(t, out); r.Split != nil || len(r.Windows) != 2 {
		t.Errorf("split %+v, %d windows", r.Split, len(r.Windows))
	}
}
