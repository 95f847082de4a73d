package processes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"penstock/infra/clock"
)

// Options of a group.
type Options struct {
	// Clock paces the waiting. Defaults to the machine's.
	Clock clock.Clock
	// Env stands besides this process's own environment.
	Env []string
	// Logs is the folder for NAME.log and NAME.out of each process.
	Logs string
	// Patience is how long a process may take to become ready, and as long again
	// to end. Defaults to 30 s.
	Patience time.Duration
	// Program is what is started. Defaults to this program.
	Program string
	// Prefix stands before the arguments of each process: how the program is told
	// to attach itself to this one.
	Prefix []string
}

// Spec says what one process does.
type Spec struct {
	Name string
	Args []string
	// Ready returns nil once the process answers. It is asked again and again until
	// then. Without one a process is ready when it has been started.
	Ready func(ctx context.Context) error
}

// Group is a number of processes in the order of their start. Start and Stop
// belong to one goroutine.
type Group struct {
	o      Options
	list   []*process
	failed context.Context //nolint:containedctx // Ends when a process ends by itself; handed out by Failed.
	fail   context.CancelCauseFunc
	once   sync.Once
	err    error
}

// process is one of them.
type process struct {
	name     string
	log      string // the file with what it says
	cmd      *exec.Cmd
	alive    *os.File      // the writing end of its standard input
	done     chan struct{} // closed when it has ended
	err      error         // how, once done
	mu       sync.Mutex
	stopping bool
}

// New makes the folder of logs if need be and returns an empty group.
func New(o Options) (*Group, error) {
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	o.Patience = cmp.Or(o.Patience, 30*time.Second)
	if o.Program == "" {
		exe, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("processes: %w", err)
		}
		o.Program = exe
	}
	if err := os.MkdirAll(o.Logs, 0o755); err != nil {
		return nil, fmt.Errorf("processes: %w", err)
	}
	g := &Group{o: o}
	g.failed, g.fail = context.WithCancelCause(context.Background())
	return g, nil
}

// Failed ends when a process ends by itself; context.Cause says which, with the
// last lines that it wrote.
func (g *Group) Failed() context.Context { return g.failed }

// Start starts a process and returns when it is ready. ErrEnded, ErrNotReady.
func (g *Group) Start(ctx context.Context, s Spec) error {
	p, err := g.launch(s)
	if err != nil {
		return fmt.Errorf("start %s: %w", s.Name, err)
	}
	g.list = append(g.list, p)
	if s.Ready == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, g.o.Patience)
	defer cancel()
	last := errors.New("it was not asked")
	for {
		select {
		case <-p.done:
			return fmt.Errorf("start %s: %w", s.Name, p.ended())
		default:
		}
		if err := s.Ready(ctx); err == nil {
			return nil
		} else if ctx.Err() == nil {
			last = err
		}
		if g.o.Clock.Sleep(ctx, pollReady) != nil {
			return fmt.Errorf("start %s: %w: %w\n%s", s.Name, ErrNotReady, last, tail(p.log))
		}
	}
}

// pollReady is how often a process is asked whether it is ready.
const pollReady = 20 * time.Millisecond

// launch starts the program with its output in files.
func (g *Group) launch(s Spec) (*process, error) {
	p := &process{name: s.Name, log: filepath.Join(g.o.Logs, s.Name+".log"), done: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	out, err := os.Create(filepath.Join(g.o.Logs, s.Name+".out"))
	if err != nil {
		return nil, err
	}
	defer out.Close()
	in, alive, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	p.alive = alive
	args := append(append([]string{}, g.o.Prefix...), s.Args...)
	// It outlives the context of the call that starts it, and is stopped by Stop.
	p.cmd = exec.CommandContext(context.Background(), g.o.Program, args...)
	p.cmd.Env = append(os.Environ(), g.o.Env...)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = in, out, log
	apart(p.cmd)
	if err := p.cmd.Start(); err != nil {
		_ = alive.Close()
		return nil, err
	}
	go g.wait(p)
	return p, nil
}

// wait notes how a process ended.
func (g *Group) wait(p *process) {
	p.err = p.cmd.Wait()
	close(p.done)
	p.mu.Lock()
	stopping := p.stopping
	p.mu.Unlock()
	if !stopping {
		g.fail(fmt.Errorf("%s: %w", p.name, p.ended()))
	}
}

// ended says how a process ended that should not have, with its last lines.
func (p *process) ended() error {
	if p.err != nil {
		return fmt.Errorf("%w: %w\n%s", ErrEnded, p.err, tail(p.log))
	}
	return fmt.Errorf("%w\n%s", ErrEnded, tail(p.log))
}

// Stop ends the processes, the one that was started last first, each before the
// next is told to, and returns all failures. It is safe to call twice.
func (g *Group) Stop() error {
	g.once.Do(func() {
		var errs []error
		for i := len(g.list) - 1; i >= 0; i-- {
			if err := g.stop(g.list[i]); err != nil {
				errs = append(errs, fmt.Errorf("stop %s: %w", g.list[i].name, err))
			}
		}
		g.err = errors.Join(errs...)
	})
	return g.err
}

func (g *Group) stop(p *process) error {
	p.mu.Lock()
	p.stopping = true
	p.mu.Unlock()
	defer p.alive.Close()
	select {
	case <-p.done:
		return p.ended() // It was not told to.
	default:
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		_ = p.alive.Close() // Where there are no signals, this ends it too.
	}
	patience := g.o.Clock.NewTimer(g.o.Patience)
	defer patience.Stop()
	select {
	case <-p.done:
	case <-patience.C():
		_ = p.cmd.Process.Kill() // It may have ended this very moment.
		<-p.done
		return fmt.Errorf("%w after %v\n%s", ErrKilled, g.o.Patience, tail(p.log))
	}
	if p.err != nil {
		return fmt.Errorf("%w\n%s", p.err, tail(p.log))
	}
	return nil
}
