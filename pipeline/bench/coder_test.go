package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
)

const (
	// objectRounds is how many interleaved pairs each ratio is of.
	objectRounds = 5
	// objectTurn is how long a server has its turn at least; each client does
	// objectLeast things at least.
	objectTurn  = time.Second
	objectLeast = 2
	// objectKeys is how many bytes of objects one client overwrites and reads.
	objectKeys = 16 << 20
)

// objectLoad is what clients do in a turn.
type objectLoad struct {
	op      string
	size    int
	clients int
}

var objectSizes = []struct {
	name    string
	bytes   int
	clients []int
}{{"64 KB", 64 << 10, []int{1, 8}}, {"3 MB", 3 << 20, []int{1, 8}}, {"64 MB", 64 << 20, []int{1, 4}}}

// objectTurns are those of one server.
type objectTurns struct {
	delays    []time.Duration // of all turns
	perSecond []float64       // of each turn
	cpu       []float64       // seconds for one object, of each turn
}

// BenchmarkObjects is a coder over a folder beside versitygw over one on the same file
// system: processes of their own that take turns, with the same clients (minio-go, each
// one thing at a time, the payload not signed).
//
// They do not promise the same. A coder answers a put when the blob, its folder and the
// catalog's entry are on disk, and then also writes as much parity; versitygw has no
// option for that: it answers when the file has its name, and what the machine's memory
// holds is lost with the power. So it is measured a second time with a client that waits
// until file and folder are on disk. Nobody pays for what another left to write: all is
// written between turns. The processor time of a coder is that of all it does until it
// has nothing left to do.
//
// The coder stands twice: by tofec, with the table of before anything was measured, and
// with a copy of everything, which is what a disk of one's own asks for.
func BenchmarkObjects(b *testing.B) {
	servers := startStorages(b)
	for _, size := range objectSizes {
		b.Run(strings.ReplaceAll(size.name, " ", ""), func(b *testing.B) {
			content := noise(size.bytes)
			for range b.N {
				tab := newSheet(fmt.Sprintf("Objects of %s through S3, %d turns each of at least %v; ratios are of versitygw's, least and most of a pair", size.name, objectRounds, objectTurn),
					"what", "clients", "server", "of them", "objects/s", "p50 ms", "p99 ms", "x objects/s", "CPU-ms an object", "x")
				for _, clients := range size.clients {
					for _, op := range []string{"put", "get"} {
						compared(b, tab, servers, objectLoad{op, size.bytes, clients}, size.name, content)
					}
				}
				results.sheet(tab)
			}
			b.ReportMetric(0, "ns/op") // of no meaning beside the others
		})
	}
}

// compared measures one load at all servers, in turns.
func compared(b *testing.B, tab *sheet, servers []*storage, l objectLoad, size string, content []byte) {
	all := make([]objectTurns, len(servers))
	for i := -1; i < objectRounds; i++ { // the first makes connections and objects
		for j := range servers {
			if i%2 == 1 {
				j = len(servers) - 1 - j
			}
			if s := servers[j]; s.synced == "" || l.op == "put" {
				turnOf(b, s, l, content, objectTurn, objectLeast, &all[j])
				if i < 0 {
					all[j] = objectTurns{}
				}
			}
		}
	}
	theirs := &all[len(all)-2]
	for j := range all {
		t := &all[j]
		if len(t.perSecond) == 0 {
			continue
		}
		rate, low, high := ratios(t.perSecond, theirs.perSecond)
		used, _, _ := ratios(t.cpu, theirs.cpu)
		slices.Sort(t.delays)
		p50, p99 := quantile(t.delays, 0.5), quantile(t.delays, 0.99)
		b.ReportMetric(rate, fmt.Sprintf("%s-%d-%s-of-versitygw", l.op, l.clients, strings.NewReplacer(" ", "-", ",", "").Replace(servers[j].name)))
		tab.row(l.op+" "+size, fmt.Sprint(l.clients), servers[j].name, fmt.Sprint(len(t.delays)), fmt.Sprintf("%.1f", middle(t.perSecond)),
			fmt.Sprintf("%.2f", p50), fmt.Sprintf("%.2f", p99), fmt.Sprintf("%.2f (%.2f–%.2f)", rate, low, high),
			fmt.Sprintf("%.2f", 1e3*middle(t.cpu)), fmt.Sprintf("%.2f", used))
	}
}

