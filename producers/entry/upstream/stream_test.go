package upstream

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/http/httputil"
	"net/textproto"
	"slices"
	"strings"
	"testing"
	"time"
)

// serveHTTP starts a server of net/http.
func serveHTTP(t testing.TB, start func(*httptest.Server), h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	start(s)
	t.Cleanup(s.Close)
	return s
}

// echo answers with what it got.
func echo(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	w.Header().Set("X-Proto", r.Proto)
	w.Header().Set("X-Host", r.Host)
	w.Header().Set("X-Agent", strings.Join(r.Header["User-Agent"], "|"))
	w.Header().Set("Trailer", "X-Sum")
	_, _ = w.Write(b)
	w.Header().Set("X-Sum", r.Trailer.Get("X-Sum"))
}

// TestProtocols: HTTP/1.1 and HTTP/2, in the clear and over TLS, small bodies and
// large ones.
func TestProtocols(t *testing.T) {
	t.Parallel()
	h2c := func(s *httptest.Server) {
		s.Config.Protocols = new(http.Protocols)
		s.Config.Protocols.SetUnencryptedHTTP2(true)
		s.Start()
	}
	for name, tc := range map[string]struct {
		start func(*httptest.Server)
		h2    bool
		proto string
	}{
		"http":  {(*httptest.Server).Start, false, "HTTP/1.1"},
		"https": {(*httptest.Server).StartTLS, false, "HTTP/1.1"},
		"h2c":   {h2c, true, "HTTP/2.0"},
		"h2":    {func(s *httptest.Server) { s.EnableHTTP2 = true; s.StartTLS() }, true, "HTTP/2.0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serveHTTP(t, tc.start, echo)
			o := Options{H2: tc.h2}
			if s.TLS != nil {
				o.TLS = s.Client().Transport.(*http.Transport).TLSClientConfig
			}
			p := newPool(t, o, s.URL)
			for range 2 {
				for _, size := range []int{0, 5, 1 << 20} {
					body := strings.Repeat("b", size)
					got := do(p, newRequest(t, "POST", "/", body))
					if got.err != nil || got.bodyErr != nil || got.body != body {
						t.Fatalf("%d bytes: %v, %v, got %d", size, got.err, got.bodyErr, len(got.body))
					}
					if got.header.Get("X-Proto") != tc.proto || got.header.Get("X-Host") != "service" || got.header.Get("X-Agent") != "" {
						t.Errorf("%d bytes: %v", size, got.header)
					}
					a := got.a
					if a.BytesOut != int64(size) || a.BytesIn != int64(size) || a.Status != 200 || a.Server != p.Status()[0].Name {
						t.Errorf("%d bytes: attempt %+v", size, a)
					}
					order := []time.Time{a.Queued, a.Connected, a.FirstByte, a.Done}
					if !slices.IsSortedFunc(order, time.Time.Compare) || a.Queued.IsZero() || a.Sent.Before(a.Connected) {
						t.Errorf("%d bytes: times %+v", size, a)
					}
				}
			}
			// A trailer goes both ways.
			req := newRequest(t, "POST", "/", "body")
			req.ContentLength, req.Trailer = -1, http.Header{"X-Sum": {"7"}}
			if got := do(p, req); got.body != "body" || got.trailer.Get("X-Sum") != "7" {
				t.Errorf("trailer: %v", got)
			}
			if st := p.Status()[0]; st.Outstanding != 0 || st.State != StateUsed || len(st.Failures) != 0 {
				t.Errorf("%+v", st)
			}
		})
	}
}

