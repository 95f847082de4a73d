package main

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"penstock/infra/clock/stall"
	"penstock/infra/testserver"
	"penstock/schemas/control"
)

var routing = regexp.MustCompile(`(?m)^router at ([^\n]*?)(?:; metrics and health at (\S+))?\n`)

// route starts penstock router and waits until it says what it tends.
func route(t *testing.T, config, url, state string, more ...string) (s *server, said string) {
	t.Helper()
	args := append([]string{"router", "--config", config, "--nats", url, "--name", "one", "--state", state}, more...)
	s = start(t, args...)
	eventually(t, "router to stand", func() bool {
		select {
		case <-s.ended:
			t.Fatalf("it has ended: %s", s.errs.String())
		default:
		}
		m := routing.FindStringSubmatch(s.out.String())
		if m != nil {
			said, s.telemetry = m[1], m[2]
		}
		return m != nil
	})
	return s, said
}

// routed is a folder with a configuration of three sites and a section router.
func routed(t *testing.T, section string) (dir, config string) {
	t.Helper()
	dir = t.TempDir()
	config = filepath.Join(dir, "router.yaml")
	writeFile(t, config, `
sites:
  - {name: east, lat: 37.4, lon: -79.8, capacity: 100MB/h}
  - {name: west, lat: 37.8, lon: -122.4, capacity: 100MB/h}
  - {name: north, lat: 47.6, lon: -100.3, capacity: 100MB/h}
bus: {partitions: 2, sync: interval, flush: 100ms}
telemetry: {listen: "127.0.0.1:0"}
`+section)
	return dir, config
}

