package testserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"penstock/infra/clock"
)

const (
	// programPatience is how long a start may take on a loaded machine, with the
	// installation of a package before it.
	programPatience = 5 * time.Minute
	// programStarts is how often a start is tried on another port.
	programStarts = 5
)

// Program is a server that a test has started with a configuration of its own.
// It ends with the test, or with the test binary if that is killed.
type Program struct {
	// Address is host:port on the loopback interface.
	Address string
	home    string
	alive   io.Closer
}

// NGINX starts Debian's NGINX. settings returns what stands in the http block of
// its configuration, for the address to listen on and the folder of its files,
// which exists. workers is the number of its processes. Where it can't be had the
// test fails.
func NGINX(t testing.TB, workers int, settings func(address, folder string) string) *Program {
	t.Helper()
	return startProgram(t, "nginx", "nginx", func(address, folder string) (string, []string, error) {
		conf := filepath.Join(folder, "nginx.conf")
		text := fmt.Sprintf(nginxConf, workers, folder, settings(address, folder))
		return "TERM", []string{"-p", folder, "-c", conf, "-e", "stderr"}, writeFile(conf, text)
	})
}

// nginxConf is the configuration around the http block. Folders that it makes at
// its start lie in ours.
const nginxConf = `worker_processes %d;
daemon off;
pid nginx.pid;
error_log stderr warn;
events { worker_connections 8192; }
http {
	access_log off;
	root %s;
	default_type text/plain;
	client_body_temp_path body;
	proxy_temp_path proxy;
	fastcgi_temp_path fastcgi;
	uwsgi_temp_path uwsgi;
	scgi_temp_path scgi;
	%s
}
`

func writeFile(name, text string) error {
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	return nil
}

// prepare writes the files of a program and says by which signal it ends and how
// it is called.
type prepare func(address, folder string) (signal string, args []string, err error)

// startProgram starts a program of a Debian package on a free port.
func startProgram(t testing.TB, program, pack string, p prepare) *Program {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), programPatience)
	defer cancel()
	path, err := debianProgram(ctx, program, pack)
	if err != nil {
		t.Fatalf("%s: %v", program, err)
	}
	var tries []error
	for range programStarts {
		s, err := tryProgram(ctx, path, p)
		if err == nil {
			t.Cleanup(s.stop)
			return s
		}
		tries = append(tries, err)
	}
	t.Fatalf("%s: %v", program, errors.Join(tries...))
	return nil
}

func tryProgram(ctx context.Context, path string, p prepare) (s *Program, err error) {
	home, err := os.MkdirTemp("", "penstock-"+filepath.Base(path)+"-")
	if err != nil {
		return nil, fmt.Errorf("make folder: %w", err)
	}
	guarded := false
	defer func() {
		if !guarded {
			err = errors.Join(err, os.RemoveAll(home))
		}
	}()
	// Its workers may be another user.
	if err := os.Chmod(home, 0o755); err != nil {
		return nil, fmt.Errorf("open folder: %w", err)
	}
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	signal, args, err := p(address, home)
	if err != nil {
		return nil, err
	}
	alive, err := guarding{home: home, signal: signal}.start(path, args...)
	if err != nil {
		return nil, err
	}
	guarded = true
	s = &Program{Address: address, home: home, alive: alive}
	if err := s.await(ctx); err != nil {
		log, _ := os.ReadFile(filepath.Join(home, logFile))
		s.stop()
		return nil, fmt.Errorf("%w; it said: %s", err, log)
	}
	return s, nil
}

// stop ends the program; its guard removes its files.
func (s *Program) stop() { _ = s.alive.Close() }

// await waits until the program listens.
func (s *Program) await(ctx context.Context) error {
	for {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.Address)
		if err == nil {
			_ = c.Close()
			return nil
		}
		if pid, perr := s.PID(); perr == nil && !running(pid) {
			return errors.New("it ended")
		}
		if clock.System().Sleep(ctx, 5*time.Millisecond) != nil {
			return fmt.Errorf("no answer: %w", err)
		}
	}
}

// PID is the number of its first process.
func (s *Program) PID() (int, error) {
	b, err := os.ReadFile(filepath.Join(s.home, pidFile))
	if err != nil {
		return 0, fmt.Errorf("process of program: %w", err)
	}
	return strconv.Atoi(strings.TrimSpace(string(b)))
}