// TestAnUntrustedServer: a certificate that isn't trusted is no connection.
func TestAnUntrustedServer(t *testing.T) {
	t.Parallel()
	s := serveHTTP(t, func(s *httptest.Server) {
		s.Config.ErrorLog = noLog()
		s.StartTLS()
	}, echo)
	p := newPool(t, Options{}, s.URL)
	if got := do(p, newRequest(t, "GET", "/", "")); !errors.Is(got.err, ErrConnect) || !strings.Contains(got.err.Error(), "certificate") {
		t.Errorf("%v", got.err)
	}
	var bad *tls.CertificateVerificationError
	if got := do(p, newRequest(t, "GET", "/", "")); !errors.As(got.err, &bad) {
		t.Errorf("%v", got.err)
	}
}

// TestUpgrade: after 101 bytes go both ways.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	for _, h2 := range []bool{false, true} { // it is asked for over HTTP/1.1 in any case
		testUpgrade(t, Options{H2: h2})
	}
}

func testUpgrade(t *testing.T, o Options) {
	s := serveRaw(t, func(_ int, c net.Conn, r *bufio.Reader) {
		req, err := http.ReadRequest(r)
		if err != nil || req.Header.Get("Upgrade") != "echo" || req.Header.Get("Connection") != "Upgrade" {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_, _ = io.Copy(c, r)
	})
	p := newPool(t, o, s.URL)
	req := newRequest(t, "GET", "/", "")
	req.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"echo"}}
	resp, a, err := p.Do(req, nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v %v", resp, err)
	}
	defer func() { _ = resp.Body.Close() }()
	rw, ok := resp.Body.(io.ReadWriteCloser)
	if !ok {
		t.Fatal("the body of 101 can't be written to")
	}
	for _, word := range []string{"hello", "again"} {
		if _, err := io.WriteString(rw, word); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, len(word))
		if _, err := io.ReadFull(rw, b); err != nil || string(b) != word {
			t.Fatalf("%q, %v", b, err)
		}
	}
	if p.Status()[0].Outstanding != 1 {
		t.Error("an open upgrade is not outstanding")
	}
	_ = rw.Close()
	if st := p.Status()[0]; st.Outstanding != 0 || a.Reason != "" || a.Done.IsZero() {
		t.Errorf("%+v, %+v", st, a)
	}
}

// TestExpect: a body that the server does not ask for is not sent.
func TestExpect(t *testing.T) {
	t.Parallel()
	s := serveHTTP(t, (*httptest.Server).Start, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/no" {
			w.WriteHeader(http.StatusExpectationFailed)
			return
		}
		echo(w, r)
	})
	p := newPool(t, Options{}, s.URL)
	for path, want := range map[string]int{"/yes": 200, "/no": 417} {
		req := newRequest(t, "POST", path, "body")
		read := false
		body := strings.NewReader("body")
		req.Body = io.NopCloser(readFunc(func(b []byte) (int, error) {
			read = true
			return body.Read(b)
		}))
		req.Header.Set("Expect", "100-continue")
		got := do(p, req)
		if got.err != nil || got.status != want || read != (want == 200) {
			t.Errorf("%s: %v, body read: %v", path, got, read)
		}
	}
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(b []byte) (int, error) { return f(b) }

