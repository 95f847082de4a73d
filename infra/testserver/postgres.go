package testserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"penstock/infra/clock"
)

const (
	// postgresPatience is how long a start may take on a loaded machine, with
	// the installation of a package before it.
	postgresPatience = 5 * time.Minute
	// postgresPrograms is where Debian keeps them; the path lacks them there.
	postgresPrograms = "/usr/lib/postgresql/*/bin"
	// socketRoom is how long the path of a socket's folder may be: the system
	// allows 107 bytes for all of it.
	socketRoom = 80
)

// postgres is this test binary's server.
var postgres struct {
	once  sync.Once
	err   error
	home  string   // of the socket
	alive *os.File // closing it ends the server; the system does when this process ends

	mu   sync.Mutex
	last int // number of the last database
}

// Postgres makes an empty database on the PostgreSQL server of this test binary,
// which the first call starts, and returns its URL for a superuser. The server
// listens on a socket in a temporary folder and writes nothing through to the
// disk. It ends with the process, however that ends; databases end with it.
// Where it can't be had the test fails.
func Postgres(t testing.TB) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), postgresPatience)
	defer cancel()
	postgres.once.Do(func() { postgres.err = startPostgres(ctx) })
	if postgres.err != nil {
		t.Fatalf("postgres: %v", postgres.err)
	}
	postgres.mu.Lock()
	defer postgres.mu.Unlock()
	postgres.last++
	name := fmt.Sprintf("test%d", postgres.last)
	c, err := pgx.Connect(ctx, postgresURL("postgres"))
	if err != nil {
		t.Fatalf("postgres: connect: %v", err)
	}
	defer func() { _ = c.Close(ctx) }()
	if _, err := c.Exec(ctx, "CREATE DATABASE "+name); err != nil {
		t.Fatalf("postgres: make database: %v", err)
	}
	return postgresURL(name)
}

func postgresURL(database string) string {
	return "postgres://postgres@/" + database + "?host=" + url.QueryEscape(postgres.home)
}

// startPostgres makes a cluster and starts a server on it.
func startPostgres(ctx context.Context) (err error) {
	programs, err := postgresFolder(ctx)
	if err != nil {
		return err
	}
	user, err := unprivileged()
	if err != nil {
		return err
	}
	base := os.TempDir()
	if len(base) > socketRoom {
		base = "/tmp"
	}
	home, err := os.MkdirTemp(base, "penstock-postgres-")
	if err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	if err := user.give(home); err != nil {
		return errors.Join(err, os.RemoveAll(home))
	}
	data := filepath.Join(home, "data")
	initdb := exec.CommandContext(ctx, filepath.Join(programs, "initdb"),
		"-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions")
	initdb.Dir, initdb.Env = home, append(os.Environ(), "HOME="+home)
	user.run(initdb)
	if out, err := initdb.CombinedOutput(); err != nil {
		return errors.Join(fmt.Errorf("initdb: %w: %s", err, out), os.RemoveAll(home))
	}
	// It ends by itself: its shared memory outlives it if it is killed.
	g := guarding{home: home, signal: "QUIT", env: []string{"HOME=" + home}, user: user}
	alive, err := g.start(filepath.Join(programs, "postgres"), postgresArgs(data, home)...)
	if err != nil {
		return errors.Join(err, os.RemoveAll(home))
	}
	postgres.home, postgres.alive = home, alive
	if err := awaitPostgres(ctx); err != nil {
		log, _ := os.ReadFile(filepath.Join(home, logFile))
		_ = alive.Close()
		return fmt.Errorf("%w; it said: %s", err, log)
	}
	return nil
}

func postgresArgs(data, socket string) []string {
	args := []string{"-D", data, "-k", socket}
	for _, setting := range []string{
		"listen_addresses=", "max_connections=200", "shared_buffers=64MB",
		// Nothing outlives the test: what a power cut leaves is of no interest.
		"fsync=off", "full_page_writes=off", "synchronous_commit=off",
		"wal_level=minimal", "max_wal_senders=0", "checkpoint_timeout=1h", "max_wal_size=4GB",
		"log_min_messages=fatal", "log_min_error_statement=panic",
	} {
		args = append(args, "-c", setting)
	}
	return args
}

func awaitPostgres(ctx context.Context) error {
	for {
		c, err := pgx.Connect(ctx, postgresURL("postgres"))
		if err == nil {
			return c.Close(ctx)
		}
		if clock.System().Sleep(ctx, 10*time.Millisecond) != nil {
			return fmt.Errorf("no answer: %w", err)
		}
	}
}

// postgresFolder returns the folder of the newest server's programs. If there is
// none and we may, Debian's package is installed.
func postgresFolder(ctx context.Context) (string, error) {
	return installed(ctx, "postgresql", findPostgres)
}

func findPostgres() (string, error) {
	folders, _ := filepath.Glob(postgresPrograms)
	slices.SortFunc(folders, func(a, b string) int {
		// The newest first; version 9 is older than 15.
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(b, a))
	})
	if program, err := exec.LookPath("postgres"); err == nil {
		// A link in the path is followed: the other programs lie beside its target.
		if program, err = filepath.EvalSymlinks(program); err == nil {
			folders = append([]string{filepath.Dir(program)}, folders...)
		}
	}
	for _, folder := range folders {
		if present(filepath.Join(folder, "postgres")) && present(filepath.Join(folder, "initdb")) {
			return folder, nil
		}
	}
	return "", errors.New("no postgres and initdb in PATH or " + postgresPrograms)
}
