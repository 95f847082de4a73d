package processes

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

func group(t *testing.T, patience time.Duration) *Group {
	t.Helper()
	g, err := New(Options{Logs: filepath.Join(t.TempDir(), "logs"), Env: []string{"PENSTOCK_PROCESSES_ROLE=test"}, Patience: patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Stop() })
	return g
}

func addresses(t *testing.T, n int) []string {
	t.Helper()
	out, err := Addresses(t.Context(), "127.0.0.1", n, rand.New(rand.NewPCG(uint64(os.Getpid()), 1)))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// answers is a Ready by whether an address can be dialled.
func answers(address string) func(context.Context) error {
	return func(ctx context.Context) error {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		return c.Close()
	}
}

func TestProcessesStartAndStopInOrder(t *testing.T) {
	g := group(t, 10*time.Second)
	at := addresses(t, 2)
	for i, name := range []string{"first", "second"} {
		if err := g.Start(t.Context(), Spec{Name: name, Args: []string{"serve", at[i]}, Ready: answers(at[i])}); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.Failed().Err(); err != nil {
		t.Fatalf("failed: %v", context.Cause(g.Failed()))
	}
	if err := g.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := g.Stop(); err != nil {
		t.Errorf("a second stop: %v", err)
	}
	for _, a := range at {
		if answers(a)(t.Context()) == nil {
			t.Errorf("%s still answers", a)
		}
	}
	out, err := os.ReadFile(filepath.Join(g.o.Logs, "second.out"))
	if err != nil || string(out) != "role test\n" {
		t.Errorf("output %q, %v", out, err)
	}
}

func TestAProcessThatEndsIsToldWithItsLastLines(t *testing.T) {
	g := group(t, 10*time.Second)
	err := g.Start(t.Context(), Spec{Name: "gone", Args: []string{"fail"}, Ready: func(context.Context) error { return io.EOF }})
	if !errors.Is(err, ErrEnded) || !strings.Contains(err.Error(), "no sense in going on") || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("start: %v", err)
	}
	<-g.Failed().Done()
	if cause := context.Cause(g.Failed()); !errors.Is(cause, ErrEnded) || !strings.HasPrefix(cause.Error(), "gone: ") {
		t.Errorf("cause: %v", cause)
	}
	if err := g.Stop(); !errors.Is(err, ErrEnded) {
		t.Errorf("stop: %v", err)
	}
}

func TestAProcessThatNeverAnswersIsNotReady(t *testing.T) {
	g := group(t, 300*time.Millisecond)
	at := addresses(t, 1)
	err := g.Start(t.Context(), Spec{Name: "deaf", Args: []string{"serve", at[0]}, Ready: func(context.Context) error { return io.ErrNoProgress }})
	if !errors.Is(err, ErrNotReady) || !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("start: %v", err)
	}
}

func TestAProcessThatDoesNotEndIsKilled(t *testing.T) {
	g := group(t, time.Second)
	at := addresses(t, 1)
	if err := g.Start(t.Context(), Spec{Name: "stubborn", Args: []string{"stubborn", at[0]}, Ready: answers(at[0])}); err != nil {
		t.Fatal(err)
	}
	if err := g.Stop(); !errors.Is(err, ErrKilled) {
		t.Errorf("stop: %v", err)
	}
}

func TestAProcessEndsWithTheOneThatStartedIt(t *testing.T) {
	g := group(t, 10*time.Second)
	at := addresses(t, 1)
	if err := g.Start(t.Context(), Spec{Name: "orphan", Args: []string{"serve", at[0]}, Ready: answers(at[0])}); err != nil {
		t.Fatal(err)
	}
	// The system closes the pipe of a process that is gone.
	if err := g.list[0].alive.Close(); err != nil {
		t.Fatal(err)
	}
	<-g.list[0].done
	if g.list[0].err != nil {
		t.Errorf("it ended with %v", g.list[0].err)
	}
}

func TestAttachEndsWithItsInput(t *testing.T) {
	r, w := io.Pipe()
	ctx, cancel := Attach(t.Context(), r)
	defer cancel()
	if ctx.Err() != nil {
		t.Fatal("ended at once")
	}
	_ = w.Close()
	<-ctx.Done()
}

func TestAddressesAreDifferentAndFree(t *testing.T) {
	at := addresses(t, 20)
	seen := map[string]bool{}
	for _, a := range at {
		if seen[a] {
			t.Errorf("%s twice", a)
		}
		seen[a] = true
		l, err := net.Listen("tcp", a)
		if err != nil {
			t.Errorf("%s: %v", a, err)
			continue
		}
		_ = l.Close()
	}
}

func TestTailBeginsWithALine(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log")
	line := bytes.Repeat([]byte("x"), 99)
	if err := os.WriteFile(name, bytes.Repeat(append(line, '\n'), 100), 0o644); err != nil {
		t.Fatal(err)
	}
	got := tail(name)
	if len(got) > tailSize || len(got) < tailSize-200 || strings.Count(got, "\n")+1 != (len(got)+1)/100 {
		t.Errorf("%d bytes, %d lines", len(got), strings.Count(got, "\n"))
	}
	if tail(name+"x") != "" {
		t.Error("a file that isn't there has an end")
	}
}

func TestServeFinishesWhatRuns(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := "http://" + l.Addr().String()
	began, end := make(chan struct{}), make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /slow", func(http.ResponseWriter, *http.Request) {
		close(began)
		<-end
	})
	ctx, cancel := context.WithCancel(t.Context())
	served, answered := make(chan error), make(chan error)
	go func() { served <- Serve(ctx, l, mux) }()
	go func() { answered <- Answers(at + "/slow")(t.Context()) }()
	<-began
	cancel()
	for answers(l.Addr().String())(t.Context()) == nil {
	}
	close(end)
	if err := errors.Join(<-answered, <-served); err != nil {
		t.Error(err)
	}
	if err := Serve(t.Context(), l, mux); !errors.Is(err, net.ErrClosed) {
		t.Errorf("on a closed listener: %v", err)
	}
}

func TestAnswersWantsA200(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "not yet", http.StatusServiceUnavailable)
	}))
	defer s.Close()
	if err := Answers(s.URL)(t.Context()); err == nil || !strings.Contains(err.Error(), "answers 503: not yet") {
		t.Error(err)
	}
}

func TestUsedCountsWhatHasEnded(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux shows the processor times of others")
	}
	g := group(t, 10*time.Second)
	at := addresses(t, 1)
	if err := g.Start(t.Context(), Spec{Name: "first", Args: []string{"serve", at[0]}, Ready: answers(at[0])}); err != nil {
		t.Fatal(err)
	}
	// A process may have begun so little that no tick counts it.
	if _, err := g.Used(); err != nil {
		t.Fatal(err)
	}
	if err := g.Stop(); err != nil {
		t.Fatal(err)
	}
	if used, err := g.Used(); err != nil || used <= 0 {
		t.Errorf("%v, %v", used, err)
	}
}