// TestEarlyAnswer: a server answers before it has the body, and never reads it.
// The answer comes at once, however large the body is.
func TestEarlyAnswer(t *testing.T) {
	t.Parallel()
	s := serveRaw(t, func(_ int, c net.Conn, r *bufio.Reader) {
		if _, err := http.ReadRequest(r); err != nil {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig")
		<-t.Context().Done() // keeps the connection open and reads nothing
	})
	p := newPool(t, Options{}, s.URL)
	for name, size := range map[string]int{"small": 60_000, "large": 50 << 20, "endless": -1} {
		req := newRequest(t, "POST", "/", "x")
		ctx, cancel := context.WithCancel(t.Context())
		req = req.WithContext(ctx)
		req.ContentLength = int64(size)
		req.Body = io.NopCloser(readFunc(func(b []byte) (int, error) { return len(b), ctx.Err() }))
		if size > 0 {
			req.Body = io.NopCloser(io.LimitReader(req.Body, int64(size)))
		}
		got := do(p, req)
		if got.status != 413 || got.body != "big" {
			t.Errorf("%s: %v", name, got)
		}
		if name != "small" && !got.a.Sent.IsZero() {
			t.Errorf("%s: was sent at %v", name, got.a.Sent)
		}
		cancel()
	}
}

// TestStreaming: parts of a body without an end go through as they come, in both
// directions.
func TestStreaming(t *testing.T) {
	t.Parallel()
	s := serveHTTP(t, (*httptest.Server).Start, func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		_ = rc.EnableFullDuplex()
		w.WriteHeader(http.StatusOK)
		b := make([]byte, 100)
		for {
			n, err := r.Body.Read(b)
			_, _ = w.Write(b[:n])
			_ = rc.Flush()
			if err != nil {
				return
			}
		}
	})
	p := newPool(t, Options{}, s.URL)
	in, out := io.Pipe()
	req := newRequest(t, "POST", "/", "x")
	req.Body, req.ContentLength = in, -1
	go func() { _, _ = io.WriteString(out, "one") }()
	resp, _, err := p.Do(req, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	for _, word := range []string{"one", "two", "three"} {
		if word != "one" {
			go func() { _, _ = io.WriteString(out, word) }()
		}
		b := make([]byte, len(word))
		if _, err := io.ReadFull(resp.Body, b); err != nil || string(b) != word {
			t.Fatalf("%q, %v", b, err)
		}
	}
	_ = out.Close()
	if b, err := io.ReadAll(resp.Body); err != nil || len(b) > 0 {
		t.Errorf("%q, %v", b, err)
	}
	// Server-sent events: what is there is handed on before the body's end.
	next := make(chan struct{})
	events := serveRaw(t, func(_ int, c net.Conn, r *bufio.Reader) {
		_, _ = http.ReadRequest(r)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n")
		<-next
		_, _ = io.WriteString(c, "3\r\ntwo\r\n0\r\n\r\n")
	})
	q := newPool(t, Options{}, events.URL)
	sent, _, err := q.Do(newRequest(t, "GET", "/", ""), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sent.Body.Close() }()
	b := make([]byte, 100)
	if n, err := sent.Body.Read(b); err != nil || string(b[:n]) != "one" {
		t.Fatalf("%q, %v", b[:n], err)
	}
	close(next)
	if rest, err := io.ReadAll(sent.Body); err != nil || string(rest) != "two" {
		t.Errorf("%q, %v", rest, err)
	}
}

// TestInterimAnswersAreTold: who traces gets 103.
func TestInterimAnswersAreTold(t *testing.T) {
	t.Parallel()
	s := serveRaw(t, func(_ int, c net.Conn, r *bufio.Reader) {
		answerAll(c, r, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"+okAnswer)
	})
	p := newPool(t, Options{}, s.URL)
	var got []string
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
		got = append(got, http.StatusText(code)+" "+h.Get("Link"))
		return nil
	}})
	if s := do(p, newRequest(t, "GET", "/", "").WithContext(ctx)); s.body != "ok" {
		t.Errorf("%+v", s)
	}
	if !slices.Equal(got, []string{"Early Hints </a>"}) {
		t.Errorf("told %q", got)
	}
}

// TestBehindReverseProxy: the pool is a transport for net/http/httputil.
func TestBehindReverseProxy(t *testing.T) {
	t.Parallel()
	back := serveHTTP(t, (*httptest.Server).Start, echo)
	p := newPool(t, Options{}, back.URL)
	front := serveHTTP(t, (*httptest.Server).Start, (&httputil.ReverseProxy{
		Transport: p, Rewrite: func(r *httputil.ProxyRequest) { r.Out.Host = r.In.Host },
	}).ServeHTTP)
	for _, body := range []string{"", "small", strings.Repeat("large", 100_000)} {
		resp, err := front.Client().Post(front.URL, "text/plain", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || string(b) != body {
			t.Errorf("%d bytes back, %v", len(b), err)
		}
	}
}
