package upstream

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// TestABodyIsGotAnew: an attempt that was answered before it began to read the body
// may still do so; the next one has a body of its own, or is not made.
func TestABodyIsGotAnew(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		get  func() (io.ReadCloser, error)
		want int
	}{
		"at hand":     {func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("body")), nil }, 200},
		"gone":        {func() (io.ReadCloser, error) { return nil, errors.New("not kept") }, 503},
		"not offered": {nil, 503},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := serveRaw(t, func(_ int, c net.Conn, r *bufio.Reader) {
				if _, err := http.ReadRequest(r); err == nil { // it waits for 100, so nothing of the body was read
					_, _ = io.WriteString(c, "HTTP/1.1 503 X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
				}
			})
			var got atomic.Value
			second := serveRaw(t, func(_ int, c net.Conn, r *bufio.Reader) {
				if req, err := http.ReadRequest(r); err == nil {
					_, _ = io.WriteString(c, "HTTP/1.1 100 Continue\r\n\r\n")
					b, _ := io.ReadAll(req.Body)
					got.Store(string(b))
					_, _ = io.WriteString(c, okAnswer)
				}
			})
			req := newRequest(t, "PUT", "/", "stolen")
			req.ContentLength, req.GetBody = -1, tc.get
			req.Header.Set("Expect", "100-continue")
			s := do(newPool(t, Options{}, first.URL, second.URL), req)
			if s.err != nil || s.status != tc.want || tc.want == 200 && got.Load() != "body" || tc.want != 200 && len(s.failed) > 0 {
				t.Errorf("%v, the second server got %v", s, got.Load())
			}
		})
	}
}

// TestSetKeepsConnections: a server that stays on the list keeps what is idle.
func TestSetKeepsConnections(t *testing.T) {
	t.Parallel()
	s := serveRaw(t, func(_ int, c net.Conn, r *bufio.Reader) { answerAll(c, r, okAnswer) })
	p := newPool(t, Options{}, s.URL)
	for range 2 {
		if r := do(p, newRequest(t, "GET", "/", "")); r.err != nil {
			t.Fatal(r)
		}
		if err := p.Set(p.o.Servers); err != nil || idleConns(p) != 1 {
			t.Fatalf("%v, %d idle", err, idleConns(p))
		}
	}
	if s.count() != 1 {
		t.Errorf("%d connections", s.count())
	}
}
