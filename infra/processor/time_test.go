package processor

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"
)

func TestWhatAProcessUses(t *testing.T) {
	if runtime.GOOS != "linux" {
		if _, err := Time(os.Getpid()); !errors.Is(err, ErrUnknown) {
			t.Error(err)
		}
		return
	}
	own, machine := measure(t, func() (time.Duration, error) { return Own(os.Getpid()) }), measure(t, Machine)
	for at := time.Now(); measure(t, func() (time.Duration, error) { return Own(os.Getpid()) })-own < 200*time.Millisecond; {
		if time.Since(at) > time.Minute {
			t.Fatal("a minute of work does not show")
		}
	}
	// The machine's time is counted by ticks, each for who runs at that instant; a process's
	// own is exact. Over 20 ticks the two may differ by some.
	if used := measure(t, Machine) - machine; used < 100*time.Millisecond {
		t.Errorf("the machine has used %v", used)
	}
	c := exec.Command("sh", "-c", "while :; do :; done")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = c.Process.Kill()
		_ = c.Wait()
		if _, err := Time(c.Process.Pid); !errors.Is(err, ErrUnknown) {
			t.Errorf("of a process that has ended: %v", err)
		}
	}()
	// What children use is theirs, and counts for the one that started them.
	for at := time.Now(); ; {
		child := measure(t, func() (time.Duration, error) { return Time(c.Process.Pid) })
		own := measure(t, func() (time.Duration, error) { return Own(os.Getpid()) })
		if both := measure(t, func() (time.Duration, error) { return Time(os.Getpid()) }); child >= 50*time.Millisecond && both-own >= 30*time.Millisecond {
			return
		}
		if time.Since(at) > time.Minute {
			t.Fatal("a minute of a child's work does not show")
		}
	}
}

func measure(t *testing.T, of func() (time.Duration, error)) time.Duration {
	t.Helper()
	used, err := of()
	if err != nil {
		t.Fatal(err)
	}
	return used
}
