package command_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"penstock/consumers/executor/serverswitch"
	"penstock/consumers/executor/serverswitch/command"
	"penstock/consumers/executor/serverswitch/switchtest"
)

// The test binary is also the hook: its words are hook, a folder, what to do, and more.
const hook = "hook"

func TestMain(m *testing.M) {
	if len(os.Args) > 3 && os.Args[1] == hook {
		os.Exit(act(os.Args[2], os.Args[3], os.Args[4:]))
	}
	goleak.VerifyTestMain(m)
}

// act is what hooks do.
func act(folder, what string, more []string) int {
	var err error
	switch what {
	case "exit":
		fmt.Fprintln(os.Stderr, strings.Repeat("much ", 1000), "before the last words")
		code, _ := strconv.Atoi(more[0])
		return code
	case "tell":
		var env []string
		for _, e := range os.Environ() {
			if strings.HasPrefix(e, "PENSTOCK_") {
				env = append(env, e)
			}
		}
		slices.Sort(env)
		err = os.WriteFile(filepath.Join(folder, "told"), []byte(strings.Join(append(more, env...), "\n")), 0o600)
	case "hang", "leave": // with a child, in the same group and with the same output
		c := exec.Command("/bin/sleep", "1000")
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		if err = c.Start(); err == nil {
			err = os.WriteFile(filepath.Join(folder, "pid.new"), []byte(strconv.Itoa(c.Process.Pid)), 0o600)
		}
		if err == nil {
			err = os.Rename(filepath.Join(folder, "pid.new"), filepath.Join(folder, "pid"))
		}
		if err == nil && what == "hang" {
			_ = c.Wait()
		}
	}
	if err != nil {
		fmt.Println(err)
		return 9
	}
	return 0
}

func argv(folder string, words ...string) []string {
	return append([]string{os.Args[0], hook, folder}, words...)
}