// TestRouterSteersHAProxyUnderLoad is what issue 5 asks of HAProxy, by a command on
// the bus and penstock router, with wrk at a real HAProxy: weights in force within a
// second, exact to their resolution; foreign servers untouched; a drain and a reload
// that lose no request, and a state that outlives the reload. Then the bus goes, and
// the router is started again: what was in force stays, and is set again when somebody
// changes it.
func TestRouterSteersHAProxyUnderLoad(t *testing.T) {
	t.Parallel()
	b := newBalancer(t)
	dir, config := routed(t, b.section())
	at := testserver.FreeAddress(t)
	url := "nats://" + at
	r, said := route(t, config, url, filepath.Join(dir, "router")) // before the bus is there
	if said != "no address of its own, for edge" {
		t.Errorf("it says that it is at %s", said)
	}
	core := func() *server {
		return serve(t, "--config", configure(t, dir, settings{partitions: 2, alpha: 0.3}), "--state", filepath.Join(dir, "state"), "--listen", at, "--name", "core")
	}
	bus := core()
	r.awaitReady(true)
	c := conduct(t, url)
	foreign := b.foreign()
	end := b.load()

	last, meter := map[string]float64{}, stall.Start(t.Context())
	for epoch, parts := range []map[string]float64{
		{"east": 0.62, "west": 0.38, "north": 0}, {"east": 0.1, "west": 0.1, "north": 0.8}, {"east": 0.2, "west": 0.5, "north": 0.3},
	} {
		sent, stood := time.Now(), meter.Total()
		c.send(uint64(epoch+1), "search", parts)
		eventually(t, "the weights", func() bool { return exact(b.weights(), parts) })
		took := time.Since(sent)
		o := c.answered(uint64(epoch+1), 1)["edge"]
		got := b.parts()
		t.Logf("epoch %d: in force after %v; requests %v", epoch+1, took.Round(time.Millisecond), got)
		if took > time.Second+meter.Total()-stood || o == nil || o.Status != control.Done || o.By != "one" {
			t.Errorf("epoch %d in force after %v: %+v", epoch+1, took, o)
		}
		for site, part := range parts {
			if math.Abs(got[site]-part) > 0.035 || (got[site] == 0) != (part == 0) { // some were on their way, and rounding
				t.Errorf("epoch %d: %s got %v of the requests, not %v", epoch+1, site, got[site], part)
			}
		}
		last = parts
	}
	if after := b.foreign(); after != foreign || foreign == "" {
		t.Errorf("foreign servers: before\n%s\nafter\n%s", foreign, after)
	}

	// A drain, while a request is running there.
	running := make(chan error, 1)
	release := make(chan struct{})
	go func() { running <- b.hold(release, "north") }()
	<-b.holding
	drained := map[string]float64{"east": 0.5, "west": 0.5, "north": 0}
	c.send(4, "search", drained)
	c.answered(4, 1)
	if got := b.parts(); got["north"] > 0.02 { // what was on its way
		t.Errorf("draining, north got %v of the requests", got["north"])
	}
	if got := b.parts(); got["north"] != 0 {
		t.Errorf("drained, north got %v of the requests", got["north"])
	}
	close(release)
	if err := <-running; err != nil {
		t.Errorf("the request that was running: %v", err)
	}

	// A reload begins with the weights that were set: nothing had to be set again.
	c.send(5, "search", last)
	c.answered(5, 1)
	b.reload()
	if got := b.weights(); !exact(got, last) {
		t.Errorf("after the reload: weights %v, not %v", got, last)
	}
	if got := b.parts(); math.Abs(got["west"]-0.5) > 0.05 {
		t.Errorf("after the reload: %v", got)
	}
	if n := r.lostTables(); n != 0 {
		t.Errorf("%d tables had to be set again", n)
	}
	if after := b.foreign(); after != foreign {
		t.Errorf("foreign servers: before\n%s\nafter\n%s", foreign, after)
	}

	// Without the bus, and after a restart without it.
	kept(t, dir, "edge", 5)
	bus.kill()
	r.kill()
	r, _ = route(t, config, url, filepath.Join(dir, "router"))
	b.ask("set server search/east-1 weight 7")
	eventually(t, "the weights that somebody changed", func() bool { return exact(b.weights(), last) })
	eventually(t, "that to be counted", func() bool { return r.lostTables() > 0 })
	if l := end(); l.Failed > 0 || l.Requests < 500 {
		t.Errorf("load: %+v", l)
	} else {
		t.Logf("%d requests, %d failed, p99 %v", l.Requests, l.Failed, l.P99)
	}
	core()
	r.awaitReady(true)
	c = conduct(t, url)
	next := map[string]float64{"east": 1, "west": 0, "north": 0}
	c.send(6, "search", next)
	eventually(t, "a command after the bus came back", func() bool { return exact(b.weights(), next) })
	r.stop()
}

// kept waits until a router has kept a table of a target for a restart.
func kept(t *testing.T, dir, target string, epoch int) {
	t.Helper()
	eventually(t, "the table to be kept", func() bool {
		b, err := os.ReadFile(filepath.Join(dir, "router", "split-"+target+".json"))
		return err == nil && strings.Contains(string(b), fmt.Sprintf(`"epoch":%d,`, epoch))
	})
}

// lostTables is how often a target was not as it was told.
func (s *server) lostTables() int {
	return s.count("penstock_retries_total", `"retried lost-table"`)
}

// hold sends requests until one runs at a site, and lets that one run until it is
// released.
func (b *balancer) hold(release chan struct{}, site string) error {
	for {
		answer := make(chan error, 1)
		var from string
		go func() {
			resp, err := http.Get("http://" + b.proxy.Address + "/held")
			if err == nil {
				var body []byte
				body, err = io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				if from = string(body); err == nil && resp.StatusCode != http.StatusOK {
					err = fmt.Errorf("status %d", resp.StatusCode)
				}
			}
			answer <- err
		}()
		h := <-b.held
		if h.site != site {
			close(h.release)
			if err := <-answer; err != nil {
				return err
			}
			continue
		}
		close(b.holding)
		<-release
		close(h.release)
		if err := <-answer; err != nil {
			return err
		}
		if from != site {
			return fmt.Errorf("it was answered by %s", from)
		}
		return nil
	}
}
