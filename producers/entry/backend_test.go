package entry_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// seen is one request as the strict backend read it.
type seen struct {
	line    string
	headers map[string][]string // names in small letters
	body    string
}

// strictBackend is a server that has its own reading of RFC 9112, as strict as
// it can be, and nothing of net/http. What it can't read is a fault of the entry
// point in front of it.
type strictBackend struct {
	url string

	mu     sync.Mutex
	seen   []seen
	faults []string
	conns  map[net.Conn]bool
}

func newStrictBackend(t testing.TB) *strictBackend {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &strictBackend{url: "http://" + l.Addr().String(), conns: map[net.Conn]bool{}}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			b.mu.Lock()
			b.conns[c] = true
			b.mu.Unlock()
			all.Go(func() { b.serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		b.mu.Lock()
		for c := range b.conns {
			_ = c.Close()
		}
		b.mu.Unlock()
		all.Wait()
		for _, f := range b.faults {
			t.Errorf("the backend got %s", f)
		}
	})
	return b
}

func (b *strictBackend) serve(c net.Conn) {
	defer c.Close()
	r := bufio.NewReader(c)
	for {
		if _, err := r.Peek(1); err != nil {
			return
		}
		q, err := readStrict(r)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) {
			return // a request that was broken off is none
		}
		if err != nil {
			b.mu.Lock()
			b.faults = append(b.faults, fmt.Sprintf("%v: %q", err, q))
			b.mu.Unlock()
			return
		}
		b.mu.Lock()
		b.seen = append(b.seen, q)
		b.mu.Unlock()
		answer := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(q.line), q.line)
		if strings.HasPrefix(q.line, "HEAD ") {
			answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
		}
		if _, err := io.WriteString(c, answer); err != nil {
			return
		}
	}
}

// since returns the requests from the n-th on.
func (b *strictBackend) since(n int) []seen {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]seen(nil), b.seen[n:]...)
}

var (
	strictLine  = regexp.MustCompile(`^[A-Z][A-Z0-9_-]* (/[!-"$-~]*|\*) HTTP/1\.1$`)
	strictField = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+: ?([!-~]([ \\t!-~]*[!-~])?)?$")
	strictChunk = regexp.MustCompile(`^[0-9a-fA-F]{1,8}$`)
)

// ascii writes bytes from 0x80 on, which may stand in values, as x.
func ascii(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 0x80 {
			b[i] = 'x'
		}
	}
	return string(b)
}

func crlf(r *bufio.Reader) (string, error) {
	s, err := r.ReadString('\n')
	if err != nil {
		return s, err
	}
	if !strings.HasSuffix(s, "\r\n") {
		return s, fmt.Errorf("a line without CR LF")
	}
	return s[:len(s)-2], nil
}

var errChunkEnd = errors.New("expected CR LF")

func readStrict(r *bufio.Reader) (q seen, err error) {
	q.headers = map[string][]string{}
	if q.line, err = crlf(r); err != nil {
		return q, err
	}
	if !strictLine.MatchString(q.line) {
		return q, fmt.Errorf("a request line %q", q.line)
	}
	for {
		line, err := crlf(r)
		if err != nil {
			return q, err
		}
		if line == "" {
			break
		}
		if !strictField.MatchString(ascii(line)) {
			return q, fmt.Errorf("a field %q", line)
		}
		name, value, _ := strings.Cut(line, ":")
		name = strings.ToLower(name)
		q.headers[name] = append(q.headers[name], strings.TrimSpace(value))
	}
	length, coding := q.headers["content-length"], q.headers["transfer-encoding"]
	if len(length)+len(coding) > 1 || len(q.headers["host"]) != 1 {
		return q, fmt.Errorf("framing %v %v, host %v", length, coding, q.headers["host"])
	}
	switch {
	case len(coding) == 1:
		if coding[0] != "chunked" {
			return q, fmt.Errorf("coding %q", coding[0])
		}
		q.body, err = readStrictChunks(r, q)
	case len(length) == 1:
		n, err := strconv.ParseUint(length[0], 10, 31)
		if err != nil {
			return q, err
		}
		b := make([]byte, n)
		if _, err = io.ReadFull(r, b); err != nil {
			return q, err
		}
		q.body = string(b)
	}
	return q, err
}

func readStrictChunks(r *bufio.Reader, q seen) (string, error) {
	var body strings.Builder
	for {
		line, err := crlf(r)
		if err != nil {
			return "", err
		}
		if !strictChunk.MatchString(line) {
			return "", fmt.Errorf("a chunk size %q", line)
		}
		n, _ := strconv.ParseInt(line, 16, 64)
		if n == 0 {
			break
		}
		if _, err := io.CopyN(&body, r, n); err != nil {
			return "", err
		}
		if end, err := crlf(r); err != nil || end != "" {
			return "", fmt.Errorf("after a chunk: %q, %w", end, errors.Join(err, errChunkEnd))
		}
	}
	for {
		line, err := crlf(r)
		if err != nil || line == "" {
			return body.String(), err
		}
		if !strictField.MatchString(ascii(line)) {
			return "", fmt.Errorf("a trailer %q", line)
		}
		name, value, _ := strings.Cut(line, ":")
		q.headers["trailer:"+strings.ToLower(name)] = []string{strings.TrimSpace(value)}
	}
}
