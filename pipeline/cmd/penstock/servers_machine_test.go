package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// The test binary is also the servers of a pool, and the hook that turns them on and off:
// processes of their own, that can be killed. Which of them it is stands in the
// environment, because the arguments of a hook are the configuration's.
const (
	machineAt     = "PENSTOCK_TEST_MACHINE"        // HOST:PORT of the server that this process is
	machineFolder = "PENSTOCK_TEST_MACHINE_FOLDER" // with the boards
	machineHook   = "PENSTOCK_TEST_MACHINE_HOOK"   // set: this process is the hook
	machineOwner  = "PENSTOCK_TEST_MACHINE_OWNER"  // process without which no server goes on
)

func init() {
	switch {
	case os.Getenv(machineHook) != "":
		runHook()
	case os.Getenv(machineAt) != "":
		runMachine(os.Getenv(machineFolder), os.Getenv(machineAt))
	}
}

// board is what a server counts, and what it is told to be like: memory in a file, so that
// it outlives the process, and nothing is lost when that is killed.
type board struct {
	// Delay is how long a request takes, Warm how long the server takes from its start
	// to be ready; ns.
	Delay, Warm atomic.Int64
	// Begun, Ended and Broken requests: of the last the client had left.
	Begun, Ended, Broken atomic.Int64
	// Inside are those in service, of these Posts that may not be sent twice; Most is the
	// most that ever were.
	Inside, Posts, Most atomic.Int64
	// Early requests came before the server was ready.
	Early atomic.Int64
	// Starts of the process.
	Starts atomic.Int64
	// Stuck: the hook can't start it.
	Stuck atomic.Bool
}

// openBoard maps the board of a server.
func openBoard(folder, server string) (*board, error) {
	f, err := os.OpenFile(boardFile(folder, server), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	const page = 4096
	if err := f.Truncate(page); err != nil {
		return nil, err
	}
	b, err := syscall.Mmap(int(f.Fd()), 0, page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return (*board)(unsafe.Pointer(&b[0])), nil //nolint:gosec // Several processes count in it.
}

func boardFile(folder, server string) string {
	return filepath.Join(folder, strings.ReplaceAll(server, ":", "-")+".board")
}

// machineLock is the file that the process of a server holds locked while it lives, with
// its process id.
func machineLock(folder, server string) string {
	return strings.TrimSuffix(boardFile(folder, server), ".board") + ".pid"
}

// runMachine is a server's process. It doesn't return.
func runMachine(folder, at string) {
	lock, err := os.OpenFile(machineLock(folder, at), os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err != nil {
		os.Exit(3) // Another is this server.
	}
	if err := errors.Join(lock.Truncate(0), writeAll(lock, strconv.Itoa(os.Getpid()))); err != nil {
		os.Exit(4)
	}
	b, err := openBoard(folder, at)
	if err != nil {
		os.Exit(5)
	}
	// Those of a process that was killed have ended.
	b.Inside.Store(0)
	b.Posts.Store(0)
	b.Starts.Add(1)
	go func() {
		owner, _ := strconv.Atoi(os.Getenv(machineOwner))
		for syscall.Kill(owner, 0) == nil {
			time.Sleep(time.Second)
		}
		os.Exit(0)
	}()
	ready := time.Now().Add(time.Duration(b.Warm.Load()))
	l, err := new(net.ListenConfig).Listen(neverEnding{}, "tcp", at)
	if err != nil {
		os.Exit(6)
	}
	s := http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		early := time.Now().Before(ready)
		if r.URL.Path == "/ready" {
			if early {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			return
		}
		if early {
			b.Early.Add(1)
		}
		b.serve(w, r)
	})}
	_ = s.Serve(l)
	os.Exit(7)
}

// neverEnding is the context of a process that is killed.
type neverEnding struct{}

func (neverEnding) Deadline() (time.Time, bool) { return time.Time{}, false }
func (neverEnding) Done() <-chan struct{}       { return nil }
func (neverEnding) Err() error                  { return nil }
func (neverEnding) Value(any) any               { return nil }

func writeAll(f *os.File, text string) error {
	_, err := f.WriteAt([]byte(text), 0)
	return err
}

// serve is one request. What it counts ends before its answer does, so that nobody can
// know of its end before.
func (b *board) serve(w http.ResponseWriter, r *http.Request) {
	once := r.Method == http.MethodPost
	b.Begun.Add(1)
	if once {
		b.Posts.Add(1)
	}
	in := b.Inside.Add(1)
	for most := b.Most.Load(); in > most && !b.Most.CompareAndSwap(most, in); most = b.Most.Load() {
	}
	timer := time.NewTimer(time.Duration(b.Delay.Load()))
	defer timer.Stop()
	select {
	case <-timer.C:
		b.Ended.Add(1)
	case <-r.Context().Done():
		b.Broken.Add(1)
	}
	if once {
		b.Posts.Add(-1)
	}
	b.Inside.Add(-1)
	_, _ = fmt.Fprintln(w, "served")
}

// runHook turns a server on or off, as the environment says, or tells which it is. It
// doesn't return. It is called again after a kill half-way, and does then what is left.
func runHook() {
	folder, server, action := os.Getenv(machineFolder), os.Getenv("PENSTOCK_SERVER"), os.Getenv("PENSTOCK_ACTION")
	b, err := openBoard(folder, server)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(9)
	}
	pid := machinePID(folder, server)
	if action == "status" {
		if pid == 0 {
			os.Exit(1)
		}
		os.Exit(0)
	}
	log, err := os.OpenFile(filepath.Join(folder, "hooks"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintf(log, "%s %s %s %d %v %d\n", server, action, os.Getenv("PENSTOCK_EPOCH"), b.Inside.Load(), pid != 0, othersThatRun(folder, server))
	}
	if err == nil && action == "on" && b.Stuck.Load() {
		err = errors.New("it is stuck")
	}
	if err == nil && action == "on" && pid == 0 {
		err = startMachine(folder, server, os.Getenv(machineOwner))
	}
	if err == nil && action == "off" {
		killMachine(folder, server)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(9)
	}
	os.Exit(0)
}

// machinePID is the process of a server; 0 if none runs.
func machinePID(folder, server string) int {
	f, err := os.OpenFile(machineLock(folder, server), os.O_RDWR, 0)
	if err != nil {
		return 0
	}
	defer f.Close()
	if syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) == nil {
		return 0
	}
	for {
		text := make([]byte, 20)
		n, _ := f.ReadAt(text, 0)
		if pid, err := strconv.Atoi(string(text[:n])); err == nil && pid > 1 {
			return pid
		}
		time.Sleep(time.Millisecond) // It has not written it yet.
	}
}

