//go:build unix

package upstream

import (
	"errors"
	"io"
	"syscall"

	"penstock/producers/entry/socket"
)

// look deals with the socket of a connection that has been idle: a server that
// has closed it, or has sent what nobody asked for, must not be sent a request
// on it.
//
// Looking, writing the request and waiting for the answer are one read of the
// socket to the runtime: what the first look finds empty is waited for after the
// write, so that the answer isn't looked for in vain right after it.
type look struct {
	raw   syscall.RawConn
	step  func(fd uintptr) bool
	asked bool

	request []byte
	into    []byte
	conn    *conn // is told when the request has been written
	got     looked
}

// looked is what became of a request on a connection that had been idle.
type looked struct {
	n     int   // bytes of the answer
	wrote int   // bytes of the request
	dead  bool  // the connection could not be used; nothing was written
	err   error // of the write or the read
}

func (l *look) init(c syscall.Conn) {
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	l.raw = raw
	l.step = l.next
}

// exchanges reports whether exchange may be used for a request.
func (l *look) exchanges(request []byte) bool { return l.raw != nil && len(request) <= mostAtOnce }

// exchange writes a request and reads the beginning of the answer. If not all of
// the request was taken it returns without waiting.
func (l *look) exchange(request, into []byte, c *conn) looked {
	l.request, l.into, l.conn, l.asked, l.got = request, into, c, false, looked{}
	if err := l.raw.Read(l.step); err != nil {
		l.got.err = err
	}
	l.request, l.into, l.conn = nil, nil, nil
	return l.got
}

// next is called with the socket at first and whenever it may have something to
// read. It returns false to wait for that.
func (l *look) next(fd uintptr) bool {
	if !l.asked {
		if !quiet(fd, l.into) {
			l.got.dead = true
			return true
		}
		l.asked = true
		n, err := socket.Write(fd, l.request)
		if errors.Is(err, syscall.EAGAIN) {
			err = nil
		}
		l.got.wrote, l.got.err = n, err
		if err != nil || n < len(l.request) {
			return true
		}
		l.conn.sent()
		return false
	}
	n, err := socket.Read(fd, l.into)
	switch {
	case errors.Is(err, syscall.EAGAIN):
		return false
	case err == nil && n == 0:
		err = io.EOF
	}
	l.got.n, l.got.err = n, err
	return true
}

// quiet reports whether a connection has nothing to be read and stands.
func (l *look) quiet() bool {
	if l.raw == nil {
		return true
	}
	var b [1]byte
	empty := false
	err := l.raw.Read(func(fd uintptr) bool {
		empty = quiet(fd, b[:])
		return true // never wait
	})
	return err == nil && empty
}

// quiet reads from a socket. What it gets is lost, but so is the connection then.
func quiet(fd uintptr, into []byte) bool {
	_, err := socket.Read(fd, into[:1])
	return errors.Is(err, syscall.EAGAIN)
}
