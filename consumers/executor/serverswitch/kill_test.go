package serverswitch_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"penstock/consumers/executor/serverswitch"
	"penstock/consumers/executor/serverswitch/command"
	"penstock/schemas/control"
)

// The test binary is a process that switches until it is killed.
const (
	victimEnv   = "PENSTOCK_SWITCH_VICTIM"   // the state folder
	machinesEnv = "PENSTOCK_SWITCH_MACHINES" // the folder of machines
	firstEnv    = "PENSTOCK_SWITCH_FIRST"    // the first epoch
)

var machineNames = []string{"a", "b", "c", "d"}

func TestMain(m *testing.M) {
	if os.Getenv(victimEnv) != "" {
		victim()
		return
	}
	goleak.VerifyTestMain(m)
}

// script is the machines' program: of an action, a server and a folder. A file stands for
// a machine that is on; that none is left is noted.
const script = `cd "$3" || exit 9
case "$1" in
status) test -e "on-$2" || exit 3 ;;
on) : > "on-$2" ;;
off) rm -f "on-$2"; ls | grep -q "^on-" || echo "after $2" >> none ;;
esac`

// isOn says what a machine is.
func isOn(machines, name string) error {
	_, err := os.Stat(filepath.Join(machines, "on-"+name))
	return err
}

// open makes a switch of machines, which are blind or not.
func open(machines, folder string, blind bool) (*serverswitch.Switch, error) {
	argv := []string{"/bin/sh", "-c", script, "machine", "{action}", "{server}", machines}
	o := command.Options{On: argv, Off: argv}
	if !blind {
		o.Status = argv
	}
	b, err := command.New(o)
	if err != nil {
		return nil, err
	}
	var servers []serverswitch.Server
	for _, name := range machineNames {
		servers = append(servers, serverswitch.Server{Name: name, Site: "east", Backend: b})
	}
	return serverswitch.New(serverswitch.Options{
		Folder: folder, Servers: servers, Look: time.Millisecond, Pause: time.Millisecond, Every: time.Hour,
		Drained: func(string, string, uint64) (bool, string) { return true, "" },
		History: func(context.Context, func(*control.Command, time.Time) error) error { return nil },
		Ready:   func(_ context.Context, s serverswitch.Server) error { return isOn(machines, s.Name) },
	})
}

// wanted is the table of an epoch, drawn from it.
func wanted(epoch uint64) *control.Command {
	chance := rand.New(rand.NewPCG(epoch, 1))
	c := &control.Command{Version: 1, Kind: control.Servers, Scope: "east", Epoch: epoch, Mode: control.Act, TTL: "1h", Servers: &control.ServersTable{}}
	for _, i := range chance.Perm(len(machineNames)) {
		if len(c.Servers.On) == 0 || chance.IntN(2) == 0 {
			c.Servers.On = append(c.Servers.On, machineNames[i])
		} else {
			c.Servers.Off = append(c.Servers.Off, machineNames[i])
		}
	}
	return c
}

// drive carries tables out, one after another, and says so.
func drive(ctx context.Context, w *serverswitch.Switch, first uint64, tables int) error {
	answer := func(_ context.Context, o control.Outcome) error {
		fmt.Println("answer", o.Epoch, o.Status)
		return nil
	}
	if err := w.Resume(ctx, answer); err != nil {
		return err
	}
	run, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- w.Run(run) }()
	var err error
	for epoch := first; err == nil && epoch < first+uint64(tables); epoch++ {
		fmt.Println("apply", epoch)
		err = w.Apply(ctx, wanted(epoch), answer)
	}
	cancel()
	return errors.Join(err, <-done)
}

func victim() {
	var first uint64
	_, err := fmt.Sscan(os.Getenv(firstEnv), &first)
	w, e := open(os.Getenv(machinesEnv), os.Getenv(victimEnv), first%2 == 0)
	if err = errors.Join(err, e); err == nil {
		err = drive(context.Background(), w, first, 1_000_000)
	}
	fmt.Println("error", err)
}

// TestKilled kills a process that switches by real programs again and again, at random
// instants. What it has left is brought to what the last table wants, by whoever comes
// then; never are all machines off.
func TestKilled(t *testing.T) {
	t.Parallel()
	kills := 5
	if os.Getenv("PENSTOCK_WHOLE") != "" {
		kills = 100
	}
	machines, folder := t.TempDir(), t.TempDir()
	for _, name := range machineNames[:2] {
		if out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", script, "machine", "on", name, machines).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	chance := rand.New(rand.NewPCG(3, 4))
	epoch := uint64(1)
	for range kills {
		epoch = kill(t, machines, folder, epoch, chance.IntN(16), time.Duration(chance.IntN(10))*time.Millisecond)
	}
	t.Logf("%d tables", epoch)
	w, err := open(machines, folder, false)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	if err := drive(t.Context(), w, epoch, 1); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(machines, "none")); err == nil {
		t.Errorf("all were off %s", b)
	}
	for _, name := range wanted(epoch).Servers.On {
		if err := isOn(machines, name); err != nil {
			t.Errorf("%s is off: %v", name, err)
		}
	}
	for _, name := range wanted(epoch).Servers.Off {
		if isOn(machines, name) == nil {
			t.Errorf("%s is on", name)
		}
	}
}

// kill runs a victim from an epoch on and kills it some time after so many lines. It
// returns the last epoch that it had begun.
func kill(t *testing.T, machines, folder string, first uint64, lines int, after time.Duration) uint64 {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env = append(os.Environ(), machinesEnv+"="+machines, victimEnv+"="+folder, fmt.Sprint(firstEnv, "=", first))
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	last := first
	scanner := bufio.NewScanner(out)
	for n := 0; scanner.Scan(); n++ {
		if n == lines {
			time.AfterFunc(after, func() { _ = c.Process.Kill() })
		}
		var epoch uint64
		if _, err := fmt.Sscanf(scanner.Text(), "apply %d", &epoch); err == nil {
			last = epoch
		}
		if strings.HasPrefix(scanner.Text(), "error") {
			t.Fatal(scanner.Text())
		}
	}
	_ = c.Wait() // killed
	return last
}
