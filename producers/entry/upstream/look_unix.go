//go:build unix

package upstream

import (
	"errors"
	"syscall"
)

// look looks at an idle connection: a server that has closed it, or has sent
// what nobody asked for, must not be sent a request on it.
type look struct {
	raw   syscall.RawConn
	read  func(fd uintptr) bool
	byte  [1]byte
	empty bool
}

func (l *look) init(c syscall.Conn) {
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	l.raw = raw
	l.read = func(fd uintptr) bool {
		// What is read is lost, but so is the connection then.
		_, err := syscall.Read(int(fd), l.byte[:])
		l.empty = errors.Is(err, syscall.EAGAIN)
		return true // never wait
	}
}

// quiet reports whether there is nothing to be read and the connection stands.
func (l *look) quiet() bool {
	if l.raw == nil {
		return true
	}
	l.empty = false
	return l.raw.Read(l.read) == nil && l.empty
}
