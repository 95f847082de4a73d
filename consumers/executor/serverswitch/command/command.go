package command

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"penstock/consumers/executor/serverswitch"
)

var (
	// ErrOptions is returned by New for options that can't work.
	ErrOptions = errors.New("command hook options")
	// ErrFailed is returned for a program that could not be started, did not end with 0,
	// or was killed because its time was over. What it has done meanwhile is unknown.
	ErrFailed = errors.New("command hook")
)

// killWait is how long after the end of a program its output may be held open by others,
// before it is closed.
const killWait = time.Second

// Options of a Backend: programs with their arguments.
type Options struct {
	// On and Off are called to turn a server on and off. Needed.
	On, Off []string
	// Status is called to know what a server is: it is off if it ends with 1 or 3, or with 0
	// and nothing said but "off"; else with 0 on. Empty: that can't be told.
	Status []string
	// Timeout after which a program is killed. 0: only the switch's.
	Timeout time.Duration
}

// Backend calls programs. It is safe for concurrent use.
type Backend struct{ o Options }

var _ serverswitch.Backend = (*Backend)(nil)

// New returns a backend. ErrOptions.
func New(o Options) (*Backend, error) {
	for _, argv := range [][]string{o.On, o.Off} {
		if len(argv) == 0 || argv[0] == "" {
			return nil, fmt.Errorf("on and off: expected a program each: %w", ErrOptions)
		}
	}
	if o.Timeout < 0 || len(o.Status) > 0 && o.Status[0] == "" {
		return nil, fmt.Errorf("expected no negative timeout, and a program for status, or none: %w", ErrOptions)
	}
	return &Backend{o}, nil
}

// Name is command.
func (b *Backend) Name() string { return "command" }

// Switch calls the program for on or off.
func (b *Backend) Switch(ctx context.Context, o serverswitch.Order) error {
	argv, action := b.o.Off, "off"
	if o.On {
		argv, action = b.o.On, "on"
	}
	_, _, err := b.call(ctx, o.Server, action, argv, "PENSTOCK_EPOCH="+strconv.FormatUint(o.Epoch, 10), "PENSTOCK_KEY="+o.Key)
	return err
}

// Observe calls the program for status.
func (b *Backend) Observe(ctx context.Context, s serverswitch.Server) (serverswitch.Power, error) {
	if len(b.o.Status) == 0 {
		return serverswitch.Unseen, nil
	}
	code, said, err := b.call(ctx, s, "status", b.o.Status)
	switch {
	case err == nil && strings.EqualFold(said, "off"):
		return serverswitch.PowerOff, nil
	case err == nil:
		return serverswitch.PowerOn, nil
	case code == 1, code == 3:
		return serverswitch.PowerOff, nil
	}
	return serverswitch.Unseen, err
}

// call runs a program to its end and returns its exit code, −1 if it has none, and its last
// words.
func (b *Backend) call(ctx context.Context, s serverswitch.Server, action string, argv []string, env ...string) (code int, words string, err error) {
	if b.o.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, b.o.Timeout, fmt.Errorf("killed after %v", b.o.Timeout))
		defer cancel()
	}
	host, port := place(s)
	places := strings.NewReplacer("{server}", s.Name, "{host}", host, "{port}", port, "{zone}", s.Zone, "{site}", s.Site, "{action}", action)
	args := make([]string, len(argv))
	for i, a := range argv {
		args[i] = places.Replace(a)
	}
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	c.Env = append(append(os.Environ(),
		"PENSTOCK_SERVER="+s.Name, "PENSTOCK_HOST="+host, "PENSTOCK_PORT="+port, "PENSTOCK_ZONE="+s.Zone,
		"PENSTOCK_SITE="+s.Site, "PENSTOCK_URL="+s.URL, "PENSTOCK_ACTION="+action), env...)
	var said tail
	c.Stdout, c.Stderr = &said, &said
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	endWithUs(c.SysProcAttr)
	c.Cancel = func() error { return killGroup(c.Process.Pid) }
	c.WaitDelay = killWait
	runtime.LockOSThread() // whose end would be taken for ours
	err = c.Run()
	runtime.UnlockOSThread()
	if err == nil || errors.Is(err, exec.ErrWaitDelay) && ctx.Err() == nil {
		return 0, said.String(), nil // What it has started, and left our pipe to, goes on.
	}
	if cause := context.Cause(ctx); cause != nil {
		err = fmt.Errorf("%w (%w)", cause, err)
	}
	if words = said.String(); words != "" {
		err = fmt.Errorf("%w: %s", err, words)
	}
	code = -1
	if c.ProcessState != nil {
		code = c.ProcessState.ExitCode()
	}
	return code, words, fmt.Errorf("%w %s %s: %w", ErrFailed, args[0], action, err)
}

// killGroup kills all processes of a group.
func killGroup(leader int) error {
	err := syscall.Kill(-leader, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

// place is the host and the port of a server's URL, else of its name.
func place(s serverswitch.Server) (host, port string) {
	if u, err := url.Parse(s.URL); err == nil && u.Host != "" {
		return u.Hostname(), u.Port()
	}
	if host, port, err := net.SplitHostPort(s.Name); err == nil {
		return host, port
	}
	return s.Name, ""
}
