package entry

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// answers are handlers, each of which answers in a way of its own.
var answers = map[string]http.HandlerFunc{
	"nothing": func(http.ResponseWriter, *http.Request) {},
	"length": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "5")
		_, _ = io.WriteString(w, "he")
		_, _ = io.WriteString(w, "llo")
	},
	"chunks": func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		for i := range 3 {
			_, _ = io.WriteString(w, strings.Repeat(fmt.Sprint(i), 3000))
			w.(http.Flusher).Flush()
		}
	},
	"large": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100000")
		_, _ = w.Write(bytes.Repeat([]byte("x"), 100_000))
	},
	"trailers": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		_, _ = io.WriteString(w, "body")
		w.(http.Flusher).Flush()
		w.Header().Set(http.TrailerPrefix+"X-Sum", "7")
	},
	"close": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		w.Header().Set("Content-Length", "1")
		_, _ = io.WriteString(w, "x")
	},
	"no content": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
	"not modified": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Etag", `"1"`)
		w.WriteHeader(http.StatusNotModified)
	},
	"early hints": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</a.css>")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Set("Content-Length", "2")
		_, _ = io.WriteString(w, "ok")
	},
	"twice": func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		w.WriteHeader(http.StatusOK)
		w.Header().Set("X-Late", "1")
	},
	"line ends in values": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X", "a\r\nSet-Cookie: b")
		w.Header()["bad name"] = []string{"x"}
		w.Header().Set("Content-Length", "0")
	},
	"date and several": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", "Mon, 30 Nov 2026 09:39:52 GMT")
		w.Header()["X"] = []string{"1", "2"}
		w.Header().Set("Content-Length", "0")
	},
}

// What a client gets of an answer is what it would get from net/http.
func TestSimpleAnswersAreNetHTTPs(t *testing.T) {
	t.Parallel()
	for name, answer := range answers {
		server := httptest.NewServer(answer)
		for _, request := range []string{"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HEAD / HTTP/1.1\r\nHost: x\r\n\r\n", "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"} {
			want := described(t, request, func(out *bytes.Buffer) { out.WriteString(askRaw(t, server.Listener.Addr().String(), request)) })
			got := described(t, request, func(out *bytes.Buffer) {
				w := simpleWriter{out: bufio.NewWriter(out), header: http.Header{}}
				r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(request)))
				if err != nil {
					t.Fatal(err)
				}
				w.begin(r, new(atomic.Bool))
				answer(&w, r)
				if !w.end() {
					t.Errorf("%s of %.10q is not whole", name, request)
				}
			})
			if got != want {
				t.Errorf("%s of %.10q:\n%s\nnet/http:\n%s", name, request, got, want)
			}
		}
		server.Close()
	}
}

// askRaw returns all bytes that come for a request.
func askRaw(t *testing.T, address, request string) string {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	var all bytes.Buffer
	r := bufio.NewReader(io.TeeReader(c, &all))
	req, err := http.ReadRequest(bufio.NewReader(strings.NewReader(request)))
	if err != nil {
		t.Fatal(err)
	}
	for {
		resp, err := http.ReadResponse(r, req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode >= 200 {
			return all.String()
		}
	}
}

// described is what a client sees of answers to a request.
func described(t *testing.T, request string, write func(*bytes.Buffer)) string {
	t.Helper()
	var raw bytes.Buffer
	write(&raw)
	req, err := http.ReadRequest(bufio.NewReader(strings.NewReader(request)))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	r := bufio.NewReader(&raw)
	for status := 0; status < 200; {
		resp, err := http.ReadResponse(r, req)
		if err != nil {
			t.Fatalf("%v of %q", err, raw.String())
		}
		status = resp.StatusCode
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		fmt.Fprintf(&out, "%d close %v, %d bytes %.20q %v\n", status, resp.Close, len(body), body, err)
		if date := resp.Header.Get("Date"); status >= 200 && date == "" {
			fmt.Fprintln(&out, "no date")
		} else if len(date) == len("Mon, 30 Nov 2026 09:39:52 GMT") && date != "Mon, 30 Nov 2026 09:39:52 GMT" {
			resp.Header.Set("Date", "now")
		}
		delete(resp.Header, "Content-Type")   // net/http guesses it
		delete(resp.Header, "Content-Length") // and this, of what fits into a buffer
		for _, h := range []http.Header{resp.Header, resp.Trailer} {
			for _, k := range slices.Sorted(maps.Keys(h)) {
				fmt.Fprintf(&out, "%s: %q\n", k, h[k])
			}
		}
	}
	if rest, _ := io.ReadAll(r); len(rest) > 0 {
		fmt.Fprintf(&out, "then %q\n", rest)
	}
	return out.String()
}

// What a handler may not do fails, and an answer that is cut short ends its
// connection.
func TestSimpleAnswersThatAreWrong(t *testing.T) {
	t.Parallel()
	w := simpleWriter{out: bufio.NewWriter(io.Discard), header: http.Header{}}
	begin := func(method string) {
		w.begin(httptest.NewRequest(method, "/", http.NoBody), new(atomic.Bool))
	}
	begin("GET")
	w.Header().Set("Content-Length", "5")
	if _, err := w.Write([]byte("123456")); !errors.Is(err, http.ErrContentLength) {
		t.Errorf("more than announced: %v", err)
	}
	if w.end() {
		t.Error("less than announced was taken for whole")
	}
	begin("HEAD")
	if _, err := w.Write([]byte("x")); !errors.Is(err, http.ErrBodyNotAllowed) {
		t.Errorf("a body for HEAD: %v", err)
	}
	begin("GET")
	if w.WriteHeader(http.StatusNoContent); !w.end() {
		t.Error("204 is whole")
	}
	if len(w.header) > 0 {
		t.Errorf("left over: %v", w.header)
	}
	draining := new(atomic.Bool)
	draining.Store(true)
	w.begin(httptest.NewRequest(http.MethodGet, "/", http.NoBody), draining)
	if !w.end() || !w.last {
		t.Error("a connection goes on although the entry point drains")
	}
}
