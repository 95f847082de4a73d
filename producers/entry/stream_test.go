package entry_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"
)

// Each piece is there before the next is sent.
func TestAnswersStream(t *testing.T) {
	t.Parallel()
	next := make(chan string)
	p := run(t, []string{service(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/sse" {
			w.Header().Set("Content-Type", "text/event-stream")
			w.(http.Flusher).Flush()
		}
		for s := range next {
			fmt.Fprint(w, s)
			w.(http.Flusher).Flush()
		}
	})}, nil)
	for _, path := range []string{"/sse", "/chunks"} {
		if path == "/chunks" {
			go func() { next <- "first" }() // without it there is nothing to send
		}
		resp, err := client(t).Get(p.url + path) // the head of events comes before the first one
		if err != nil {
			t.Fatal(err)
		}
		if path == "/sse" {
			next <- "first"
		}
		r := bufio.NewReader(resp.Body)
		for _, s := range []string{"first", "second", "third"} {
			if s != "first" {
				next <- s
			}
			b := make([]byte, len(s))
			if _, err := io.ReadFull(r, b); err != nil || string(b) != s {
				t.Errorf("got %q, %v", b, err)
			}
		}
		close(next)
		if rest, err := io.ReadAll(r); err != nil || len(rest) > 0 {
			t.Errorf("then %q, %v", rest, err)
		}
		resp.Body.Close()
		next = make(chan string)
	}
}

func TestTrailersPassBothWays(t *testing.T) {
	t.Parallel()
	p := run(t, []string{service(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		_, _ = io.Copy(w, r.Body)
		w.Header().Set("X-Sum", r.Trailer.Get("X-Client-Sum"))
		w.Header().Set(http.TrailerPrefix+"X-Late", "late")
	})}, nil)
	r, _ := http.NewRequest(http.MethodPost, p.url+"/p", io.MultiReader(strings.NewReader("hello")))
	r.Trailer = http.Header{"X-Client-Sum": {"42"}}
	resp, err := client(t).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || string(b) != "hello" || resp.Trailer.Get("X-Sum") != "42" || resp.Trailer.Get("X-Late") != "late" {
		t.Errorf("got %q, %v, trailer %v", b, err, resp.Trailer)
	}
}

func TestExpectContinue(t *testing.T) {
	t.Parallel()
	p := run(t, []string{service(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/no" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = io.Copy(w, r.Body)
	})}, nil)
	w := dial(t, p)
	w.send(t, "POST /yes HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
	if line, err := w.r.ReadString('\n'); err != nil || line != "HTTP/1.1 100 Continue\r\n" {
		t.Fatalf("got %q, %v", line, err)
	}
	_, _ = w.r.ReadString('\n')
	w.send(t, "hello")
	if a := w.next(t, "POST"); a == nil || a.StatusCode != http.StatusOK || a.body != "hello" {
		t.Errorf("got %+v", a)
	}
	w = dial(t, p)
	w.send(t, "POST /no HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 500000\r\n\r\n")
	if a := w.next(t, "POST"); a == nil || a.StatusCode != http.StatusForbidden {
		t.Errorf("got %+v", a)
	}
	if a := w.next(t, "POST"); a != nil { // nobody knows whether the body still comes
		t.Errorf("then %+v", a)
	}
}

func TestEarlyHintsPass(t *testing.T) {
	t.Parallel()
	p := run(t, []string{service(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</style.css>")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("Link")
		w.Header().Set("X-Last", "1")
		fmt.Fprint(w, "done")
	})}, nil)
	var hints []string
	ctx := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
		hints = append(hints, fmt.Sprint(code, h.Get("Link")))
		return nil
	}})
	r, _ := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/", nil)
	resp, err := client(t).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if len(hints) != 1 || hints[0] != "103</style.css>" || resp.Header.Get("Link") != "" || resp.Header.Get("X-Last") != "1" {
		t.Errorf("hints %v, then %v", hints, resp.Header)
	}
	// HTTP/1.0 knows no answers before the answer.
	w := dial(t, p)
	w.send(t, "GET / HTTP/1.0\r\nHost: x\r\n\r\n")
	if a := w.next(t, "GET"); a == nil || a.StatusCode != http.StatusOK || a.body != "done" {
		t.Errorf("HTTP/1.0 got %+v", a)
	}
}