// startStorages starts the servers, versitygw's two last.
func startStorages(t testing.TB) []*storage {
	t.Helper()
	nats := listening(t, processCommand(t, "bus", "-", "-"))
	plain, synced := startGateway(t)
	return []*storage{
		startCoder(t, "coder, tofec", "policy: tofec", nats), startCoder(t, "coder, (1,1)", "policy: static, code: {n: 1, k: 1}", nats),
		plain, synced,
	}
}

// turnOf gives a server its turn.
func turnOf(t testing.TB, s *storage, l objectLoad, content []byte, least time.Duration, each int, to *objectTurns) {
	t.Helper()
	// Without this the first to sync would write what all others left in memory.
	if out, err := exec.Command("sync").CombinedOutput(); err != nil {
		t.Fatalf("sync: %v: %s", err, out)
	}
	before, began := processorTime(t, s.pid), time.Now()
	took := make([][]time.Duration, l.clients)
	var all sync.WaitGroup
	for c := range l.clients {
		all.Go(func() {
			var in bytes.Reader
			for i := 0; i < each || time.Since(began) < least; i++ {
				key := fmt.Sprintf("%d-%d-%d", l.size, c, i%max(1, objectKeys/l.size))
				start := time.Now()
				if err := s.do(t.Context(), l, key, content, &in); err != nil {
					t.Errorf("%s: %s %s: %v", s.name, l.op, key, err)
					return
				}
				took[c] = append(took[c], time.Since(start))
			}
		})
	}
	all.Wait()
	wall := time.Since(began)
	s.rest(t)
	done := slices.Concat(took...)
	if t.Failed() || len(done) == 0 {
		t.FailNow()
	}
	to.delays = append(to.delays, done...)
	to.perSecond = append(to.perSecond, float64(len(done))/wall.Seconds())
	to.cpu = append(to.cpu, (processorTime(t, s.pid)-before).Seconds()/float64(len(done)))
}

// do does one thing of a load. What is read and isn't there is put first, which takes
// place in the turn that isn't counted.
func (s *storage) do(ctx context.Context, l objectLoad, key string, content []byte, in *bytes.Reader) error {
	if l.op == "put" {
		in.Reset(content)
		return s.put(ctx, key, content, in)
	}
	err := s.get(ctx, key, int64(l.size), io.Discard)
	if err == nil || minio.ToErrorResponse(err).Code != "NoSuchKey" {
		return err
	}
	in.Reset(content)
	return s.put(ctx, key, content, in)
}

func noise(size int) []byte {
	r := rand.NewChaCha8([32]byte{1})
	b := make([]byte, size)
	_, _ = r.Read(b) // never fails
	return b
}

// ratios is the geometric mean of the ratios of pairs, the least and the greatest.
func ratios(a, b []float64) (mean, low, high float64) {
	low = math.Inf(1)
	for i := range a {
		r := a[i] / b[i]
		mean, low, high = mean+math.Log(r)/float64(len(a)), min(low, r), max(high, r)
	}
	return math.Exp(mean), low, high
}

func middle(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

// quantile of sorted durations, in milliseconds.
func quantile(sorted []time.Duration, q float64) float64 {
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))].Seconds() * 1e3
}

// TestTheObjectsBenchmarkWorks gives each server one short turn, and reads back what was
// put.
func TestTheObjectsBenchmarkWorks(t *testing.T) {
	content := noise(64 << 10)
	for _, s := range startStorages(t) {
		var turns objectTurns
		for _, op := range []string{"put", "get"} {
			turnOf(t, s, objectLoad{op, len(content), 2}, content, 0, 3, &turns)
		}
		if len(turns.delays) != 12 || len(turns.perSecond) != 2 {
			t.Errorf("%s: %+v", s.name, turns)
		}
		var got bytes.Buffer
		if err := s.get(t.Context(), fmt.Sprintf("%d-1-2", len(content)), int64(len(content)), &got); err != nil || !bytes.Equal(got.Bytes(), content) {
			t.Errorf("%s: other bytes: %v", s.name, err)
		}
	}
}

func TestRatios(t *testing.T) {
	if mean, low, high := ratios([]float64{1, 4}, []float64{2, 2}); math.Abs(mean-1) > 1e-9 || low != 0.5 || high != 2 {
		t.Error(mean, low, high)
	}
	d := []time.Duration{time.Millisecond, 2 * time.Millisecond, 3 * time.Millisecond}
	if quantile(d, 0.5) != 2 || quantile(d, 0.99) != 3 || middle([]float64{3, 1, 2}) != 2 {
		t.Error(quantile(d, 0.5), quantile(d, 0.99))
	}
}
