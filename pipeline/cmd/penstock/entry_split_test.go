package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/clock/stall"
	"penstock/infra/testserver"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// slowable is a service of a site that can be made slow, and keeps count.
type slowable struct {
	address string
	delay   atomic.Int64 // ns
	served  atomic.Int64
}

func newSlowable(t testing.TB) *slowable {
	t.Helper()
	s := &slowable{address: testserver.FreeAddress(t)}
	server := &http.Server{Addr: s.address, ReadHeaderTimeout: patience, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Penstock-Probe") == "" {
			s.served.Add(1)
		}
		select {
		case <-time.After(time.Duration(s.delay.Load())):
		case <-r.Context().Done():
		}
		_, _ = io.WriteString(w, "served\n")
	})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("service: %v", err)
		}
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-ended
	})
	return s
}

// visitors ask the entry points of sites in an open loop until the test ends.
func (e *front) visitors(each time.Duration, sites ...string) (failed func(site string) int64) {
	ctx, cancel := context.WithCancel(e.t.Context())
	var all sync.WaitGroup
	failures := map[string]*atomic.Int64{}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: patience}
	for _, site := range sites {
		failures[site] = new(atomic.Int64)
		all.Go(func() {
			tick := time.NewTicker(each)
			defer tick.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
				all.Go(func() {
					r, err := http.NewRequestWithContext(ctx, http.MethodGet, e.urls[site]+"/catalogue", nil)
					if err != nil {
						return
					}
					resp, err := client.Do(r)
					if err == nil {
						_, _ = io.Copy(io.Discard, resp.Body)
						_ = resp.Body.Close()
						if resp.StatusCode != http.StatusOK {
							err = fmt.Errorf("status %d", resp.StatusCode)
						}
					}
					if err != nil && ctx.Err() == nil {
						failures[site].Add(1)
					}
				})
			}
		})
	}
	e.t.Cleanup(func() {
		cancel()
		all.Wait()
		client.CloseIdleConnections()
	})
	return func(site string) int64 { return failures[site].Load() }
}

// decided reads the records of split that are there from now on.
func (e *front) decided(c *bus.Client) *bus.Reader {
	e.t.Helper()
	last := uint64(0)
	if m, err := c.Last(e.t.Context(), subject.CommandsStream, subject.Decisions(string(control.Split))); err == nil {
		last = m.Seq
	}
	r, err := c.Read(e.t.Context(), subject.CommandsStream, []string{subject.Decisions(string(control.Split))}, last+1)
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(r.Close)
	return r
}

// picks is how often an entry point has chosen a site.
func (s *server) picks(site string) int {
	s.t.Helper()
	return s.count("penstock_entry_picks_total", fmt.Sprintf("to_site=%q", site))
}

// TestFromAFaultToTheRatioInForce kills the entry point of a third site under load and
// makes the service of the first one slow: windows go on after idle_timeout, and
// within two windows, and idle_timeout for the dead one, calls of the first site go
// elsewhere, at its entry point. No request of the others fails.
func TestFromAFaultToTheRatioInForce(t *testing.T) {
	t.Parallel()
	const window, idle = 10 * time.Second, 2 * time.Second
	services, addresses := map[string]*slowable{}, map[string]string{}
	for _, s := range frontSites {
		services[s] = newSlowable(t)
		services[s].delay.Store(int64(3 * time.Millisecond))
		addresses[s] = services[s].address
	}
	e := newFront(t, frontOptions{idle: idle, services: addresses, more: "components: [{name: web}]\nsplit: {min_samples: 20}\n"})
	e.serve()
	must(t, "mode", "split", "act", "--nats", e.nats())
	e.enter(frontSites...)
	failed := e.visitors(25*time.Millisecond, frontSites...)
	records := e.decided(connect(t, e.nats(), ""))
	next := func() *control.Decision {
		t.Helper()
		d, err := control.DecodeDecision(bustest.Take(t, records, 1)[0].Data)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	first := next()
	for next().Window.End.Sub(first.Window.End) < window {
	}
	e.entries["north"].kill()
	services["east"].delay.Store(int64(300 * time.Millisecond))
	fault, meter := time.Now(), stall.Start(t.Context())
	var went time.Duration // until a window that begins after the fault is decided
	for went == 0 {
		if d := next(); d.Window.End.After(fault.Add(window)) {
			went = time.Since(d.Window.End)
		}
	}
	if limit := idle + 3*time.Second + meter.Total(); went > limit {
		t.Errorf("a window was decided %s after its end, expected at most %s: one entry point is dead", went, limit)
	}
	before := e.entries["east"].picks("west") + e.entries["east"].picks("north")
	eventually(t, "calls of east to go elsewhere", func() bool {
		return e.entries["east"].picks("west")+e.entries["east"].picks("north") > before+5
	})
	took := time.Since(fault)
	t.Logf("a window was decided %s after its end; calls go elsewhere %s after the fault", went, took)
	if limit := 2*window + idle + 3*time.Second + meter.Total(); took > limit {
		t.Errorf("calls go elsewhere %s after the fault, expected within %s", took, limit)
	}
	for _, site := range []string{"east", "west"} {
		if n := failed(site); n > 0 {
			t.Errorf("%d requests at %s failed", n, site)
		}
	}
}
