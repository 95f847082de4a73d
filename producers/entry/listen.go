package entry

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"sync"
	"time"

	"penstock/infra/clock"
	"penstock/producers/entry/socket"
	"penstock/producers/entry/strict"
)

// overLimit is what a client gets whose connection is one too many, where it can
// be told without reading from it.
const overLimit = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\nRetry-After: 1\r\n" +
	"Connection: close\r\nContent-Length: 32\r\n\r\npenstock: too many connections.\n"

// accept takes connections until the listener is closed, and gives them to the
// server of their protocol. That is given others until it is shut down: those that
// are served here may become its own later.
func (d *door) accept(plain, multi *queue) error {
	for pause := 5 * time.Millisecond; ; {
		c, err := d.listener.Accept()
		var network net.Error
		switch {
		case err == nil:
			pause = 5 * time.Millisecond
			d.take(c, plain, multi)
		case errors.Is(err, net.ErrClosed):
			return nil
		case errors.As(err, &network):
			// Such as too many open files: others may close theirs.
			d.e.m.connection("accept-failed")
			_ = clock.System().Sleep(context.Background(), pause)
			pause = min(2*pause, time.Second)
		default:
			return err
		}
	}
}

func (d *door) take(c net.Conn, plain, multi *queue) {
	counted := &counted{Conn: socket.Wrap(c), of: &d.conns, gauge: d.e.m.open}
	if !d.conns.add(counted, d.e.o.Limits.Connections) {
		d.e.m.connection("over-limit")
		if d.tls == nil {
			_ = c.SetWriteDeadline(clock.System().Now().Add(100 * time.Millisecond))
			_, _ = io.WriteString(c, overLimit)
		}
		_ = c.Close()
		return
	}
	d.e.m.connection("accepted")
	d.e.m.open.Inc()
	if d.tls == nil && !d.h2c {
		d.guard(counted, counted, plain)
		return
	}
	d.conns.begun.Go(func() { d.begin(counted, plain, multi) })
}

// begin finds out which protocol a connection speaks.
func (d *door) begin(c *counted, plain, multi *queue) {
	if t := d.e.limits.HeaderTimeout; t > 0 {
		_ = c.SetDeadline(clock.System().Now().Add(t))
	}
	if d.tls != nil {
		secured := tls.Server(c, d.tls)
		if err := secured.HandshakeContext(context.Background()); err != nil {
			d.e.m.connection("tls-failed")
			_ = c.Close()
			return
		}
		_ = c.SetDeadline(time.Time{})
		if secured.ConnectionState().NegotiatedProtocol == "h2" {
			c.multi.Store(true)
			multi.give(secured)
			return
		}
		d.guard(c, secured, plain)
		return
	}
	read, is, err := readPreface(c)
	if err != nil {
		d.e.m.connection("silent")
		_ = c.Close()
		return
	}
	_ = c.SetDeadline(time.Time{})
	if is {
		c.multi.Store(true)
		multi.give(&peeked{Conn: c, read: read})
		return
	}
	d.guard(c, &peeked{Conn: c, read: read}, plain)
}

// guard has a connection served as HTTP/1, of which only what is right is read.
// with is the connection as its server sees it.
func (d *door) guard(c *counted, with net.Conn, plain *queue) {
	g := strict.New(with, d.e.limits, clock.System())
	c.guard.Store(g)
	d.simples.enter()
	go d.simple(g, plain)
}

var preface = []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")

// readPreface reads until it is known whether a connection begins with the
// preface of HTTP/2, and returns what it has read.
func readPreface(c net.Conn) (read []byte, is bool, err error) {
	read = make([]byte, 0, len(preface))
	for {
		n, err := c.Read(read[len(read):cap(read)])
		read = read[:len(read)+n]
		switch {
		case !bytes.HasPrefix(preface, read):
			return read, false, nil
		case len(read) == len(preface):
			return read, true, nil
		case err != nil:
			return nil, false, err
		}
	}
}

// peeked is a connection of which the first bytes have been read.
type peeked struct {
	net.Conn
	read []byte
}

func (p *peeked) Read(b []byte) (int, error) {
	if len(p.read) > 0 {
		n := copy(b, p.read)
		p.read = p.read[n:]
		return n, nil
	}
	return p.Conn.Read(b)
}

func (p *peeked) CloseWrite() error { return closeWrite(p.Conn) }

// errorLog counts what net/http has to say: of single connections, and of panics,
// which are faults of ours and go to the log.
func (e *Entry) errorLog() *log.Logger { return log.New(serverLog{e}, "", 0) }

type serverLog struct{ e *Entry }

func (l serverLog) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("panic")) {
		l.e.m.connection("panic")
		l.e.o.Logger.Error().Str("site", l.e.o.Site).Bytes("fault", b).Msg("request ended in a panic")
		return len(b), nil
	}
	l.e.m.connection("fault")
	return len(b), nil
}

// queue is a listener of connections that were accepted elsewhere.
type queue struct {
	addr net.Addr
	ch   chan net.Conn
	done chan struct{}
	once sync.Once
}

func newQueue(a net.Addr) *queue {
	return &queue{addr: a, ch: make(chan net.Conn), done: make(chan struct{})}
}

// give hands a connection over, or closes it if the server has ended.
func (q *queue) give(c net.Conn) {
	select {
	case q.ch <- c:
	case <-q.done:
		_ = c.Close()
	}
}

func (q *queue) end() { q.once.Do(func() { close(q.done) }) }

// Accept implements net.Listener.
func (q *queue) Accept() (net.Conn, error) {
	select {
	case c := <-q.ch:
		return c, nil
	case <-q.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (q *queue) Close() error {
	q.end()
	return nil
}

// Addr implements net.Listener.
func (q *queue) Addr() net.Addr { return q.addr }
