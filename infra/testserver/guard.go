package testserver

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// logFile holds what a guarded program says, in its home.
const logFile = "log"

// pidFile holds the number of a guarded program's process, in its home.
const pidFile = "pid"

// guard runs a program until its standard input ends, which it does when the
// process at the other end closes it or is gone, and then removes the program's
// folder. A test binary that is killed can't do that by itself.
const guard = `home=$1 signal=$2; shift 2
"$@" </dev/null &
pid=$!
echo $pid >"$home/` + pidFile + `"
while read -r _; do :; done
kill -$signal $pid 2>/dev/null
wait $pid 2>/dev/null
rm -rf "$home"`

// guarding is how a server is run.
type guarding struct {
	// home holds all of its files.
	home string
	// signal ends it, by name: KILL, unless it has to tidy up behind itself.
	signal string
	env    []string // besides ours
	user   account  // that it runs as
}

// start starts a program. It lives until the returned file is closed, which the
// system does when this process ends in any way; home is removed then.
func (g guarding) start(program string, args ...string) (alive *os.File, err error) {
	log, err := os.Create(filepath.Join(g.home, logFile))
	if err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	defer func() { _ = log.Close() }()
	if err := g.user.give(log.Name()); err != nil {
		return nil, err
	}
	in, alive, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	defer func() { _ = in.Close() }()
	// It outlives the context of the call that starts it.
	cmd := exec.CommandContext(context.Background(), "/bin/sh", append([]string{"-c", guard, "guard", g.home, g.signal, program}, args...)...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = g.home, in, log, log
	cmd.Env = append(os.Environ(), g.env...)
	apart(cmd)
	g.user.run(cmd)
	if err := cmd.Start(); err != nil {
		_ = alive.Close()
		return nil, fmt.Errorf("start: %w", err)
	}
	return alive, cmd.Process.Release()
}
