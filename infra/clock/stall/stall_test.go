package stall_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"penstock/infra/clock"
	"penstock/infra/clock/stall"
)

func TestMain(m *testing.M) {
	if os.Getenv("STALL_METER") != "" {
		measure()
		return
	}
	goleak.VerifyTestMain(m)
}

// measure is a process that is to be frozen: it says "begun", and at the end of its input
// the longest stall and all of them.
func measure() {
	ctx, cancel := context.WithCancel(context.Background())
	m := stall.Start(ctx)
	_, _ = os.Stdout.WriteString("begun\n")
	_, _ = os.Stdin.Read(make([]byte, 1))
	_, _ = os.Stdout.WriteString(m.Longest().String() + " " + m.Total().String() + "\n")
	cancel()
	m.Wait()
}

// TestMeter freezes a process twice and sees that its meter says so.
func TestMeter(t *testing.T) {
	t.Parallel()
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env = append(os.Environ(), "STALL_METER=1")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, len("begun\n"))); err != nil {
		t.Fatal(err)
	}
	const frozen = 200 * time.Millisecond
	for range 2 {
		for _, s := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
			if err := c.Process.Signal(s); err != nil {
				t.Fatal(err)
			}
			_ = clock.System().Sleep(t.Context(), frozen) // how long it is frozen, then runs
		}
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	b := make([]byte, 100)
	for n, err := out.Read(b); ; n, err = out.Read(b) {
		if said.Write(b[:n]); err != nil {
			break
		}
	}
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(said.String())
	if len(words) != 2 {
		t.Fatalf("it said %q", said.String())
	}
	longest, total := duration(t, words[0]), duration(t, words[1])
	if least := frozen - 20*time.Millisecond; longest < least || total < 2*least || longest > total {
		t.Errorf("frozen twice for %v: longest %v, all %v", frozen, longest, total)
	}
}

func duration(t *testing.T, s string) time.Duration {
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
