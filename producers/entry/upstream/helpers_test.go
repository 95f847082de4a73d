package upstream

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"penstock/infra/clock"
)

// patience of a test that waits for something that has to come.
const patience = time.Minute

// rawServer is a server that does with each connection what a test says.
type rawServer struct {
	net.Listener
	URL string

	mu    sync.Mutex
	conns map[net.Conn]bool
	all   sync.WaitGroup
	n     int // connections so far
}

// serveRaw starts a server; serve gets the number of the connection from 1 and
// returns when it is done with it.
func serveRaw(t testing.TB, serve func(n int, c net.Conn, r *bufio.Reader)) *rawServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &rawServer{Listener: l, URL: "http://" + l.Addr().String(), conns: map[net.Conn]bool{}}
	s.all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.n++
			n := s.n
			s.conns[c] = true
			s.mu.Unlock()
			s.all.Go(func() {
				defer s.close(c)
				serve(n, c, bufio.NewReader(c))
			})
		}
	})
	t.Cleanup(s.stop)
	return s
}

func (s *rawServer) close(c net.Conn) {
	_ = c.Close()
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
}

// stop ends the server and all of its connections.
func (s *rawServer) stop() {
	_ = s.Close()
	s.mu.Lock()
	for c := range s.conns {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.all.Wait()
}

// count is how many connections there were.
func (s *rawServer) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}

// answerAll reads one request after the other and answers each.
func answerAll(c net.Conn, r *bufio.Reader, answer string) {
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, req.Body)
		if _, err := io.WriteString(c, answer); err != nil {
			return
		}
	}
}

const okAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// newPool makes a pool that is closed with the test.
func newPool(t testing.TB, o Options, urls ...string) *Pool {
	t.Helper()
	o.Logger = zerolog.Nop()
	for _, u := range urls {
		o.Servers = append(o.Servers, Server{URL: u})
	}
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// newRequest makes a request as a server has it: without a body it is NoBody.
func newRequest(t testing.TB, method, target, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://service"+target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body == "" {
		req.Body = http.NoBody
	}
	req.GetBody = nil
	return req
}

// said is what came back.
type said struct {
	status  int
	header  http.Header
	trailer http.Header
	body    string
	err     error // of Do
	bodyErr error
	a       *Attempt
	failed  []Attempt // before
}

func (s said) String() string {
	return fmt.Sprintf("status %d %v, body %.40q, error %v, of the body %v, attempt %+v, before %+v", s.status, s.header, s.body, s.err, s.bodyErr, s.a, s.failed)
}

// do sends a request and reads the answer.
func do(p *Pool, req *http.Request) (s said) {
	resp, a, err := p.Do(req, func(a *Attempt) { s.failed = append(s.failed, *a) })
	s.a, s.err = a, err
	if resp == nil {
		return s
	}
	b, err := io.ReadAll(resp.Body)
	s.status, s.header, s.trailer, s.body, s.bodyErr = resp.StatusCode, resp.Header, resp.Trailer, string(b), err
	_ = resp.Body.Close()
	return s
}

// eventually waits for what comes without a signal of its own.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for late := time.Now().Add(patience); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("%s did not come", what)
		}
	}
}

func idleConns(p *Pool) (n int) {
	for _, s := range p.Status() {
		n += s.Idle
	}
	return n
}

func failures(p *Pool, reason string) (n uint64) {
	for _, s := range p.Status() {
		n += s.Failures[reason]
	}
	return n
}

// memConn is a connection on which an answer comes when a request is written.
type memConn struct {
	net.Conn
	mu     sync.Mutex
	cond   *sync.Cond
	answer []byte
	asked  bool
	closed bool
	most   int // bytes a read
}

func newMemConn(answer []byte, most int) *memConn {
	c := &memConn{answer: answer, most: most}
	c.cond = sync.NewCond(&c.mu)
	return c
}

func (c *memConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = true
	c.cond.Broadcast()
	return len(p), nil
}

func (c *memConn) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.asked && !c.closed {
		c.cond.Wait()
	}
	if c.closed {
		return 0, net.ErrClosed
	}
	if len(c.answer) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), max(c.most, 1))], c.answer)
	c.answer = c.answer[n:]
	return n, nil
}

func (c *memConn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.cond.Broadcast()
	return nil
}

func (*memConn) SetDeadline(time.Time) error      { return nil }
func (*memConn) SetReadDeadline(time.Time) error  { return nil }
func (*memConn) SetWriteDeadline(time.Time) error { return nil }
func (*memConn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (*memConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }

// inMemory has one answer read by a pool from a connection that never reads more
// than so many bytes at once.
func inMemory(t testing.TB, p *Pool, method string, answer []byte, most int) said {
	t.Helper()
	s := p.servers[0]
	s.conns.mu.Lock()
	c := newConn(newMemConn(answer, most), nil, clock.System())
	c.nc = c.tcp
	s.conns.idle = append(s.conns.idle, c)
	s.conns.open++
	s.conns.mu.Unlock()
	c.idleSince = time.Now()
	r := do(p, newRequest(t, method, "/", ""))
	s.conns.mayKeep(false)
	s.conns.mayKeep(true)
	if open, _ := s.conns.count(); open != 0 {
		t.Fatalf("%d connections are open after an answer %q", open, answer)
	}
	return r
}

var errAny = errors.New("any")
