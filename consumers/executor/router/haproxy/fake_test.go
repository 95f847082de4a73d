package haproxy

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"penstock/consumers/executor"
	"penstock/consumers/executor/router"
	"penstock/consumers/executor/router/routertest"
)

// fake answers as a HAProxy with servers e and w might, or not.
type fake struct {
	mu      sync.Mutex
	lines   []string
	longest int // line, in bytes
	answer  func(command string) (said string, breaksOff bool)
}

const (
	fakeHead  = "1\n# be_name srv_name srv_op_state srv_admin_state srv_uweight srv_iweight\n"
	fakeState = fakeHead + "search e 2 0 256 1\nsearch w 2 0 0 1\n\n"
)

func faked(t *testing.T, answer func(command string) (string, bool)) (*fake, *Target) {
	t.Helper()
	f := &fake{answer: answer}
	socket := filepath.Join(t.TempDir(), "api")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			f.serve(conn)
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	target, err := New(Options{Address: socket, Timeout: 100 * time.Millisecond, Backends: []Backend{{
		Name: "search", Link: routertest.Link, Servers: map[string][]string{"east": {"e"}, "west": {"w"}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return f, target
}

func (f *fake) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return
	}
	f.mu.Lock()
	f.longest = max(f.longest, len(line))
	f.mu.Unlock()
	for command := range strings.SplitSeq(strings.TrimSpace(line), ";") {
		f.mu.Lock()
		f.lines = append(f.lines, command)
		f.mu.Unlock()
		said, breaksOff := f.answer(command)
		if said == "hang" {
			_, _ = bufio.NewReader(conn).ReadString('\n') // until the other end has had enough
			return
		}
		if _, err := conn.Write([]byte(said)); err != nil || breaksOff {
			return
		}
	}
}

// said are the commands so far, and the longest line.
func (f *fake) said() ([]string, int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.lines), f.longest
}

func ordinary(command string) (string, bool) {
	if strings.HasPrefix(command, "show servers state") {
		return fakeState, false
	}
	return "\n", false
}

// TestRiseBeforeFall: there is no moment without any weight.
func TestRiseBeforeFall(t *testing.T) {
	t.Parallel()
	f, target := faked(t, ordinary)
	if _, err := target.Put(t.Context(), routertest.Table(1, 0, 0, 1)); err != nil {
		t.Fatal(err)
	}
	want := []string{"show servers state search", "set server search/w weight 256", "set server search/e weight 0"}
	if said, _ := f.said(); !slices.Equal(said, want) {
		t.Errorf("said %q", said)
	}
}

// TestBrokenAnswers reject no table: nothing is known of it.
func TestBrokenAnswers(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(string) (string, bool){
		"nothing":           func(string) (string, bool) { return "", true },
		"half a list":       func(string) (string, bool) { return fakeState[:len(fakeState)-12], true },
		"a list less a row": func(string) (string, bool) { return fakeHead + "search e 2 0 256 1\n", true },
		"no end":            func(string) (string, bool) { return "hang", true },
		"then nothing": func(command string) (string, bool) {
			if strings.HasPrefix(command, "set") {
				return "", true
			}
			return ordinary(command)
		},
	} {
		_, target := faked(t, answer)
		if _, err := target.Put(t.Context(), routertest.Table(1, 0, 0, 1)); !errors.Is(err, router.ErrUnreachable) || !errors.Is(err, executor.ErrAgain) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestManyServers are set in lines that HAProxy can read.
func TestManyServers(t *testing.T) {
	t.Parallel()
	const n = 500
	state, names := fakeHead, make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint("a-server-with-quite-a-name-", i)
		state += "search " + names[i] + " 2 0 1 1\n"
	}
	f, target := faked(t, func(command string) (string, bool) {
		if strings.HasPrefix(command, "show") {
			return state + "\n", false
		}
		return "\n", false
	})
	target.o.Backends[0].Servers = map[string][]string{"east": names}
	target.client.timeout = 20 * time.Second // it answers
	if changes, err := target.Put(t.Context(), routertest.Table(1, 1, 0, 0)); err != nil || changes != n {
		t.Fatal(changes, err)
	}
	if said, longest := f.said(); len(said) != n+1 || longest > 16<<10 {
		t.Errorf("%d commands, in lines of %d bytes", len(said), longest)
	}
}
