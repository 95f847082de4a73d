package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"penstock/infra/testserver"
	"penstock/pipeline/demo/load"
	"penstock/pipeline/demo/processes"
)

// sites of a front, in the order of the configuration.
var frontSites = []string{"east", "west", "north"}

// front is three sites with an entry point each, and the process that holds the
// bus, as processes of their own on fixed addresses.
type front struct {
	t        testing.TB
	dir      string
	config   string
	services map[string]string // addresses of services, by site
	urls     map[string]string // of entry points, by site
	bus      string            // address of the bus, HOST:PORT
	lookup   string            // address of the redirector, HOST:PORT
	server   *server           // serve, if it runs
	entries  map[string]*server
}

// frontOptions are what tests change.
type frontOptions struct {
	services   map[string]string // nil: addresses on which nobody listens yet
	entry      string            // more of the section entry, a line each
	more       string            // other sections
	partitions int
	idle       time.Duration // idle_timeout of the bus; 0: the default
}

// newFront finds addresses and writes the configuration; nothing runs yet.
func newFront(t testing.TB, o frontOptions) *front {
	t.Helper()
	n := len(frontSites)
	at, err := processes.Addresses(t.Context(), "127.0.0.1", 2*n+2, rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())))
	if err != nil {
		t.Fatal(err)
	}
	e := &front{t: t, dir: t.TempDir(), services: o.services, urls: map[string]string{}, bus: at[2*n], lookup: at[2*n+1], entries: map[string]*server{}}
	if e.services == nil {
		e.services = map[string]string{}
	}
	var sites strings.Builder
	for i, s := range frontSites {
		e.urls[s] = "http://" + at[i]
		if e.services[s] == "" {
			e.services[s] = at[n+i]
		}
		fmt.Fprintf(&sites, "  - {name: %s, lat: %v, lon: %v, capacity: 1TB/h, url: %q, servers: [%q], store: %q}\n",
			s, places[s][0], places[s][1], e.urls[s], "http://"+e.services[s], "dir:"+e.store(s))
	}
	writeFile(t, filepath.Join(e.dir, "peer.key"), "a secret of entry points that know each other")
	e.config = filepath.Join(e.dir, "penstock.yaml")
	writeFile(t, e.config, fmt.Sprintf(`
sites:
%sbus: {partitions: %d, sync: interval, flush: 100ms, idle_timeout: %s}
entry:
  user: [{header: X-User}]
  peer_key_file: %q
%s%sredirector: {listen: %q, rate: 0}
privacy: {user_key: "only for this test"}
telemetry: {listen: "127.0.0.1:0"}
`, sites.String(), max(o.partitions, 2), cmp.Or(o.idle, 3*time.Second), filepath.Join(e.dir, "peer.key"), o.entry, o.more, e.lookup))
	return e
}

func (e *front) store(site string) string { return filepath.Join(e.dir, "stores", site) }

// nats is the URL of the bus.
func (e *front) nats() string { return "nats://" + e.bus }

// serve starts the process that holds the bus.
func (e *front) serve() {
	e.t.Helper()
	e.server = serve(e.t, "--config", e.config, "--state", filepath.Join(e.dir, "state"), "--listen", e.bus, "--name", "core")
}

// entryArgs is how the entry point of a site is started.
func (e *front) entryArgs(site string) []string {
	return []string{
		"entry", "--config", e.config, "--nats", e.nats(), "--site", site, "--name", "entry-" + site,
		"--listen", strings.TrimPrefix(e.urls[site], "http://"), "--state", filepath.Join(e.dir, "entry-"+site),
	}
}

var standing = regexp.MustCompile(`(?m)^(?:entry point of \S+|redirector) at (\S+?)(?:; metrics and health at (\S+))?\n`)

// part starts a part of the data plane and waits until it says where it answers.
func (e *front) part(args ...string) *server {
	e.t.Helper()
	s := start(e.t, args...)
	eventually(e.t, args[0]+" to listen", func() bool {
		select {
		case <-s.ended:
			e.t.Fatalf("it has ended: %s", s.errs.String())
		default:
		}
		m := standing.FindStringSubmatch(s.out.String())
		if m != nil {
			s.telemetry = m[2]
		}
		return m != nil
	})
	return s
}

// enter starts the entry points of sites and waits until they are ready.
func (e *front) enter(sites ...string) {
	e.t.Helper()
	for _, site := range sites {
		e.entries[site] = e.part(e.entryArgs(site)...)
	}
	for _, site := range sites {
		e.entries[site].awaitReady(true)
	}
}

// published is how many rows an entry point has made so far, by what became of
// them.
func (s *server) published(outcome string) int {
	s.t.Helper()
	return s.count("penstock_publisher_rows_total", fmt.Sprintf("outcome=%q", outcome))
}

// callers are closed-loop clients of the entry points of a front: each sends its
// next request when the last one is answered and its time has come.
type callers struct {
	e    *front
	stop chan struct{}
	done sync.WaitGroup

	mu       sync.Mutex
	answered []answered
	failures []failure
	cut      int // requests that were sent and got no answer on that connection
}

