package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/testserver"
)

// asProgram makes the test binary the program that it tests.
const asProgram = "PENSTOCK_EXAMPLE_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	bustest.Main(m)
}

// TestTheGoProgram runs the example as a process of its own: it starts without its bus,
// serves, and publishes when the bus has come.
func TestTheGoProgram(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	at := testserver.FreeAddress(t)
	var log strings.Builder
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(ctx, self, "-nats", "nats://"+at, "-spool", t.TempDir())
	c.Env = append(os.Environ(), asProgram+"=1")
	c.Stderr = &log
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	s := bufio.NewScanner(out)
	if !s.Scan() {
		t.Fatalf("it says nothing: %v\n%s", c.Wait(), log.String())
	}
	const n = 20
	for i := range n {
		q, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s/u/owner-%d", s.Text(), i), nil)
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("X-User", "anna")
		a, err := http.DefaultClient.Do(q)
		if err != nil || a.StatusCode != http.StatusOK {
			t.Fatalf("%+v, %v", a, err)
		}
		_ = a.Body.Close()
	}
	http.DefaultClient.CloseIdleConnections()
	b := bustest.Start(t, func(o *bus.Options) { o.Listen, o.Logger = at, zerolog.Nop() })
	await := func() (rows int) {
		for _, s := range read(t, b) {
			rows += len(s.owners())
		}
		return rows
	}
	for deadline := time.Now().Add(bustest.Timeout); await() < n; {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d rows are there", await(), n)
		}
	}
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("it ended with %v\n%s", err, log.String())
	}
	for _, s := range read(t, b) {
		for owner, r := range s.owners() {
			if r.User != "anna" || r.ToSite != "us-east" || r.Status != 200 || r.Class != "GET /u/{owner}" {
				t.Errorf("%s: %+v", owner, r)
			}
		}
	}
}
