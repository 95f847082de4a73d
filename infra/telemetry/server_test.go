package telemetry_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"penstock/infra/clock"
	"penstock/infra/telemetry"
)

const token = "0123456789abcdef"

// serve runs a server until the test ends and returns its readiness and
// address.
func serve(t *testing.T, token string) (*telemetry.Readiness, string) {
	t.Helper()
	ready := telemetry.NewReadiness(clock.NewManual(noon))
	r := prometheus.NewRegistry()
	m, err := telemetry.New(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	m.Outcomes.Inc("placement", "done")
	s, err := telemetry.NewServer(telemetry.ServerOptions{
		Gatherer: r, Listen: "127.0.0.1:0", Logger: zerolog.Nop(), Readiness: ready, Token: token,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run returned %v", err)
		}
		if err := s.Run(context.Background()); !errors.Is(err, telemetry.ErrClosed) {
			t.Errorf("a second Run returned %v", err)
		}
		s.Close()
	})
	return ready, s.Addr()
}

// ask returns the status and body of a request.
func ask(t *testing.T, method, addr, path string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+addr+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if req.Header.Set(header[i], header[i+1]); header[i] == "Host" {
			req.Host = header[i+1]
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func TestMetricsHealthAndReadiness(t *testing.T) {
	ready, addr := serve(t, "")
	if code, body := ask(t, "GET", addr, "/metrics"); code != 200 || !strings.Contains(body, `penstock_outcomes_total{kind="placement",status="done"} 1`) {
		t.Errorf("metrics: %d %s", code, body)
	}
	check := func(path string, code int, expected string) {
		t.Helper()
		gotCode, body := ask(t, "GET", addr, path)
		if gotCode != code || !strings.HasPrefix(strings.TrimSpace(body), expected) || !json.Valid([]byte(body)) {
			t.Errorf("%s: got %d %s\nexpected %d %s", path, gotCode, body, code, expected)
		}
	}
	// A process without parts does nothing: it is alive, not ready.
	check("/readyz", 503, `{"ready":false,"parts":0,"not_ready":[]}`)
	check("/healthz", 200, `{"healthy":true,"faults":[],"build":{"version"`)
	p := ready.Part("aggregator owners/3")
	check("/readyz", 503, `{"ready":false,"parts":1,"not_ready":[{"part":"aggregator owners/3","reason":"starting","since":"2026-03-01T11:00:00.005Z"}]}`)
	p.Ready()
	check("/readyz", 200, `{"ready":true,"parts":1,"not_ready":[]}`)
	p.NotReady("nothing delivered for 30s")
	check("/readyz", 503, `{"ready":false,"parts":1,"not_ready":[{"part":"aggregator owners/3","reason":"nothing delivered for 30s"`)
	ready.Check("bus", func(context.Context) error { return errors.New("store is read-only") })
	check("/healthz", 503, `{"healthy":false,"faults":[{"check":"bus","error":"store is read-only"}]`)
}

func TestWhoMayAsk(t *testing.T) {
	_, open := serve(t, "")
	_, closed := serve(t, token)
	for _, c := range []struct {
		name, method, addr, path string
		header                   []string
		expected                 int
	}{
		{"nothing else is served", "GET", open, "/", nil, 404},
		{"only reading", "POST", open, "/metrics", nil, 405},
		{"a page under another name", "GET", open, "/metrics", []string{"Host", "evil.example:9464"}, 403},
		{"loopback by name", "GET", open, "/metrics", []string{"Host", "localhost"}, 200},
		{"loopback by IPv6", "GET", open, "/metrics", []string{"Host", "[::1]:9464"}, 200},
		{"no token", "GET", closed, "/metrics", nil, 401},
		{"no token for health either", "GET", closed, "/healthz", nil, 401},
		{"a wrong one", "GET", closed, "/metrics", []string{"Authorization", "Bearer 0123456789abcdeX"}, 401},
		{"not a bearer's", "GET", closed, "/metrics", []string{"Authorization", token}, 401},
		{"the token", "GET", closed, "/metrics", []string{"Authorization", "Bearer " + token, "Host", "penstock.example"}, 200},
	} {
		if code, body := ask(t, c.method, c.addr, c.path, c.header...); code != c.expected {
			t.Errorf("%s: got %d %s, expected %d", c.name, code, body, c.expected)
		}
	}
}

func TestAHeadTooLargeIsNotRead(t *testing.T) {
	_, addr := serve(t, "")
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: %s", strings.Repeat("x", 28<<10))
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "HTTP/1.1 431 ") {
		t.Errorf("got %q, %v", line, err)
	}
}

func TestUnusableServerOptions(t *testing.T) {
	r, ready := prometheus.NewRegistry(), telemetry.NewReadiness(nil)
	for _, c := range []struct {
		o        telemetry.ServerOptions
		is       error
		expected string
	}{
		{telemetry.ServerOptions{}, telemetry.ErrOptions, "telemetry server without gatherer or readiness: unusable telemetry options"},
		{telemetry.ServerOptions{Gatherer: r, Readiness: ready, Listen: "9464"}, telemetry.ErrOptions, `listen address "9464", expected host:port: unusable telemetry options: address 9464: missing port in address`},
		{telemetry.ServerOptions{Gatherer: r, Readiness: ready, Listen: ":9464"}, telemetry.ErrToken, `listen address ":9464", token of 0 bytes, expected at least 16: a token is needed off loopback`},
		{telemetry.ServerOptions{Gatherer: r, Readiness: ready, Listen: "0.0.0.0:9464", Token: "short"}, telemetry.ErrToken, `listen address "0.0.0.0:9464", token of 5 bytes, expected at least 16: a token is needed off loopback`},
	} {
		if _, err := telemetry.NewServer(c.o); err == nil || !errors.Is(err, c.is) || err.Error() != c.expected {
			t.Errorf("got %v\nexpected %s", err, c.expected)
		}
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if _, err := telemetry.NewServer(telemetry.ServerOptions{Gatherer: r, Readiness: ready, Listen: taken.Addr().String()}); err == nil {
		t.Error("an address was bound twice")
	}
}

func TestAServerThatNeverRanIsClosed(t *testing.T) {
	s, err := telemetry.NewServer(telemetry.ServerOptions{
		Gatherer: prometheus.NewRegistry(), Readiness: telemetry.NewReadiness(nil), Listen: "127.0.0.1:0",
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	s.Close()
	if err := s.Run(t.Context()); !errors.Is(err, telemetry.ErrClosed) {
		t.Errorf("got %v", err)
	}
	if c, err := net.Dial("tcp", s.Addr()); err == nil {
		c.Close()
		t.Error("the address is still bound")
	}
}

func TestConnectionsBeyondTheLimitWait(t *testing.T) {
	_, addr := serve(t, "")
	var open []net.Conn
	for range 64 {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		// An answer shows that the connection has its slot.
		fmt.Fprint(c, "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		open = append(open, c)
	}
	one, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	fmt.Fprint(one, "GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
	answered := make(chan error, 1)
	go func() {
		resp, err := http.ReadResponse(bufio.NewReader(one), nil)
		if err == nil {
			resp.Body.Close()
		}
		answered <- err
	}()
	select {
	case err := <-answered:
		t.Fatalf("the 65th connection was answered: %v", err)
	default:
	}
	for _, c := range open {
		c.Close()
	}
	if err := <-answered; err != nil {
		t.Error(err)
	}
}
