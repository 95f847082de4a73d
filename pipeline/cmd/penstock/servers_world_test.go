package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/pipeline/demo/processes"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// poolSettings are what tests change in a pool's configuration.
type poolSettings struct {
	servers, entries int
	section          string // servers
	decided          bool   // serve decides; else the test does
}

// poolWorld is a site with a pool of servers, and the processes in front of it.
type poolWorld struct {
	*machines
	dir, config, plain string
	bus                string   // HOST:PORT
	points             []string // HOST:PORT of entry points
	server             *server
	entries            []*server
	client             *bus.Client
}

const poolSite = "us-east"

// newPool finds addresses and writes the configuration; nothing runs yet. In the section
// servers {hook} is the command line of the hook.
func newPool(t testing.TB, o poolSettings) *poolWorld {
	t.Helper()
	at, err := processes.Addresses(t.Context(), "127.0.0.1", o.servers+o.entries+1, rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	w := &poolWorld{
		machines: newMachines(t, at[:o.servers]), points: at[o.servers : o.servers+o.entries], bus: at[len(at)-1], dir: dir,
		config: filepath.Join(dir, "penstock.yaml"), plain: filepath.Join(dir, "plain.yaml"), entries: make([]*server, o.entries),
	}
	urls := make([]string, o.servers)
	for i, name := range w.names {
		urls[i] = fmt.Sprintf("%q", "http://"+name)
	}
	text := fmt.Sprintf(`
sites:
  - {name: %s, lat: 37.4, lon: -79.8, capacity: 1TB/h, url: %q, servers: [%s], store: %q}
bus: {partitions: 1, sync: interval, flush: 100ms, idle_timeout: 3s}
privacy: {user_key: "only for this test"}
telemetry: {listen: "127.0.0.1:0"}
`, poolSite, "http://"+w.points[0], strings.Join(urls, ", "), "dir:"+filepath.Join(dir, "store"))
	writeFile(t, w.config, text+strings.ReplaceAll(o.section, "{hook}", w.hook()))
	if o.decided {
		w.plain = w.config
	} else {
		writeFile(t, w.plain, text)
	}
	return w
}

func (w *poolWorld) nats() string { return "nats://" + w.bus }

// serve starts the process that holds the bus.
func (w *poolWorld) serve() {
	w.t.Helper()
	w.server = serve(w.t, "--config", w.plain, "--state", filepath.Join(w.dir, "state"), "--listen", w.bus, "--name", "core")
}

// enter starts entry points and waits until they are ready.
func (w *poolWorld) enter(list ...int) {
	w.t.Helper()
	for _, i := range list {
		name := fmt.Sprintf("entry-%d", i)
		w.entries[i] = start(w.t, "entry", "--config", w.config, "--nats", w.nats(), "--site", poolSite, "--name", name,
			"--listen", w.points[i], "--state", filepath.Join(w.dir, name))
	}
	for _, i := range list {
		w.entries[i].await(standing)
		w.entries[i].awaitReady(true)
	}
}

// switching starts a server switch and waits until it is ready. It may have to wait for
// another to go.
func (w *poolWorld) switching(name string) *server {
	w.t.Helper()
	s := start(w.t, "serverswitch", "--config", w.config, "--nats", w.nats(), "--name", name, "--state", filepath.Join(w.dir, name))
	s.await(switching)
	return s
}

// await waits for what a process says of itself, where its telemetry is the second word.
func (s *server) await(said interface{ FindStringSubmatch(string) []string }) {
	s.t.Helper()
	eventually(s.t, "a process to stand", func() bool {
		if s.gone() {
			s.t.Fatalf("it has ended: %s", s.errs.String())
		}
		m := said.FindStringSubmatch(s.out.String())
		if m != nil {
			s.telemetry = m[len(m)-1]
		}
		return m != nil
	})
}

// put sends a table, as an operator's or another decider's, and waits until all
// dispatchers and the switch have brought it about.
func (w *poolWorld) put(epoch uint64, on []int, dispatchers int) {
	w.t.Helper()
	if w.client == nil {
		w.client = connect(w.t, w.nats(), "")
	}
	end := time.Date(2026, 3, 1, 12, 0, int(epoch), 0, time.UTC)
	table := &control.ServersTable{ZoneWeights: map[string]float64{poolSite: 1}}
	is := map[int]bool{}
	for _, i := range on {
		is[i] = true
	}
	for i, name := range w.names {
		if is[i] {
			table.On = append(table.On, name)
		} else {
			table.Off = append(table.Off, name)
		}
	}
	body, err := control.Encode(&control.Command{
		Version: 1, Kind: control.Servers, Scope: poolSite, Epoch: epoch, Mode: control.Act, TTL: "10m",
		Window: control.Window{Start: end.Add(-time.Second), End: end}, Reason: control.Reason{Code: "PenaltyAboveCost"}, Servers: table,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	outcomes, err := w.client.Read(w.t.Context(), subject.OutcomesStream, []string{subject.OutcomesOf("servers")}, 1)
	if err != nil {
		w.t.Fatal(err)
	}
	defer outcomes.Close()
	if _, err := w.client.Publish(w.t.Context(), bus.Msg{Subject: subject.Commands("servers", poolSite), Data: body}); err != nil {
		w.t.Fatal(err)
	}
	answered := map[string]string{}
	defer func() {
		if w.t.Failed() {
			w.t.Logf("epoch %d was answered by %v", epoch, answered)
		}
	}()
	for len(answered) < dispatchers+1 {
		o, err := control.DecodeOutcome(bustest.Take(w.t, outcomes, 1)[0].Data)
		if err != nil {
			w.t.Fatal(err)
		}
		if o.Epoch == epoch {
			if o.Status != control.Done {
				w.t.Fatalf("epoch %d: %+v", epoch, o)
			}
			answered[o.Target+" "+o.By] = string(o.Status)
		}
	}
}

// visitors are clients that ask the entry points of a pool without a pause but their own.
type visitors struct {
	t     testing.TB
	Pause atomic.Int64 // between two requests of a client, ns
	Few   atomic.Int64 // so many of the clients rest
	stop  chan struct{}
	all   sync.WaitGroup

	Answered atomic.Int64

	mu     sync.Mutex
	points []string
	dead   map[string]bool // these were killed
	failed []unanswered
	lost   int // at a killed entry point
}

// unanswered is a request that was not answered with 200.
type unanswered struct {
	At     time.Time
	Took   time.Duration
	Point  string
	Method string
	Why    string
}

// visit starts clients, which begin at points in turn. Every fourth request may not be sent
// twice.
func visit(t testing.TB, clients int, pause time.Duration, points ...string) *visitors {
	v := &visitors{t: t, stop: make(chan struct{}), points: points, dead: map[string]bool{}}
	v.Pause.Store(int64(pause))
	for i := range clients {
		v.all.Go(func() { v.client(i) })
	}
	t.Cleanup(v.end)
	return v
}

func (v *visitors) end() {
	select {
	case <-v.stop:
	default:
		close(v.stop)
	}
	v.all.Wait()
}

// killed has clients go to other entry points, and says that what was asked of one that was
// killed has no answer. joined adds one.
func (v *visitors) killed(point string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.dead[point] = true
}

func (v *visitors) joined(point string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.points = append(v.points, point)
}

// point is where client i asks for the nth time.
func (v *visitors) point(i int) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	for k := range v.points {
		if p := v.points[(i+k)%len(v.points)]; !v.dead[p] {
			return p
		}
	}
	return ""
}

func (v *visitors) client(i int) {
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	c := &http.Client{Transport: transport, Timeout: 30 * time.Second}
	for n := i; ; n++ {
		pause := time.Duration(v.Pause.Load())
		rests := int64(i) < v.Few.Load()
		if rests {
			pause = 20 * time.Millisecond
		}
		select {
		case <-v.stop:
			return
		case <-time.After(pause):
		}
		if !rests {
			v.ask(c, v.point(i), n)
		}
	}
}

func (v *visitors) ask(c *http.Client, point string, n int) {
	method := http.MethodGet
	var body io.Reader
	if n%4 == 3 {
		method, body = http.MethodPost, strings.NewReader("something that is to happen once")
	}
	req, err := http.NewRequest(method, fmt.Sprintf("http://%s/page/%d", point, n%5), body) // It is to be answered, whatever happens.
	if err != nil {
		v.t.Error(err)
		return
	}
	began := time.Now()
	res, err := c.Do(req)
	if err == nil {
		var b []byte
		b, err = io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err == nil && res.StatusCode != http.StatusOK {
			err = errors.New(res.Status + ": " + strings.TrimSpace(string(b)))
		}
	}
	if err == nil {
		v.Answered.Add(1)
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.dead[point] {
		v.lost++
		return
	}
	v.failed = append(v.failed, unanswered{At: began, Took: time.Since(began), Point: point, Method: method, Why: err.Error()})
}

// failures are those so far.
func (v *visitors) failures() []unanswered {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]unanswered(nil), v.failed...)
}

// neverAbove checks that no server ever had more requests than it may. That is promised
// while entry points reach the bus: one that is cut off alone keeps its places, and the
// others take it for dead. On a machine on which the bus stands still it is only told.
func (w *poolWorld) neverAbove(most int64) {
	w.t.Helper()
	cut := false
	for _, e := range w.entries {
		cut = cut || e != nil && strings.Contains(e.errs.String(), "can't be shared out")
	}
	for i, b := range w.boards {
		w.t.Logf("server %d: %d requests begun, %d ended, %d broken off, at most %d at a time", i, b.Begun.Load(), b.Ended.Load(), b.Broken.Load(), b.Most.Load())
		switch {
		case b.Most.Load() <= most:
		case cut:
			w.t.Logf("server %d had %d requests at a time, %d are the most, but an entry point did not reach the bus", i, b.Most.Load(), most)
		default:
			w.t.Errorf("server %d had %d requests at a time, %d are the most", i, b.Most.Load(), most)
		}
	}
}