// The service answers before it has the body, and never reads it.
func TestAnEarlyAnswerPasses(t *testing.T) {
	t.Parallel()
	p := run(t, []string{service(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusUnauthorized)
	})}, nil)
	w := dial(t, p)
	w.send(t, "POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000\r\n\r\nsome of it")
	a := w.next(t, "POST")
	if a == nil || a.StatusCode != http.StatusUnauthorized || !a.Close {
		t.Fatalf("got %+v", a)
	}
	if row := p.rows.await(t, 1)[0]; row.Status != 401 {
		t.Errorf("row %+v", row)
	}
}

func TestHead(t *testing.T) {
	t.Parallel()
	p := run(t, []string{service(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "12345")
		if r.URL.Path == "/not" {
			w.Header().Set("ETag", `"1"`)
			w.WriteHeader(http.StatusNotModified)
		}
	})}, nil)
	w := dial(t, p)
	w.send(t, "HEAD / HTTP/1.1\r\nHost: x\r\n\r\n")
	if a := w.next(t, "HEAD"); a == nil || a.StatusCode != http.StatusOK || a.ContentLength != 12345 {
		t.Errorf("got %+v", a)
	}
	w.send(t, "GET /not HTTP/1.1\r\nHost: x\r\n\r\n")
	if a := w.next(t, "GET"); a == nil || a.StatusCode != http.StatusNotModified || a.Header.Get("ETag") != `"1"` {
		t.Errorf("got %+v", a)
	}
	if rows := p.rows.await(t, 2); rows[0].Bytes != 0 {
		t.Errorf("row %+v", rows[0])
	}
}

// echo speaks a protocol of its own after 101.
func echo(t testing.TB) string {
	return service(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "websocket" || r.Header.Get("Connection") != "Upgrade" {
			w.WriteHeader(http.StatusUpgradeRequired)
			return
		}
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		fmt.Fprint(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-Websocket-Accept: x\r\n\r\n")
		_ = rw.Flush()
		_, _ = io.Copy(c, rw)
	})
}

const upgradeRequest = "GET /u/ada/chat HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n"

func TestWebSocketsPass(t *testing.T) {
	t.Parallel()
	p := run(t, []string{echo(t)}, nil)
	w := dial(t, p)
	w.send(t, upgradeRequest+"\x81\x05early\nGET / HTTP/1.1\n") // what comes before 101 is no HTTP either
	resp, err := http.ReadResponse(w.r, nil)                    //nolint:bodyclose // it ends with the connection
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols || resp.Header.Get("Upgrade") != "websocket" || resp.Header.Get("Sec-Websocket-Accept") != "x" {
		t.Fatalf("got %+v, %v", resp, err)
	}
	w.send(t, "\x00\x01\x02 and more")
	want := "\x81\x05early\nGET / HTTP/1.1\n\x00\x01\x02 and more"
	b := make([]byte, len(want))
	if _, err := io.ReadFull(w.r, b); err != nil || string(b) != want {
		t.Errorf("got %q, %v", b, err)
	}
	if n := p.counter(t, "penstock_entry_tunnels"); n != 1 {
		t.Errorf("%v tunnels", n)
	}
	_ = w.Close()
	row := p.rows.await(t, 1)[0]
	if row.Status != 101 || row.Bytes != int64(2*len(want)) || row.Owner != "ada" {
		t.Errorf("row %+v", row)
	}
}

func TestOtherUpgradesDoNotPass(t *testing.T) {
	t.Parallel()
	p := run(t, []string{echo(t)}, nil)
	for _, headers := range []string{
		"Connection: Upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n", "Upgrade: websocket\r\n", "Connection: Upgrade\r\nUpgrade: websocket, h2c\r\n",
		"Connection: Upgrade\r\nUpgrade: HTTP/2.0\r\n", "Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 1\r\n",
	} {
		w := dial(t, p)
		w.send(t, "GET / HTTP/1.1\r\nHost: x\r\n"+headers+"\r\nx")
		if a := w.next(t, "GET"); a == nil || a.StatusCode != http.StatusUpgradeRequired {
			t.Errorf("%q: got %+v", headers, a)
		}
		_ = w.Close()
	}
}

