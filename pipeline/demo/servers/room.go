package servers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"penstock/infra/clock"
	"penstock/pipeline/demo/processes"
	"penstock/pipeline/demo/servers/backend"
)

// room is where the machines stand: it starts and stops the processes of servers, as a
// cloud's API or a service manager would, and knows how long each ran. It is safe for
// concurrent use.
type room struct {
	clock  clock.Clock
	logs   string
	attach []string
	rack   []*rig // in order
}

// rig is a machine with its server, on or off.
type rig struct {
	room     *room
	name     string // its server's: HOST:PORT
	label    string
	control  string
	slowness float64
	seed     uint64

	switching sync.Mutex // held while it is turned on or off
	mu        sync.Mutex
	running   *processes.Group // nil: off
	since     time.Time
	before    time.Duration // that it ran before
	used      time.Duration // of the processors, before
	ups       int
	downs     int
	killed    time.Time
}

// errOff is told of a machine that is off.
var errOff = errors.New("the machine is off")

// errUnknown is told of a machine that there is not.
var errUnknown = errors.New("no such machine")

func (r *room) find(name string) (*rig, error) {
	for _, m := range r.rack {
		if m.name == name {
			return m, nil
		}
	}
	return nil, fmt.Errorf("%.100q: %w", name, errUnknown)
}

// on starts a machine's server, if it does not run, and returns before it takes requests.
func (m *rig) on(ctx context.Context, ready bool) error {
	m.switching.Lock()
	defer m.switching.Unlock()
	m.mu.Lock()
	runs := m.running != nil
	n := m.ups + 1
	m.mu.Unlock()
	if runs {
		return nil
	}
	g, err := processes.New(processes.Options{Clock: m.room.clock, Logs: m.room.logs, Prefix: m.room.attach, Patience: patience})
	if err != nil {
		return err
	}
	spec := processes.Spec{
		Name: m.log(n),
		Args: []string{
			"demo", "server", "--listen", m.name, "--control", m.control, "--workers", strconv.Itoa(workers),
			"--slowness", strconv.FormatFloat(m.slowness, 'g', -1, 64), "--seed", strconv.FormatUint(m.seed<<8+uint64(n), 10), "--boot", boot.String(),
		},
	}
	if ready {
		spec.Ready = processes.Answers("http://" + m.name + "/health")
	}
	began := m.room.clock.Now()
	if err := g.Start(ctx, spec); err != nil {
		return errors.Join(err, g.Stop())
	}
	m.mu.Lock()
	m.running, m.since, m.ups = g, began, n
	m.mu.Unlock()
	context.AfterFunc(g.Failed(), func() { m.gone(g, m.room.clock.Now()) })
	return nil
}

// log is the name of the files of the nth run.
func (m *rig) log(n int) string { return fmt.Sprintf("%s-%d", m.label, n) }

// gone notes that a machine's process ended by itself.
func (m *rig) gone(g *processes.Group, now time.Time) {
	m.mu.Lock()
	if m.running == g {
		m.end(now)
	}
	m.mu.Unlock()
	_ = g.Stop() // That it has ended is known.
}

// end adds up a run. The caller holds mu.
func (m *rig) end(now time.Time) {
	m.before += now.Sub(m.since)
	if used, err := m.running.Used(); err == nil {
		m.used += used
	}
	m.running = nil
}

// off tells a machine's server to end, and returns when it has.
func (m *rig) off() error {
	m.switching.Lock()
	defer m.switching.Unlock()
	m.mu.Lock()
	g := m.running
	m.mu.Unlock()
	if g == nil {
		return nil
	}
	err := g.Stop()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.running == g {
		m.end(m.room.clock.Now())
		m.downs++
	}
	return err
}

// kill kills a machine's server, as kill -9 does.
func (m *rig) kill(ctx context.Context) error {
	s, err := backend.StateOf(ctx, m.control)
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.killed = m.room.clock.Now()
	m.mu.Unlock()
	if err := syscall.Kill(s.PID, syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill %s: %w", m.label, err)
	}
	return nil
}

// ran is how long the machine ran until now.
func (m *rig) ran(now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.running == nil {
		return m.before
	}
	return m.before + now.Sub(m.since)
}

// isOn says whether the machine is on.
func (m *rig) isOn() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.running != nil
}

// used is what all machines have used of the processors so far.
func (r *room) used() (sum time.Duration, err error) {
	for _, m := range r.rack {
		m.mu.Lock()
		sum += m.used
		g := m.running
		m.mu.Unlock()
		if g == nil {
			continue
		}
		used, err := g.Used()
		if err != nil {
			return 0, err
		}
		sum += used
	}
	return sum, nil
}

// stop turns all machines off.
func (r *room) stop() error {
	errs := make([]error, len(r.rack))
	var all sync.WaitGroup
	for i, m := range r.rack {
		all.Go(func() { errs[i] = m.off() })
	}
	all.Wait()
	return errors.Join(errs...)
}

// handler is the API: POST /on and /off, GET /status, of ?server=NAME. Status is 200 if it
// is on and 410 if not.
func (r *room) handler() http.Handler {
	mux := http.NewServeMux()
	do := func(pattern string, act func(context.Context, *rig) error) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, q *http.Request) {
			m, err := r.find(q.URL.Query().Get("server"))
			if err == nil {
				// What was begun is ended, whoever asked for it.
				err = act(context.WithoutCancel(q.Context()), m)
			}
			switch {
			case errors.Is(err, errOff):
				http.Error(w, err.Error(), http.StatusGone)
			case errors.Is(err, errUnknown):
				http.Error(w, err.Error(), http.StatusNotFound)
			case err != nil:
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
		})
	}
	do("POST /on", func(ctx context.Context, m *rig) error { return m.on(ctx, false) })
	do("POST /off", func(_ context.Context, m *rig) error { return m.off() })
	do("GET /status", func(_ context.Context, m *rig) error {
		if !m.isOn() {
			return errOff
		}
		return nil
	})
	return mux
}

// serve serves the API until the context ends.
func (r *room) serve(ctx context.Context, address string) (<-chan error, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	done := make(chan error, 1)
	go func() { done <- processes.Serve(ctx, l, r.handler()) }()
	return done, nil
}

// Switch asks the room at a URL to turn a server on or off, or whether it is on; off is
// true for one that is not. It is what the command hook of the demonstration does.
func Switch(ctx context.Context, roomURL, action, server string) (off bool, err error) {
	method := http.MethodPost
	if action == "status" {
		method = http.MethodGet
	}
	q, err := http.NewRequestWithContext(ctx, method, roomURL+"/"+action, http.NoBody)
	if err != nil {
		return false, fmt.Errorf("room: %w", err)
	}
	values := q.URL.Query()
	values.Set("server", server)
	q.URL.RawQuery = values.Encode()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	resp, err := client.Do(q)
	if err != nil {
		return false, fmt.Errorf("room: %w", err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 4096))
	switch {
	case err != nil:
		return false, fmt.Errorf("room: %w", err)
	case resp.StatusCode == http.StatusGone:
		return true, nil
	case resp.StatusCode != http.StatusOK:
		return false, fmt.Errorf("room: %d: %s", resp.StatusCode, strings.TrimSpace(string(b)))
	}
	return false, nil
}

// out is the file of what a run said.
func (m *rig) out(n int) string { return filepath.Join(m.room.logs, m.log(n)+".out") }