// answered is a request that was answered as it should be.
type answered struct {
	site     string
	from, to int64 // µs: between them the entry point finished with it
}

// failure is a request that was not.
type failure struct {
	site string
	at   int64 // µs, when the caller knew
	err  error
}

// callersEach is how many callers a site has.
const callersEach = 8

// call starts callers that together send rate requests a second, spread over the
// sites. Each has a connection of its own; one in four requests is a write.
func (e *front) call(rate float64, sites ...string) *callers {
	c := &callers{e: e, stop: make(chan struct{})}
	gap := time.Duration(float64(callersEach*len(sites)) / rate * float64(time.Second))
	for i, site := range sites {
		for j := range callersEach {
			n := i*callersEach + j
			c.done.Go(func() { c.caller(site, n, gap) })
		}
	}
	e.t.Cleanup(c.end)
	return c
}

// end lets the last requests be answered. It may be called twice.
func (c *callers) end() {
	c.mu.Lock()
	select {
	case <-c.stop:
	default:
		close(c.stop)
	}
	c.mu.Unlock()
	c.done.Wait()
}

// callTimeout is when a caller gives a request up.
const callTimeout = 20 * time.Second

func (c *callers) caller(site string, n int, gap time.Duration) {
	transport := &http.Transport{MaxIdleConnsPerHost: 1, DisableCompression: true}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: callTimeout}
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	due := time.Now().Add(time.Duration(rng.Int64N(int64(gap))))
	for i := 0; ; i++ {
		select {
		case <-c.stop:
			return
		case <-time.After(time.Until(due)):
		}
		if due = due.Add(gap); time.Since(due) > time.Second {
			due = time.Now() // The machine is slower than that: what was missed is not sent in a rush.
		}
		a := answered{site: site, from: time.Now().UnixMicro()}
		err := c.ask(client, site, fmt.Sprintf("owner-%d", rng.IntN(500)), fmt.Sprintf("user-%d", n), i%4 == 3)
		a.to = time.Now().UnixMicro()
		c.mu.Lock()
		if err == nil {
			c.answered = append(c.answered, a)
		} else {
			c.failures = append(c.failures, failure{site, a.to, err})
		}
		c.mu.Unlock()
	}
}

func (c *callers) ask(client *http.Client, site, owner, user string, write bool) error {
	method, body := http.MethodGet, io.Reader(nil)
	if write {
		method, body = http.MethodPost, strings.NewReader("a note")
	}
	r, err := http.NewRequestWithContext(c.e.t.Context(), method, c.e.urls[site]+"/u/"+owner+"/notes", body)
	if err != nil {
		return err
	}
	r.Header.Set("X-User", user)
	sent := 0
	defer func() { c.count(sent) }()
	r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{WroteRequest: func(i httptrace.WroteRequestInfo) {
		if i.Err == nil {
			sent++
		}
	}}))
	resp, err := client.Do(r)
	if err != nil {
		return err
	}
	sent--
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%d %.200s", resp.StatusCode, b)
	}
	return err
}

func (c *callers) count(cut int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut += cut
}

// none fails the test if a request has failed that allowed does not excuse.
func (c *callers) none(allowed func(failure) bool) {
	c.e.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	bad := 0
	for _, f := range c.failures {
		if allowed != nil && allowed(f) {
			continue
		}
		if bad++; bad <= 5 {
			c.e.t.Errorf("%s at %s: %v", f.site, time.UnixMicro(f.at).Format(time.StampMicro), f.err)
		}
	}
	if bad > 0 {
		c.e.t.Errorf("%d requests failed, %d were answered", bad, len(c.answered))
	}
}

// latencies are those of what was sent in an interval.
func (c *callers) latencies(from, to time.Time) (l load.Latencies) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range c.answered {
		if a.from >= from.UnixMicro() && a.from < to.UnixMicro() {
			l = append(l, time.Duration(a.to-a.from)*time.Microsecond)
		}
	}
	slices.Sort(l)
	return l
}

// closed reports whether the connection ended under the request: it was idle when
// its other end closed it, and the request was on the way.
func (f failure) closed() bool {
	return errors.Is(f.err, io.EOF) || errors.Is(f.err, syscall.ECONNRESET) || errors.Is(f.err, syscall.EPIPE)
}

// refused reports whether a request failed because nobody listened.
func (f failure) refused() bool { return errors.Is(f.err, syscall.ECONNREFUSED) }

// answerer is a service that answers everything with 1 KB, in this process. It
// returns its address.
func answerer(t testing.TB) string {
	t.Helper()
	page := []byte(strings.Repeat("k", 1024))
	address := testserver.FreeAddress(t)
	server := &http.Server{Addr: address, ReadHeaderTimeout: patience, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = w.Write(page)
	})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("backend: %v", err)
		}
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-ended
	})
	return address
}

// answerers is one service for all sites.
func answerers(t testing.TB) map[string]string {
	t.Helper()
	b, out := answerer(t), map[string]string{}
	for _, s := range frontSites {
		out[s] = b
	}
	return out
}
