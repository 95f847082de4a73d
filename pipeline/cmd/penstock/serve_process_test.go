package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait for another process.
const patience = 40 * time.Second

// lines is what a process has written so far.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// server is `penstock serve` as a process of its own.
type server struct {
	t         testing.TB
	cmd       *exec.Cmd
	out, errs lines
	bus       string // address, empty if it is open to nobody
	telemetry string
	ended     chan struct{} // closed once the process has
}

// launch starts the process and does not wait for it.
func launch(t testing.TB, args ...string) *server {
	t.Helper()
	return start(t, append([]string{"serve"}, args...)...)
}

// start starts any verb as a process of its own.
func start(t testing.TB, args ...string) *server {
	t.Helper()
	return startDoomed(t, "", args...)
}

// startDoomed starts a process that kills itself at a point ("point:n").
func startDoomed(t testing.TB, kill string, args ...string) *server {
	t.Helper()
	s := &server{t: t, cmd: process(t, kill, args...), ended: make(chan struct{})}
	s.cmd.Stdout, s.cmd.Stderr = &s.out, &s.errs
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = s.cmd.Wait() // its state has the code
		close(s.ended)
	}()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill() // it may have ended
		<-s.ended
		if t.Failed() {
			t.Logf("%s:\n%s%s", strings.Join(args, " "), s.out.String(), s.errs.String())
		}
	})
	return s
}

var serving = regexp.MustCompile(`(?m)^serving [^;\n]*(?:; bus at (\S+))?(?:; metrics and health at (\S+))?\n`)

// serve starts the process and waits until it is ready.
func serve(t testing.TB, args ...string) *server {
	t.Helper()
	s := launch(t, args...)
	eventually(t, "the process to serve", func() bool {
		select {
		case <-s.ended:
			t.Fatalf("it has ended: %s", s.errs.String())
		default:
		}
		m := serving.FindStringSubmatch(s.out.String())
		if m != nil {
			s.bus, s.telemetry = m[1], m[2]
		}
		return m != nil
	})
	s.awaitReady(true)
	return s
}

// eventually waits for what other processes do.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited %s in vain for %s", patience, what)
		}
	}
}

func (s *server) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// code waits for the end of the process and returns its exit code.
func (s *server) code() int {
	s.t.Helper()
	select {
	case <-s.ended:
	case <-time.After(patience):
		s.t.Fatalf("the process has not ended after %s", patience)
	}
	return s.cmd.ProcessState.ExitCode()
}

// stop ends the process as an operator does.
func (s *server) stop() {
	s.t.Helper()
	s.signal(syscall.SIGTERM)
	if c := s.code(); c != 0 {
		s.t.Fatalf("exit code %d after SIGTERM: %s", c, s.errs.String())
	}
}

// kill ends the process as a crash does.
func (s *server) kill() {
	s.t.Helper()
	s.signal(syscall.SIGKILL)
	s.code()
}

// get asks the telemetry server; the code is 0 if it does not answer.
func (s *server) get(path string) (code int, body string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.telemetry+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	client := http.Client{Timeout: 5 * time.Second}
	res, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err.Error()
	}
	return res.StatusCode, string(b)
}

// awaitReady waits until /readyz says so, or the contrary.
func (s *server) awaitReady(want bool) (body string) {
	s.t.Helper()
	defer func() {
		if s.t.Failed() {
			s.t.Logf("last said: %s", body)
		}
	}()
	eventually(s.t, fmt.Sprintf("ready = %v", want), func() bool {
		var code int
		code, body = s.get("/readyz")
		var said struct{ Ready bool }
		_ = json.Unmarshal([]byte(body), &said) // No answer is not the one that is waited for.
		return code == map[bool]int{true: http.StatusOK, false: http.StatusServiceUnavailable}[want] && said.Ready == want
	})
	return body
}

// metric adds up the samples of a metric that have all of the labels, written
// like group="fast". False if there is none.
func (s *server) metric(name string, labels ...string) (sum float64, found bool) {
	s.t.Helper()
	code, body := s.get("/metrics")
	if code != http.StatusOK {
		s.t.Fatalf("metrics: %d %s", code, body)
	}
next:
	for line := range strings.Lines(body) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), name)
		if !ok || rest == "" || rest[0] != '{' && rest[0] != ' ' {
			continue
		}
		for _, l := range labels {
			if !strings.Contains(rest, l) {
				continue next
			}
		}
		v, err := strconv.ParseFloat(rest[strings.LastIndexByte(rest, ' ')+1:], 64)
		if err != nil {
			s.t.Fatalf("metric %q: %v", line, err)
		}
		sum, found = sum+v, true
	}
	return sum, found
}

func (s *server) count(name string, labels ...string) int {
	s.t.Helper()
	v, _ := s.metric(name, labels...)
	return int(v)
}

// settings are what tests change in the configuration of a server.
type settings struct {
	partitions int
	alpha      float64
}

// configure writes a configuration of three sites with dir stores under dir.
func configure(t testing.TB, dir string, s settings) string {
	t.Helper()
	name := filepath.Join(dir, "penstock.yaml")
	writeFile(t, name, fmt.Sprintf(`
sites:
  - {name: east, lat: 37.4, lon: -79.8, capacity: 100MB/h, store: "dir:%[1]s/stores/east"}
  - {name: west, lat: 37.8, lon: -122.4, capacity: 100MB/h, store: "dir:%[1]s/stores/west"}
  - {name: north, lat: 47.6, lon: -100.3, capacity: 100MB/h, store: "dir:%[1]s/stores/north"}
placement: {policy: tmatch, alpha: %[3]v, beta: %[4]v}
bus: {partitions: %[2]d, sync: interval, flush: 100ms}
privacy: {user_key: "only for this test"}
telemetry: {listen: "127.0.0.1:0"}
`, dir, s.partitions, s.alpha, 1-s.alpha))
	return name
}
