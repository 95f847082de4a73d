package entry_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"penstock/producers/entry"
)

func readAll(w http.ResponseWriter, r *http.Request) {
	n, err := io.Copy(io.Discard, r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	fmt.Fprintf(w, "%d by %s", n, r.Proto)
}

func TestBodiesThatAreTooLarge(t *testing.T) {
	t.Parallel()
	p := run(t, []string{service(t, readAll)}, func(o *entry.Options) { o.Limits.Body = 100_000 })
	for name, test := range map[string]struct {
		size, chunk int
		status      int
	}{
		"small": {10, 0, 200}, "small in chunks": {10, 5, 200}, "just right": {100_000, 0, 200}, "just right in chunks": {100_000, 1000, 200},
		"one more": {100_001, 0, 413}, "one more in chunks": {100_001, 1000, 413}, "many": {10_000_000, 0, 413},
	} {
		w := dial(t, p)
		body := strings.Repeat("x", test.size)
		head := fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", test.size)
		if test.chunk > 0 {
			var b strings.Builder
			for i := 0; i < test.size; i += test.chunk {
				part := body[i:min(i+test.chunk, test.size)]
				fmt.Fprintf(&b, "%x\r\n%s\r\n", len(part), part)
			}
			body, head = b.String()+"0\r\n\r\n", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
		}
		go func() { _, _ = io.WriteString(w, head+body) }()
		a := w.next(t, "POST")
		if a == nil || a.StatusCode != test.status || a.Close != (test.status != 200) {
			t.Errorf("%s: got %+v", name, a)
		}
		_ = w.Close()
	}
	for _, row := range p.rows.await(t, 7) {
		if row.Status != 200 && row.Status != 413 {
			t.Errorf("row %+v", row)
		}
	}
}

func TestSlowClients(t *testing.T) {
	t.Parallel()
	p := run(t, []string{service(t, readAll)}, func(o *entry.Options) {
		// Longer than a busy machine makes a client look slow that isn't.
		o.Limits.HeaderTimeout, o.Limits.IdleTimeout = 3*time.Second, 3*time.Second
		o.Limits.BodyGrace, o.Limits.BodyRate = 3*time.Second, 400
	})
	var all sync.WaitGroup
	defer all.Wait()
	try := func(name, raw string, statuses ...int) {
		all.Go(func() {
			w := dial(t, p)
			w.send(t, raw)
			for _, status := range statuses {
				if a := w.next(t, "POST"); a == nil || a.StatusCode != status {
					t.Errorf("%s: got %+v, expected %d", name, a, status)
				}
			}
			began := time.Now()
			if a := w.next(t, "POST"); a != nil || time.Since(began) > patience/2 {
				t.Errorf("%s: after %v then %+v", name, time.Since(began), a)
			}
		})
	}
	try("says nothing", "")
	try("half a line", "GET / HT", 408)
	try("half a header", "GET / HTTP/1.1\r\nHost: x\r\nX: y\r\n", 408)
	try("half a second header", "GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHos", 200, 408)
	try("idle", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", 200)
	try("half a body", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhell", 408)
	try("half a large body", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\nhell", 408)
	try("half a chunk", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", 408)
	all.Go(func() { // slow from end to end, but steady enough: nothing is free but the grace
		w := dial(t, p)
		w.send(t, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2000\r\n\r\n")
		const size, pace = 2000, 160 * time.Millisecond // 100 bytes each: longer than the grace in all
		for began, sent := time.Now(), 0; sent < size; {
			time.Sleep(pace)
			due := min(int(time.Since(began)/pace)*100, size) - sent // all that the machine has held up
			w.send(t, strings.Repeat("x", due))
			sent += due
		}
		if a := w.next(t, "POST"); a == nil || a.StatusCode != http.StatusOK || a.Close {
			t.Errorf("steady: got %+v", a)
		}
	})
	all.Go(func() { // a header byte by byte, which no single wait is too long for
		w := dial(t, p)
		began := time.Now()
		for _, c := range "GET / HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("X: y\r\n", 60) {
			if _, err := io.WriteString(w, string(c)); err != nil {
				break
			}
			time.Sleep(10 * time.Millisecond)
			if time.Since(began) > patience/2 {
				t.Error("slow-loris is served")
				break
			}
			if w.r.Buffered() > 0 {
				break
			}
		}
		if a := w.next(t, "GET"); a == nil || a.StatusCode != http.StatusRequestTimeout {
			t.Errorf("slow-loris: got %+v", a)
		}
	})
}

// The service takes its time: that is no client's fault.
func TestSlowServersAreWaitedFor(t *testing.T) {
	t.Parallel()
	p := run(t, []string{service(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/quick" {
			time.Sleep(4 * time.Second)
		}
		readAll(w, r)
	})}, func(o *entry.Options) {
		// Longer than a busy machine makes a client look slow that isn't.
		o.Limits.HeaderTimeout, o.Limits.IdleTimeout, o.Limits.BodyGrace, o.Limits.BodyRate = 3*time.Second, 3*time.Second, 3*time.Second, 1<<20
	})
	var all sync.WaitGroup
	defer all.Wait()
	for _, size := range []int{0, 10, 300_000} {
		all.Go(func() {
			if a := do(t, "POST", p.url+"/", strings.NewReader(strings.Repeat("x", size))); a.StatusCode != http.StatusOK {
				t.Errorf("%d bytes: got %d %q", size, a.StatusCode, a.body)
			}
		})
	}
	// So it is for requests that were sent without waiting for the answers before.
	w := dial(t, p)
	const request = " HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"
	w.send(t, "POST /"+request+"POST /quick"+request+"POST /quick"+request)
	for range 3 {
		if a := w.next(t, "POST"); a == nil || a.StatusCode != http.StatusOK {
			t.Errorf("got %+v", a)
		}
	}
}

func TestConnectionsAreLimited(t *testing.T) {
	t.Parallel()
	p := run(t, []string{service(t, readAll)}, func(o *entry.Options) { o.Limits.Connections = 2 })
	one, two := dial(t, p), dial(t, p)
	for _, w := range []*wire{one, two} {
		w.send(t, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		if a := w.next(t, "GET"); a == nil || a.StatusCode != http.StatusOK {
			t.Fatalf("got %+v", a)
		}
	}
	if a := dial(t, p).next(t, "GET"); a == nil || a.StatusCode != http.StatusServiceUnavailable || a.body != "penstock: too many connections.\n" {
		t.Errorf("got %+v", a)
	}
	_ = one.Close()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		w := dial(t, p)
		_, _ = io.WriteString(w, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		a := w.next(t, "GET")
		_ = w.Close()
		if a != nil && a.StatusCode == http.StatusOK {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no room for a connection after one has ended")
		}
	}
	if p.counter(t, "penstock_entry_connections_total", "outcome", "over-limit") < 1 {
		t.Error("not counted")
	}
}

func TestProtocols(t *testing.T) {
	t.Parallel()
	// A test server's certificate is as good as any.
	s := httptest.NewUnstartedServer(nil)
	s.StartTLS()
	certificate, roots := s.TLS.Certificates[0], s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	s.Close()
	backend := service(t, func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		fmt.Fprintf(w, "%d %s %s", n, r.Header.Get("X-Forwarded-Proto"), strings.Repeat("x", int(n)))
	})
	secured := run(t, []string{backend}, func(o *entry.Options) {
		o.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
		o.Limits.HeaderTimeout = 3 * time.Second
	})
	plain := run(t, []string{backend}, func(o *entry.Options) { o.H2C = true })
	for _, test := range []struct {
		p        *point
		protocol string
	}{{secured, "HTTP/1.1"}, {secured, "HTTP/2.0"}, {plain, "HTTP/1.1"}, {plain, "HTTP/2.0"}} {
		transport := &http.Transport{Protocols: new(http.Protocols), TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "example.com"}}
		transport.Protocols.SetHTTP1(test.protocol == "HTTP/1.1")
		transport.Protocols.SetHTTP2(test.protocol == "HTTP/2.0")
		transport.Protocols.SetUnencryptedHTTP2(test.protocol == "HTTP/2.0")
		for _, size := range []int{0, 5, 300_000} {
			resp, err := (&http.Client{Transport: transport}).Post(test.p.url+"/u/ada/x", "text/plain", strings.NewReader(strings.Repeat("x", size)))
			if err != nil {
				t.Fatalf("%s: %v", test.protocol, err)
			}
			b, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			scheme, _, _ := strings.Cut(test.p.url, ":")
			if want := fmt.Sprintf("%d %s ", size, scheme); err != nil || resp.Proto != test.protocol || !strings.HasPrefix(string(b), want) || len(b) != size+len(want) {
				t.Errorf("%s to %s: %s, %d bytes, %v", test.protocol, test.p.url, resp.Proto, len(b), err)
			}
		}
		transport.CloseIdleConnections()
	}
	// A handshake that never comes costs a connection for a while only.
	c, err := net.Dial("tcp", secured.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	if n, err := c.Read(make([]byte, 100)); err == nil {
		t.Errorf("got %d bytes", n)
	}
	if secured.counter(t, "penstock_entry_connections_total", "outcome", "tls-failed") != 1 {
		t.Error("not counted")
	}
	if n := len(secured.rows.await(t, 6)); n != 6 {
		t.Errorf("%d rows", n)
	}
}
