package testserver

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// TestPostgres: each call returns an empty database of its own on one server.
func TestPostgres(t *testing.T) {
	var at []string
	for range 2 {
		c, err := pgx.Connect(t.Context(), Postgres(t))
		if err != nil {
			t.Fatal(err)
		}
		var started string
		err = c.QueryRow(t.Context(), "SELECT pg_postmaster_start_time()::text").Scan(&started)
		if err == nil {
			_, err = c.Exec(t.Context(), "CREATE TABLE one (id int)") // fails where it exists
		}
		if err != nil {
			t.Fatal(err)
		}
		at = append(at, started)
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if at[0] != at[1] {
		t.Errorf("servers started at %q, want one", at)
	}
}

// postgresChild makes a test binary that has a server, says where, and waits to
// be killed.
const postgresChild = "PENSTOCK_TEST_POSTGRES_CHILD"

// TestPostgresEndsWithUs: the server of a test binary that is killed goes, and
// so do its files.
func TestPostgresEndsWithUs(t *testing.T) {
	if os.Getenv(postgresChild) != "" {
		Postgres(t)
		_, _ = os.Stdout.WriteString("home " + postgres.home + "\n")
		select {}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run", "^TestPostgresEndsWithUs$")
	cmd.Env = append(os.Environ(), postgresChild+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said []byte
	for !bytes.Contains(said, []byte("\n")) {
		b := make([]byte, 1024)
		n, err := out.Read(b)
		if err != nil {
			t.Fatalf("the child ended: %v: %s", err, said)
		}
		said = append(said, b[:n]...)
	}
	_, home, _ := strings.Cut(strings.TrimSpace(string(said)), "home ")
	pid, err := os.ReadFile(filepath.Join(home, "data", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	server, _, _ := strings.Cut(string(pid), "\n")
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	late := time.Now().Add(time.Minute)
	for {
		_, gone := os.Stat(home)
		_, dead := os.Stat("/proc/" + server)
		if os.IsNotExist(gone) && os.IsNotExist(dead) {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("server %s or its folder outlives the test binary: %v, %v", server, dead, gone)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
