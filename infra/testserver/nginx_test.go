package testserver

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	"penstock/infra/processor"
)

// TestProxies starts NGINX with one answer, and NGINX and HAProxy as proxies in
// front of it; each gives the answer, uses processor time under load, and is gone
// with its files when its test has ended.
func TestProxies(t *testing.T) {
	var all []*Program
	t.Run("run", func(t *testing.T) {
		back := NGINX(t, 1, func(address, _ string) string {
			return fmt.Sprintf("server { listen %s; location / { return 200 'from behind'; } }", address)
		})
		nginx := NGINX(t, 2, func(address, _ string) string {
			return fmt.Sprintf("server { listen %s; location / { proxy_pass http://%s; } }", address, back.Address)
		})
		haproxy := HAProxy(t, func(address, _ string) string {
			return fmt.Sprintf(`defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
listen all
  bind %s
  server back %s
`, address, back.Address)
		})
		all = []*Program{back, nginx, haproxy}
		for _, p := range all {
			resp, err := http.Get("http://" + p.Address)
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if err != nil || string(b) != "from behind" {
				t.Errorf("answer %q, %v", b, err)
			}
			pid, err := p.PID()
			if err != nil {
				t.Fatal(err)
			}
			// A few seconds' work, on a machine that is busy with others for longer.
			requests, used := uint64(0), time.Duration(0)
			for late := time.Now().Add(time.Minute); requests < 100 || used <= 0; {
				load := Wrk(t, Load{URL: "http://" + p.Address, Connections: 4, Duration: time.Second})
				requests += load.Requests
				if load.Failed > 0 || load.P50 <= 0 || load.P99 < load.P50 {
					t.Errorf("load: %+v", load)
				}
				if used, err = processor.Time(pid); err != nil || time.Now().After(late) {
					t.Fatalf("%d requests, processor time %v, %v", requests, used, err)
				}
			}
		}
		http.DefaultClient.CloseIdleConnections()
	})
	late := time.Now().Add(time.Minute)
	for _, p := range all {
		for {
			if _, err := os.Stat(p.home); os.IsNotExist(err) {
				break
			}
			if time.Now().After(late) {
				t.Fatalf("%s is still there", p.home)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
}

func TestWrkWithoutResult(t *testing.T) {
	if r, err := parseWrk("Running 1s test\nresult {"); err == nil {
		t.Errorf("half a result was read: %+v", r)
	}
}
