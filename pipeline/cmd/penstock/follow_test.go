package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"penstock/infra/testserver"
	"penstock/pipeline/report"
	"penstock/schemas/window"
)

// TestFollowNGINX follows the log of a real NGINX under load, which is rotated as
// logrotate does (renamed, then USR1), while the follower is killed again and
// again: every answer of the server is one row in the windows, none late, none
// twice. The follower starts before there is a bus.
func TestFollowNGINX(t *testing.T) {
	requests, rotations, kills := 4000, 4, 4
	if os.Getenv("PENSTOCK_WHOLE") != "" {
		requests, rotations, kills = 60000, 20, 20
	}
	logs := t.TempDir()
	nginx := testserver.NGINX(t, 1, func(address, _ string) string {
		return fmt.Sprintf(`
log_format upstreamed '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent" $request_time';
server {
	listen %s;
	access_log %s/access.log upstreamed;
	location / { return 200 "0123456789"; }
}`, address, logs)
	})
	dir := t.TempDir()
	config := filepath.Join(dir, "penstock.yaml")
	writeFile(t, config, fmt.Sprintf(`
sites: [{name: east, lat: 37, lon: -79, capacity: 1TB/h, store: %q}]
bus: {partitions: 2, sync: interval, flush: 100ms}
privacy: {user_key: "only for this test"}
telemetry: {listen: "127.0.0.1:0"}
`, "dir:"+filepath.Join(dir, "store")))
	s := serve(t, "--config", config, "--state", filepath.Join(dir, "state"), "--listen", "127.0.0.1:0")
	args := []string{
		"follow", filepath.Join(logs, "access.log"), "--site", "east", "--config", config, "--nats", s.bus, "--name", "edge",
		"--state", filepath.Join(dir, "follow"), "--disorder", "3s",
		"--format", `nginx:$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent" $request_time`,
	}
	follower := start(t, args...)
	draw := rand.New(rand.NewPCG(4, 7))
	steps := make([]string, 0, rotations+kills)
	for range rotations {
		steps = append(steps, "rotate")
	}
	for range kills {
		steps = append(steps, "kill")
	}
	draw.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
	done := 0
	for i, step := range steps {
		for upto := (i + 1) * requests / len(steps); done < upto; done++ {
			ask(t, fmt.Sprintf("http://%s/owner%d/x", nginx.Address, done%50))
		}
		switch step {
		case "rotate":
			rotated(t, logs, i)
			pid, err := nginx.PID()
			if err != nil {
				t.Fatal(err)
			}
			if err := syscall.Kill(pid, syscall.SIGUSR1); err != nil {
				t.Fatal(err)
			}
		case "kill":
			follower.kill()
			follower = start(t, args...)
		}
	}
	var account window.Account
	eventually(t, fmt.Sprintf("%d rows in windows", done), func() bool {
		var out, errs bytes.Buffer
		if code := run(t.Context(), []string{"--json", "audit", "--nats", s.bus}, &out, &errs); code != 0 {
			t.Fatalf("audit: %d: %s%s", code, out.String(), errs.String())
		}
		var audited report.Audit
		if err := json.Unmarshal(out.Bytes(), &audited); err != nil {
			t.Fatalf("%v: %s", err, out.String())
		}
		for _, g := range audited.Groups {
			if g.Group == window.Fast {
				account = g.Total
			}
		}
		return account.Counted >= int64(done)
	})
	follower.stop()
	if account.Counted != int64(done) || account.Late+account.Malformed+account.Quarantined > 0 {
		t.Errorf("%d requests were answered, and the account is %+v", done, account)
	}
	if !strings.Contains(follower.out.String(), "format nginx:") {
		t.Errorf("the choice of the format is not said: %s", follower.out.String())
	}
	s.stop()
}

// ask makes one request that must be answered with 200.
func ask(t testing.TB, url string) {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close() // nothing is read from it
	if res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", url, res.Status)
	}
}

// rotated renames the log, and those of before it, as logrotate does.
func rotated(t testing.TB, logs string, upto int) {
	t.Helper()
	for i := upto; i > 0; i-- {
		_ = os.Rename(filepath.Join(logs, fmt.Sprintf("access.log.%d", i)), filepath.Join(logs, fmt.Sprintf("access.log.%d", i+1))) // not all are there
	}
	if err := os.Rename(filepath.Join(logs, "access.log"), filepath.Join(logs, "access.log.1")); err != nil {
		t.Fatal(err)
	}
}
