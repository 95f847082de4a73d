package entry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"penstock/producers/entry"
)

func TestDrain(t *testing.T) {
	t.Parallel()
	began, finish := make(chan bool, 1), make(chan bool)
	p := run(t, []string{service(t, func(w http.ResponseWriter, _ *http.Request) {
		began <- true
		<-finish
		fmt.Fprint(w, "finished")
	})}, nil)
	idle, fresh, busy := dial(t, p), dial(t, p), dial(t, p)
	go func() { finish <- true }()
	idle.send(t, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	<-began
	if a := idle.next(t, "GET"); a == nil || a.Close {
		t.Fatalf("got %+v", a)
	}
	busy.send(t, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	<-began
	ended := make(chan error, 1)
	go func() { ended <- p.stop() }()
	if a := idle.next(t, "GET"); a != nil {
		t.Errorf("the idle connection said %+v", a)
	}
	if a := fresh.next(t, "GET"); a != nil {
		t.Errorf("the fresh connection said %+v", a)
	}
	if c, err := net.Dial("tcp", p.Addr().String()); err == nil {
		c.Close()
		t.Error("connections are still accepted")
	}
	finish <- true
	if a := busy.next(t, "GET"); a == nil || a.body != "finished" || !a.Close {
		t.Errorf("the running request got %+v", a)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if n := len(p.rows.all); n != 2 {
		t.Errorf("%d rows", n)
	}
	if err := p.Run(context.Background()); !errors.Is(err, entry.ErrRunning) {
		t.Errorf("a second run: %v", err)
	}
}

func TestDrainDoesNotLastForEver(t *testing.T) {
	t.Parallel()
	p := run(t, []string{service(t, func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })},
		func(o *entry.Options) { o.Drain = 50 * time.Millisecond })
	w := dial(t, p)
	w.send(t, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	tunnel := run(t, []string{echo(t)}, func(o *entry.Options) { o.Drain = 50 * time.Millisecond })
	v := dial(t, tunnel)
	v.send(t, upgradeRequest)
	if resp, err := http.ReadResponse(v.r, nil); err != nil || resp.StatusCode != http.StatusSwitchingProtocols { //nolint:bodyclose // it ends with the connection
		t.Fatalf("got %+v, %v", resp, err)
	}
	for _, x := range []*point{p, tunnel} {
		if err := x.stop(); err != nil {
			t.Error(err)
		}
	}
	for _, c := range []*wire{w, v} {
		if a := c.next(t, "GET"); a != nil {
			t.Errorf("got %+v", a)
		}
	}
	if row := tunnel.rows.await(t, 1)[0]; row.Status != 101 {
		t.Errorf("row %+v", row)
	}
}

// Streams of HTTP/2 that run end as they should; new ones go elsewhere.
func TestDrainOfHTTP2(t *testing.T) {
	t.Parallel()
	began, finish := make(chan bool, 1), make(chan bool)
	p := run(t, []string{service(t, func(w http.ResponseWriter, _ *http.Request) {
		began <- true
		<-finish
		fmt.Fprint(w, "finished")
	})}, func(o *entry.Options) { o.H2C = true })
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()
	got := make(chan error, 1)
	go func() {
		resp, err := (&http.Client{Transport: transport}).Get(p.url + "/")
		if err == nil {
			var b []byte
			if b, err = io.ReadAll(resp.Body); err == nil && string(b) != "finished" {
				err = fmt.Errorf("got %q", b)
			}
			resp.Body.Close()
		}
		got <- err
	}()
	<-began
	ended := make(chan error, 1)
	go func() { ended <- p.stop() }()
	for { // until nothing is accepted any more
		c, err := net.Dial("tcp", p.Addr().String())
		if err != nil {
			break
		}
		c.Close()
		time.Sleep(time.Millisecond)
	}
	finish <- true
	if err := <-got; err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// Who is cut off has a row like all others, before Run returns: after it nobody
// takes one.
func TestRequestsThatAreCutOffHaveRows(t *testing.T) {
	t.Parallel()
	began := make(chan bool, 1)
	hangs := service(t, func(_ http.ResponseWriter, r *http.Request) {
		began <- true
		<-r.Context().Done()
	})
	for name, drain := range map[string]time.Duration{"at once": -1, "after a while": 100 * time.Millisecond} {
		p := run(t, []string{hangs}, func(o *entry.Options) { o.Drain, o.H2C = drain, true })
		dial(t, p).send(t, "GET /u/ada/x HTTP/1.1\r\nHost: x\r\n\r\n")
		<-began
		transport := &http.Transport{Protocols: new(http.Protocols)}
		transport.Protocols.SetUnencryptedHTTP2(true)
		go func() {
			if resp, err := (&http.Client{Transport: transport}).Get(p.url + "/u/ada/x"); err == nil {
				resp.Body.Close()
			}
			transport.CloseIdleConnections()
		}()
		<-began
		if err := p.stop(); err != nil {
			t.Error(err)
		}
		p.rows.mu.Lock()
		if n := len(p.rows.all); n != 2 {
			t.Errorf("%s: %d rows when Run has returned", name, n)
		}
		p.rows.mu.Unlock()
	}
	for range 3 {
		p := run(t, []string{echo(t)}, func(o *entry.Options) { o.Drain = time.Millisecond })
		w := dial(t, p)
		w.send(t, upgradeRequest)
		if resp, err := http.ReadResponse(w.r, nil); err != nil || resp.StatusCode != http.StatusSwitchingProtocols { //nolint:bodyclose // it ends with the connection
			t.Fatalf("got %+v, %v", resp, err)
		}
		if err := p.stop(); err != nil {
			t.Error(err)
		}
		p.rows.mu.Lock()
		if n := len(p.rows.all); n != 1 {
			t.Errorf("%d rows of a connection that had changed its protocol", n)
		}
		p.rows.mu.Unlock()
	}
}
