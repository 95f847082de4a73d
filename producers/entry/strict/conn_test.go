package strict

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"penstock/infra/clock"
)

// script is a connection that gives what a client sent in pieces of some sizes.
type script struct {
	net.Conn // nil: nothing else is called
	data     []byte
	sizes    []int // of the pieces, over and over
	n        int
	written  bytes.Buffer
}

func (s *script) Read(p []byte) (int, error) {
	if len(s.data) == 0 {
		return 0, io.EOF
	}
	size := len(p)
	if len(s.sizes) > 0 {
		size = min(size, max(s.sizes[s.n%len(s.sizes)], 1))
		s.n++
	}
	n := copy(p[:size], s.data)
	s.data = s.data[n:]
	return n, nil
}

func (s *script) Write(p []byte) (int, error)     { return s.written.Write(p) }
func (s *script) SetReadDeadline(time.Time) error { return nil }
func (s *script) SetWriteDeadline(time.Time) error {
	return nil
}

const marker = "/0123456789abcdef"

func newScript(data string, sizes ...int) *Conn {
	return New(&script{data: []byte(data), sizes: sizes}, &Limits{Header: 1000, Marker: marker}, clock.System())
}

// read reads requests with net/http, as its server would, until the end or a
// refused one. It returns each as method, target and body.
func read(c *Conn, size int) (out []string, err error) {
	r := bufio.NewReaderSize(c, max(size, 16))
	for {
		if _, err := r.Peek(1); err != nil {
			return out, nil //nolint:nilerr // it is the end
		}
		q, err := http.ReadRequest(r)
		if err != nil {
			return out, err
		}
		if q.URL.Path == marker {
			return append(out, "refused: "+c.Refused().Reason), nil
		}
		b, err := io.ReadAll(q.Body)
		if err != nil {
			return append(out, endOf(c)), nil //nolint:nilerr // what it was is in the list
		}
		out = append(out, q.Method+" "+q.RequestURI+" "+string(b))
	}
}

func endOf(c *Conn) string {
	if r := c.BodyFault(); r != nil {
		return "body: " + r.Reason
	}
	return "cut" // by the client
}

func TestRequestsOneAfterTheOther(t *testing.T) {
	t.Parallel()
	const (
		get    = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n"
		post   = "POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"
		chunks = "PUT /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nX: y\r\n\r\n"
	)
	for name, test := range map[string]struct {
		in   string
		want []string
	}{
		"all":              {get + post + chunks + get, []string{"GET /a ", "POST /b hello", "PUT /c abcde", "GET /a "}},
		"empty lines":      {"\r\n" + get + "\r\n" + post + "\r\n" + get, []string{"GET /a ", "POST /b hello", "GET /a "}},
		"two empty lines":  {get + "\r\n\r\n" + get, []string{"GET /a ", "refused: line-end"}},
		"refused":          {get + "GET /x\r\n\r\n" + get, []string{"GET /a ", "refused: request-line"}},
		"after a body":     {post + "x" + get, []string{"POST /b hello", "refused: method-unknown"}},
		"bad chunk":        {"PUT /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n\r\n" + get, []string{"body: chunk"}},
		"bad end of chunk": {"PUT /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc" + get, []string{"body: chunk"}},
		"bad trailer":      {"PUT /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nHost: y\r\n\r\n" + get, []string{"body: trailer"}},
		"cut":              {post[:len(post)-1], []string{"cut"}},
		"cut head":         {get[:len(get)-1], nil},
		"nothing":          {"", nil},
	} {
		for _, sizes := range [][]int{nil, {1}, {2}, {3, 1}, {7}, {64}} {
			for _, buffer := range []int{16, 4096} {
				got, err := read(newScript(test.in, sizes...), buffer)
				if err != nil || !slices.Equal(got, test.want) {
					t.Errorf("%s in pieces of %v: got %q, %v, expected %q", name, sizes, got, err, test.want)
				}
			}
		}
	}
}

func TestTooLong(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"GET /" + strings.Repeat("a", 2000):                                                "refused: uri-too-long",
		"GET / HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("a", 2000):                     "refused: header-too-large",
		"GET / HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("X: y\r\n", 300):                  "refused: header-too-large",
		"GET / HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("a", 900) + "\r\n\r\n":         "GET / ",
		"\r\nGET / HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("a", 968) + "\r\n\r\n":     "GET / ",
		"\r\nGET / HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("a", 968) + "a\r\n\r\nGET": "refused: header-too-large",
	} {
		for _, sizes := range [][]int{nil, {1}, {100}} {
			got, err := read(newScript(in, sizes...), 4096)
			if err != nil || len(got) == 0 || got[0] != want {
				t.Errorf("%.40q of %d bytes: got %q, %v, expected %q", in, len(in), got, err, want)
			}
		}
	}
}

