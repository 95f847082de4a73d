package bench

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"penstock/consumers/redirector/directory"
	"penstock/infra/bus/bustest"
	"penstock/infra/testserver"
	"penstock/pipeline/config"
	"penstock/pipeline/topology"
)

// directoryOwners is DIRECTORY_OWNERS, a million by default.
func directoryOwners(t testing.TB) int {
	t.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv("DIRECTORY_OWNERS"), "1000000"))
	if err != nil || n <= 0 {
		t.Fatalf("DIRECTORY_OWNERS: %v", err)
	}
	return n
}

// redirectorConfig has no limit of lookups, and windows that don't end soon.
const redirectorConfig = `sites:
  - {name: here, lat: 37.4, lon: -79.8, capacity: 1TB/h, url: "http://127.0.0.1:1", store: "dir:%[1]s/here"}
  - {name: there, lat: 50.1, lon: 8.6, capacity: 1TB/h, url: "http://127.0.0.2:1", store: "dir:%[1]s/there"}
redirector: {listen: "127.0.0.1:0", rate: 0}
telemetry: {listen: ""}
`

// serveRedirector is penstock redirector with what a snapshot in a folder says.
func serveRedirector(ctx context.Context, t *testing.T, folder, nats string) {
	c, err := config.Read("redirector.yaml", fmt.Appendf(nil, redirectorConfig, t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	r := topology.Redirector{Alone: topology.Alone{
		Config: c, NATS: nats, Name: "bench", State: folder, Logger: zerolog.New(os.Stderr).Level(zerolog.ErrorLevel),
		Started: func(address, _ string) { fmt.Printf("address %s\n", address) },
	}}
	if err := r.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

// redirectorUsers is how many connections ask at once.
const redirectorUsers = 32

// BenchmarkRedirector is the redirector as a process of its own, with
// DIRECTORY_OWNERS owners (a million by default, 10 million in make bench) as last
// known and no bus, asked by wrk for a random owner each time: as many as it can,
// then by one client alone, whose delays are not those of a queue.
func BenchmarkRedirector(b *testing.B) {
	n := directoryOwners(b)
	address, pid := startRedirector(b, n)
	url := "http://" + address + "/r/user-NUMBER/notes"
	var busy, alone []turn
	for range b.N {
		busy, alone = nil, nil
		for range repeats {
			busy = append(busy, askedFor(b, pid, testserver.Load{URL: url, Numbers: n, Connections: redirectorUsers, Duration: 3 * time.Second}))
			alone = append(alone, askedFor(b, pid, testserver.Load{URL: url, Numbers: n, Connections: 1, Duration: 2 * time.Second}))
		}
	}
	owners := fmt.Sprintf("%.3g million owners", float64(n)/1e6)
	m := &proxy{turns: busy}
	one := &proxy{turns: alone}
	rss := resident(b, pid)
	b.ReportMetric(m.median(perSecond), "lookups/s")
	b.ReportMetric(m.median(p99), "p99-ms")
	b.ReportMetric(rss/float64(n), "resident-B/owner")
	results.add(line{
		name: "redirector, " + owners, figure: m.median(perSecond), unit: "lookups/s",
		note: fmt.Sprintf("%d connections: p50 %.2f ms, p99 %.2f ms; %.2f CPU-s per 100,000", redirectorUsers, m.median(p50), m.median(p99), m.cpu()),
	})
	results.add(line{
		name: "  p99 of one client alone", figure: one.median(p99), unit: "ms", note: fmt.Sprintf("p50 %.2f ms", one.median(p50)),
	})
	results.add(line{
		name: "  memory of the process", figure: rss / float64(n), unit: "B an owner", least: 100, lower: true, note: fmt.Sprintf("%.0f MB resident", rss/1e6),
	})
}

func TestTheRedirectorBenchmarkWorks(t *testing.T) {
	const n = 1000
	address, pid := startRedirector(t, n)
	got := askedFor(t, pid, testserver.Load{URL: "http://" + address + "/r/user-NUMBER/notes", Numbers: n, Connections: 4, Duration: time.Second})
	if got.cpu <= 0 || resident(t, pid) < 1e6 {
		t.Errorf("%v of processor, %.0f bytes of memory", got.cpu, resident(t, pid))
	}
}

// askedFor is one turn of wrk.
func askedFor(t testing.TB, pid int, l testserver.Load) turn {
	t.Helper()
	before := processorTime(t, pid)
	got := testserver.Wrk(t, l)
	if got.Failed > 0 || got.Requests == 0 {
		t.Fatalf("%d requests failed of %d", got.Failed, got.Requests)
	}
	return turn{got, processorTime(t, pid) - before}
}

// startRedirector starts a redirector that knows n owners and makes sure of it.
func startRedirector(t testing.TB, n int) (address string, pid int) {
	t.Helper()
	folder := t.TempDir()
	writeSnapshot(t, filepath.Join(folder, "locations.snapshot"), n)
	away := "nats://" + testserver.FreeAddress(t) // where nobody answers
	cmd := processCommand(t, "redirector", folder, away)
	address, pid = listening(t, cmd), cmd.Process.Pid
	for owner, status := range map[int]int{0: 200, n - 1: 200, n: 404} {
		if got := statusOf(t, fmt.Sprintf("http://%s/v1/locations/user-%d", address, owner)); got != status {
			t.Fatalf("of %d owners, number %d: %d, expected %d", n, owner, got, status)
		}
	}
	return address, pid
}

// resident is how much memory a process has, in bytes, as its system says.
func resident(t testing.TB, pid int) float64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(b, []byte("\nVmRSS:"))
	fields := bytes.Fields(rest)
	if len(fields) == 0 {
		t.Fatalf("no VmRSS in %q", b)
	}
	kb, err := strconv.ParseFloat(string(fields[0]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return kb * 1024
}

// BenchmarkDirectory looks random owners up in the memory of a process.
func BenchmarkDirectory(b *testing.B) {
	n := directoryOwners(b)
	file := filepath.Join(b.TempDir(), "locations.snapshot")
	writeSnapshot(b, file, n)
	client := bustest.Client(b, bustest.Start(b))
	before := heapBytes()
	began := time.Now()
	d, err := directory.New(directory.Options{Client: client, Sites: []string{"here", "there"}, Snapshot: file})
	if err != nil {
		b.Fatal(err)
	}
	took := time.Since(began)
	memory := heapBytes() - before
	ids := make([]string, 1<<20)
	for i := range ids {
		ids[i] = fmt.Sprintf("user-%d", i*7919%n)
	}
	var rates []took2
	for range b.N {
		rates = nil
		for range repeats {
			rates = append(rates, took2{locate(b, d, ids, 1), locate(b, d, ids, 2)})
		}
	}
	m, _ := median(rates, func(t took2) float64 { return perCore(t.one) })
	single := singleLookups(d, ids)
	b.ReportMetric(perCore(m.one), "lookups/s")
	results.add(line{
		name: fmt.Sprintf("directory, %.3g million owners, a core", float64(n)/1e6), figure: perCore(m.one), unit: "lookups/s",
		note: fmt.Sprintf("%.0f ns a lookup; each of two goroutines %s; one by one p50 %v, p99 %v with the clock's own time; loaded in %.1f s",
			1e9/perCore(m.one), figure(perCore(m.two), "lookups/s"), single[len(single)/2], single[len(single)*99/100], took.Seconds()),
	})
	results.add(line{name: "  its memory", figure: memory / float64(n), unit: "B an owner", least: 100, lower: true})
	runtime.KeepAlive(d)
}

// took2 is the same by one goroutine and by two.
type took2 struct{ one, two took }

func heapBytes() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// locate looks two million owners up by so many goroutines.
func locate(t testing.TB, d *directory.Directory, ids []string, goroutines int) took {
	const lookups = 2 << 20
	return measure(lookups, func() {
		var all sync.WaitGroup
		for g := range goroutines {
			all.Go(func() {
				for i := range lookups / goroutines {
					if _, _, known := d.Locate(ids[(i+g*77777)&(len(ids)-1)]); !known {
						t.Error("an owner is missing")
						return
					}
				}
			})
		}
		all.Wait()
	})
}

// singleLookups times 100,000 lookups one by one, and sorts them.
func singleLookups(d *directory.Directory, ids []string) []time.Duration {
	took := make([]time.Duration, 100_000)
	for i := range took {
		began := time.Now()
		d.Locate(ids[i])
		took[i] = time.Since(began)
	}
	slices.Sort(took)
	return took
}