// A client that leaves ends what was done for it.
func TestAbandonedClients(t *testing.T) {
	t.Parallel()
	began, ended := make(chan bool, 9), make(chan bool, 9)
	p := run(t, []string{service(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/half" {
			w.Header().Set("Content-Length", "1000000")
			_, _ = io.WriteString(w, "half")
			w.(http.Flusher).Flush()
		}
		began <- true
		<-r.Context().Done()
		ended <- true
	})}, nil)
	for _, path := range []string{"/none", "/half"} {
		w := dial(t, p)
		w.send(t, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n")
		<-began
		if path == "/half" {
			if _, err := w.r.Peek(1); err != nil {
				t.Fatal(err)
			}
		}
		_ = w.Close()
		<-ended
	}
	for _, row := range p.rows.await(t, 2) {
		if row.Status != 499 {
			t.Errorf("row %+v", row)
		}
	}
	if n := p.counter(t, "penstock_entry_requests_total", "answer", "abandoned"); n != 2 {
		t.Errorf("%v counted", n)
	}
}

func TestServersThatFail(t *testing.T) {
	t.Parallel()
	broken := service(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/half":
			w.Header().Set("Content-Length", "100000")
			_, _ = io.WriteString(w, strings.Repeat("x", 50000))
			w.(http.Flusher).Flush()
		case "/chunks":
			_, _ = io.WriteString(w, "x")
			w.(http.Flusher).Flush()
		}
		panic(http.ErrAbortHandler)
	})
	p := run(t, []string{broken}, nil)
	if a := do(t, "POST", p.url+"/", nil); a.StatusCode != http.StatusBadGateway || a.body != "penstock: the server gave no answer\n" {
		t.Errorf("got %d %q", a.StatusCode, a.body)
	}
	for _, path := range []string{"/half", "/chunks"} {
		resp, err := client(t).Get(p.url + path)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(resp.Body); err == nil {
			t.Errorf("%s: the answer of %d bytes looks whole", path, len(b))
		}
		resp.Body.Close()
	}
	for _, row := range p.rows.await(t, 3) {
		if row.Status != 502 || !row.IsError() {
			t.Errorf("row %+v", row)
		}
	}
	nobody := run(t, []string{"http://127.0.0.1:1"}, nil)
	if a := get(t, nobody.url+"/"); a.StatusCode != http.StatusBadGateway || strings.Contains(a.body, "127.0.0.1") {
		t.Errorf("got %d %q", a.StatusCode, a.body)
	}
	none := run(t, nil, nil)
	if a := get(t, none.url+"/"); a.StatusCode != http.StatusServiceUnavailable || a.Header.Get("Retry-After") == "" {
		t.Errorf("got %d %q", a.StatusCode, a.body)
	}
}

// A failed attempt is a row of its own.
func TestRetriesAreRows(t *testing.T) {
	t.Parallel()
	good := service(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "good") })
	bad := service(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	p := run(t, []string{bad, good}, nil)
	seen := 0
	for range 4 {
		if a := get(t, p.url+"/u/ada/x"); a.StatusCode != http.StatusOK {
			t.Errorf("got %d", a.StatusCode)
		}
	}
	rows := p.rows.await(t, 5)
	for i, row := range rows {
		if row.Status != 503 {
			continue
		}
		seen++
		if row.ToServer != "a-1" || row.ToSite != "a" || row.Owner != "ada" || i+1 >= len(rows) || rows[i+1].Trace != row.Trace || rows[i+1].ToServer != "a-2" {
			t.Errorf("row %+v", row)
		}
	}
	if seen == 0 || float64(seen) != p.counter(t, "penstock_entry_failed_attempts_total") {
		t.Errorf("%d rows of failed attempts", seen)
	}
}