// othersThatRun counts the servers that do but for one.
func othersThatRun(folder, server string) (n int) {
	files, _ := filepath.Glob(filepath.Join(folder, "*.pid")) // The pattern is a good one.
	for _, file := range files {
		other := strings.TrimSuffix(filepath.Base(file), ".pid")
		if file != machineLock(folder, server) && machinePID(folder, other) != 0 {
			n++
		}
	}
	return n
}

// killMachine ends a server as a crash does, and returns when it has ended.
func killMachine(folder, server string) {
	for pid := machinePID(folder, server); pid != 0; pid = machinePID(folder, server) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		time.Sleep(time.Millisecond)
	}
}

// startMachine starts the process of a server, and returns when it runs, which is before
// it listens.
func startMachine(folder, server, owner string) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	c := exec.Command(exe)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, machineHook+"=") {
			c.Env = append(c.Env, v)
		}
	}
	c.Env = append(c.Env, machineAt+"="+server, machineFolder+"="+folder, machineOwner+"="+owner)
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // It is no part of the hook.
	if err := c.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		_ = c.Wait()
		close(ended)
	}()
	for {
		select {
		case <-ended:
			return fmt.Errorf("the server has ended: %v", c.ProcessState)
		case <-time.After(time.Millisecond):
			if machinePID(folder, server) == c.Process.Pid {
				return nil
			}
		}
	}
}

// machines are the servers of a pool, which run or don't.
type machines struct {
	t      testing.TB
	folder string
	names  []string
	boards []*board
}

// newMachines makes servers on addresses that nobody has; none runs.
func newMachines(t testing.TB, names []string) *machines {
	t.Helper()
	m := &machines{t: t, folder: t.TempDir(), names: names}
	for _, name := range names {
		b, err := openBoard(m.folder, name)
		if err != nil {
			t.Fatal(err)
		}
		m.boards = append(m.boards, b)
	}
	t.Cleanup(func() {
		for _, name := range names {
			killMachine(m.folder, name)
		}
	})
	return m
}

// start starts servers and waits until they answer.
func (m *machines) start(list ...int) {
	m.t.Helper()
	for _, i := range list {
		if err := startMachine(m.folder, m.names[i], strconv.Itoa(os.Getpid())); err != nil {
			m.t.Fatal(err)
		}
	}
	for _, i := range list {
		eventually(m.t, "a server to answer", func() bool { return m.ready(i) })
	}
}

// ready asks a server whether it is.
func (m *machines) ready(i int) bool {
	req, err := http.NewRequestWithContext(m.t.Context(), http.MethodGet, "http://"+m.names[i]+"/ready", nil)
	if err != nil {
		m.t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	_ = res.Body.Close()
	return res.StatusCode == http.StatusOK
}

// kill ends a server as a crash does.
func (m *machines) kill(i int) { killMachine(m.folder, m.names[i]) }

// runs says whether a server does.
func (m *machines) runs(i int) bool { return machinePID(m.folder, m.names[i]) != 0 }

// hook is the command line of the hook that turns servers on and off.
func (m *machines) hook() string {
	m.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		m.t.Fatal(err)
	}
	return fmt.Sprintf("[env, %q, %q, %q, %q]", machineHook+"=1", machineFolder+"="+m.folder, machineOwner+"="+strconv.Itoa(os.Getpid()), exe)
}

// call is one of the hook.
type call struct {
	Server, Action string
	Epoch          uint64
	Inside         int64 // requests at the server then
	Ran            bool
	Others         int // that ran
}

// calls are those of the hook that turn a server on or off, in their order.
func (m *machines) calls() (all []call) {
	m.t.Helper()
	b, err := os.ReadFile(filepath.Join(m.folder, "hooks"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		m.t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		var c call
		if _, err := fmt.Sscan(line, &c.Server, &c.Action, &c.Epoch, &c.Inside, &c.Ran, &c.Others); err != nil {
			m.t.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

// begun are the requests begun at each server so far.
func (m *machines) begun() []int64 {
	out := make([]int64, len(m.boards))
	for i, b := range m.boards {
		out[i] = b.Begun.Load()
	}
	return out
}

// shares are the parts of servers in what was begun between two moments, and how much
// that was.
func sharesOf(before, after []int64) (parts []float64, n int64) {
	parts = make([]float64, len(before))
	for i := range before {
		n += after[i] - before[i]
	}
	for i := range before {
		parts[i] = float64(after[i]-before[i]) / float64(max(n, 1))
	}
	return parts, n
}

// more waits until n more requests are begun, and returns their parts.
func (m *machines) more(n int64) []float64 {
	m.t.Helper()
	before := m.begun()
	var parts []float64
	eventually(m.t, fmt.Sprintf("%d more requests", n), func() bool {
		p, had := sharesOf(before, m.begun())
		parts = p
		return had >= n
	})
	return parts
}