// The head of a well-formed request passes, and net/http reads it.
func TestAnswered(t *testing.T) {
	t.Parallel()
	c := newScript("GET / HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: y\r\n\r\n\x00\x01GET / HTTP/1.1\r\n")
	buffer := make([]byte, 4096)
	if !c.Waiting() {
		t.Error("a new connection doesn't wait")
	}
	n, err := c.Read(buffer)
	if err != nil || !strings.HasPrefix(string(buffer[:n]), "GET / ") || c.Waiting() {
		t.Fatalf("%q, %v", buffer[:n], err)
	}
	if n, err := c.Read(buffer); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("before the protocol was changed: %q, %v", buffer[:n], err)
	}
	c.Hijacked()
	if n, err := c.Read(buffer); err != nil || !strings.HasPrefix(string(buffer[:n]), "\x00\x01GET") {
		t.Errorf("%q, %v", buffer[:n], err)
	}
	// A server that believes a message over that isn't gets nothing more.
	c = newScript("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n", 51)
	if _, err := c.Read(buffer); err != nil {
		t.Fatal(err)
	}
	c.Answered()
	if n, err := c.Read(buffer); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("the rest of a body: %q, %v", buffer[:n], err)
	}
}

func TestDeadlines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, client := net.Pipe()
		defer client.Close()
		idle := 0
		c := New(server, &Limits{
			Header: 1000, Marker: marker, HeaderTimeout: 20 * time.Millisecond, IdleTimeout: 40 * time.Millisecond, WriteTimeout: 20 * time.Millisecond,
			Idle: func() { idle++ },
		}, clock.System())
		buffer := make([]byte, 4096)
		go func() { _, _ = io.WriteString(client, "GET / HTTP/1.1\r\nHost: x\r\n\r\n") }()
		if _, err := c.Read(buffer); err != nil {
			t.Fatal(err)
		}
		// While the request is answered only the server's own deadline counts.
		_ = c.SetReadDeadline(time.Now().Add(60 * time.Millisecond))
		began := time.Now()
		if _, err := c.Read(buffer); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) != 60*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		_ = c.SetReadDeadline(time.Time{})
		if _, err := c.Write([]byte("x")); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a write that nobody takes: %v", err)
		}
		c.Answered()
		go func() { _, _ = io.WriteString(client, "GET") }()
		if n, err := c.Read(buffer); err != nil || !strings.HasPrefix(string(buffer[:n]), "GET "+marker) || c.Refused() != RefusedSlow {
			t.Errorf("%q, %v", buffer[:n], err)
		}
		if _, err := c.Read(buffer); !errors.Is(err, io.EOF) || idle != 0 {
			t.Errorf("then %v", err)
		}
		other, far := net.Pipe()
		defer far.Close()
		c = New(other, c.limits, clock.System())
		c.fresh = false
		if _, err := c.Read(buffer); !errors.Is(err, os.ErrDeadlineExceeded) || idle != 1 {
			t.Errorf("idle: %v, %d", err, idle)
		}
	})
}

// FuzzConn looks for input that this package lets through and net/http refuses
// or reads otherwise, and for input that is read otherwise in other pieces.
func FuzzConn(f *testing.F) {
	for _, s := range []string{
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"POST /b?c=d HTTP/1.1\r\nHost: x:80\r\nContent-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"PUT http://x/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n3;a=b\r\nabc\r\n0\r\nX: y\r\n\r\n",
		"OPTIONS * HTTP/1.0\r\n\r\n", "GET / HTTP/1.1\r\nHost: [::1]\r\nConnection: close, te\r\nExpect: 100-continue\r\n\r\n",
		"\r\nGET http://x?y HTTP/1.1\r\nHost: X\r\nUpgrade: y\r\n\r\n",
	} {
		f.Add([]byte(s), uint8(3), uint8(1))
	}
	f.Fuzz(func(t *testing.T, data []byte, first, second uint8) {
		whole, err := read(newScript(string(data)), 4096)
		if err != nil {
			t.Fatalf("net/http refuses what was let through: %v\n%q", err, data)
		}
		pieces, err := read(newScript(string(data), int(first), int(second)), 4096)
		if err != nil || !slices.Equal(whole, pieces) {
			t.Fatalf("in pieces of %d and %d: %q, %v; whole: %q", first, second, pieces, err, whole)
		}
	})
}

func BenchmarkHead(b *testing.B) {
	head := []byte("GET /u/alice/inbox?page=2 HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: bench\r\nAccept: */*\r\nX-User: bob\r\nCookie: a=b; c=d\r\n\r\n")
	b.ReportAllocs()
	for b.Loop() {
		if _, r := parseHead(head, Protected); r != nil {
			b.Fatal(r)
		}
	}
}