func backend(t *testing.T, o command.Options) *command.Backend {
	t.Helper()
	b, err := command.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// machine is a program of an action, a server and a folder, in which a file stands for a
// server that is on.
const machine = `cd "$3" || exit 99
case "$1" in
status) test -e "$2" || exit 3 ;;
on) : > "$2" ;;
off) rm -f "$2" ;;
esac`

// TestSuite with real programs, with and without one for status.
func TestSuite(t *testing.T) {
	t.Parallel()
	for _, sees := range []bool{true, false} {
		t.Run(fmt.Sprint(sees), func(t *testing.T) {
			t.Parallel()
			switchtest.Run(t, func(t *testing.T) switchtest.World {
				folder := t.TempDir()
				program := []string{"/bin/sh", "-c", machine, "machine", "{action}", "{server}", folder}
				o := command.Options{On: program, Off: program}
				if sees {
					o.Status = program
				}
				w := switchtest.World{
					Backend: backend(t, o), Sees: sees,
					Servers: [2]serverswitch.Server{{Name: "a", Site: "east"}, {Name: "b", Site: "east"}},
					On:      func(server string) bool { _, err := os.Stat(filepath.Join(folder, server)); return err == nil },
					Cut: func() func() {
						must(t, os.Rename(folder, folder+".away"))
						return func() { must(t, os.Rename(folder+".away", folder)) }
					},
				}
				for _, s := range w.Servers {
					must(t, os.WriteFile(filepath.Join(folder, s.Name), nil, 0o600))
				}
				return w
			})
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestWords: what a program is told, in arguments and in its environment, and that no shell
// sees it.
func TestWords(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	b := backend(t, command.Options{
		On:  argv(folder, "tell", "{server}", "{host}:{port}", "{zone}@{site}", "$(touch x); {action}"),
		Off: argv(folder, "tell", "{host}", "{port}"),
	})
	s := serverswitch.Server{Name: "web-1", Site: "east", Zone: "z", URL: "http://[::1]:8080/x"}
	must(t, b.Switch(t.Context(), serverswitch.Order{Server: s, On: true, Epoch: 12, Key: "k-1"}))
	told(t, folder, "web-1", "::1:8080", "z@east", "$(touch x); on", "PENSTOCK_ACTION=on", "PENSTOCK_EPOCH=12", "PENSTOCK_HOST=::1", "PENSTOCK_KEY=k-1",
		"PENSTOCK_PORT=8080", "PENSTOCK_SERVER=web-1", "PENSTOCK_SITE=east", "PENSTOCK_URL=http://[::1]:8080/x", "PENSTOCK_ZONE=z")
	for name, place := range map[string][]string{"10.0.0.1:80": {"10.0.0.1", "80"}, "web": {"web", ""}} {
		must(t, b.Switch(t.Context(), serverswitch.Order{Server: serverswitch.Server{Name: name}}))
		told(t, folder, place[0], place[1], "PENSTOCK_ACTION=off", "PENSTOCK_EPOCH=0", "PENSTOCK_HOST="+place[0], "PENSTOCK_KEY=", "PENSTOCK_PORT="+place[1],
			"PENSTOCK_SERVER="+name, "PENSTOCK_SITE=", "PENSTOCK_URL=", "PENSTOCK_ZONE=")
	}
}

func told(t *testing.T, folder string, want ...string) {
	t.Helper()
	got, err := os.ReadFile(filepath.Join(folder, "told"))
	if err != nil || string(got) != strings.Join(want, "\n") {
		t.Errorf("told %q, %v; expected %q", got, err, want)
	}
}

// TestWhatAStatusSays: one that ends well and says off and no more is off: that is what many
// scripts do in place of an exit code.
func TestWhatAStatusSays(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]serverswitch.Power{
		"echo off": serverswitch.PowerOff, "echo OFF >&2": serverswitch.PowerOff, "echo on": serverswitch.PowerOn, "true": serverswitch.PowerOn,
		"echo it was off": serverswitch.PowerOn, "echo on; exit 3": serverswitch.PowerOff, "echo off; exit 4": serverswitch.Unseen,
	} {
		b := backend(t, command.Options{On: []string{"true"}, Off: []string{"true"}, Status: []string{"sh", "-c", script}})
		got, err := b.Observe(t.Context(), serverswitch.Server{Name: "a"})
		if got != want || (err != nil) != (want == serverswitch.Unseen) {
			t.Errorf("%s: %v, %v, expected %v", script, got, err, want)
		}
	}
}

// TestFails: an exit code with the last words, a program that isn't there, and what codes
// of a status mean.
func TestFails(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for code, want := range map[int]serverswitch.Power{0: serverswitch.PowerOn, 1: serverswitch.PowerOff, 3: serverswitch.PowerOff, 4: serverswitch.Unseen} {
		b := backend(t, command.Options{On: argv(folder, "exit", "7"), Off: []string{"/nowhere/program"}, Status: argv(folder, "exit", strconv.Itoa(code))})
		got, err := b.Observe(t.Context(), serverswitch.Server{Name: "a"})
		if got != want || (err != nil) != (want == serverswitch.Unseen) {
			t.Errorf("code %d: %v, %v", code, got, err)
		}
		err = b.Switch(t.Context(), serverswitch.Order{On: true})
		if !errors.Is(err, command.ErrFailed) || !strings.Contains(err.Error(), "on: exit status 7: ") ||
			!strings.HasSuffix(err.Error(), "before the last words") || len(err.Error()) > 1000 {
			t.Errorf("%v", err)
		}
		if err := b.Switch(t.Context(), serverswitch.Order{}); !errors.Is(err, command.ErrFailed) || !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%v", err)
		}
	}
	for _, o := range []command.Options{
		{},
		{On: []string{"x"}},
		{On: []string{""}, Off: []string{"x"}},
		{On: []string{"x"}, Off: []string{"x"}, Timeout: -1},
		{On: []string{"x"}, Off: []string{"x"}, Status: []string{""}},
	} {
		if _, err := command.New(o); !errors.Is(err, command.ErrOptions) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// child waits until a hook has told the pid of its child.
func child(t *testing.T, folder string) int {
	t.Helper()
	for late := time.Now().Add(60 * time.Second); time.Now().Before(late); {
		if b, err := os.ReadFile(filepath.Join(folder, "pid")); err == nil {
			pid, err := strconv.Atoi(string(b))
			must(t, err)
			return pid
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal("the hook was not begun")
	return 0
}

// gone says whether a process is no more, or a zombie that nobody has waited for.
func gone(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(b), ") Z ")
}

func awaitGone(t *testing.T, pid int) {
	t.Helper()
	for late := time.Now().Add(60 * time.Second); !gone(pid); {
		if time.Now().After(late) {
			t.Fatalf("process %d still runs", pid)
		}
		time.Sleep(time.Millisecond)
	}
}

// TestHangs: when its time is over, or its context ends, a program is killed with all that
// it has started.
func TestHangs(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	b := backend(t, command.Options{On: argv(folder, "hang"), Off: argv(folder, "off")})
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.Switch(ctx, serverswitch.Order{On: true}) }()
	pid := child(t, folder)
	why := errors.New("the process is being stopped")
	cancel(why)
	if err := <-done; !errors.Is(err, command.ErrFailed) || !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
	awaitGone(t, pid)

	b = backend(t, command.Options{On: argv(folder, "hang"), Off: argv(folder, "off"), Timeout: 50 * time.Millisecond})
	if err := b.Switch(t.Context(), serverswitch.Order{On: true}); !errors.Is(err, command.ErrFailed) || !strings.Contains(err.Error(), "killed after 50ms") {
		t.Errorf("%v", err)
	}
}

// TestLeavesAServer: what a program that ends in time leaves running goes on.
func TestLeavesAServer(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	b := backend(t, command.Options{On: argv(folder, "leave"), Off: argv(folder, "off")})
	must(t, b.Switch(t.Context(), serverswitch.Order{On: true}))
	pid := child(t, folder)
	if gone(pid) {
		t.Error("it was killed")
	}
	must(t, syscall.Kill(pid, syscall.SIGKILL))
}
