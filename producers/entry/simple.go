package entry

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"

	"penstock/producers/entry/strict"
)

// Requests that are a head and nothing else are served here, as long as a
// connection has no others: from the first that has a body, asks for another
// protocol, or is refused, the connection is net/http's. net/http starts a
// goroutine for each request, which costs a fifth of all that a request costs; a
// request without a body needs none.

// simple serves a connection until it ends or is net/http's.
func (d *door) simple(g *strict.Conn, plain *queue) {
	defer d.simples.leave()
	ctx, cancel := context.WithCancel(d.connContext(d.base, g))
	defer cancel()
	s := &simpleConn{d: d, conn: g, remote: g.RemoteAddr().String()}
	s.w.out = bufio.NewWriterSize(g, 4<<10)
	s.w.header = http.Header{}
	for {
		head, err := g.Next()
		if err != nil {
			_ = g.Close()
			return
		}
		if head == nil {
			plain.give(g)
			return
		}
		if !s.serve(ctx, head) {
			_ = g.Close()
			return
		}
		g.Answered()
	}
}

// simpleConn is what requests of a connection share.
type simpleConn struct {
	d      *door
	conn   *strict.Conn
	remote string
	head   bytes.Reader
	w      simpleWriter
}

// heads are readers of heads: all of one is in memory when it is parsed.
var heads = sync.Pool{New: func() any { return bufio.NewReader(nil) }}

// serve answers one request; false ends the connection.
func (s *simpleConn) serve(ctx context.Context, head []byte) bool {
	s.head.Reset(head)
	in := heads.Get().(*bufio.Reader)
	in.Reset(&s.head)
	r, err := http.ReadRequest(in)
	heads.Put(in)
	if err != nil {
		// It was checked before, so this is net/http being stricter still.
		s.d.e.m.connection("fault")
		_, _ = s.conn.Write([]byte("HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"))
		return false
	}
	s.conn.Watched()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r = r.WithContext(ctx)
	r.RemoteAddr = s.remote
	s.w.begin(r, &s.d.draining)
	defer func() { s.w.request = nil }() // a connection may be idle for long
	return s.handle(r) && s.w.end() && !s.w.last
}

// handle has the request served; false if it ended in a panic.
func (s *simpleConn) handle(r *http.Request) (whole bool) {
	defer func() {
		if whole {
			return
		}
		if fault := recover(); fault != nil {
			if err, ok := fault.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				_ = s.w.out.Flush() // what there is of the answer
				return
			}
			_, _ = serverLog{s.d.e}.Write(fmt.Appendf(nil, "panic serving %s: %v\n%s", s.remote, fault, debug.Stack()))
		}
	}()
	s.d.e.ServeHTTP(&s.w, r)
	return true
}
