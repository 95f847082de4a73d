//go:build unix

package socket

import (
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
)

// most is how much one call reads or writes: more would keep the thread from
// others for too long.
const most = 64 << 10

// Conn is a TCP connection. Make one with Wrap.
type Conn struct {
	*net.TCPConn
	raw           syscall.RawConn
	reads, writes direction
}

// direction is one that bytes go. Its step is made once, so that a call costs no
// closure.
type direction struct {
	mu   sync.Mutex
	b    []byte
	n    int
	err  error
	step func(fd uintptr) bool
}

// Wrap returns a TCP connection that is read and written by this package, and any
// other connection as it is.
func Wrap(c net.Conn) net.Conn {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return c
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return c
	}
	s := &Conn{TCPConn: tcp, raw: raw}
	s.reads.step, s.writes.step = s.reads.read, s.writes.write
	return s
}

// Read implements net.Conn.
func (c *Conn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	d := &c.reads
	d.mu.Lock()
	defer d.mu.Unlock()
	d.b, d.n, d.err = p[:min(len(p), most)], 0, nil
	err := c.raw.Read(d.step)
	d.b = nil
	switch {
	case err != nil:
		return 0, err
	case d.err != nil:
		return 0, c.fault("read", d.err)
	case d.n == 0:
		return 0, io.EOF
	}
	return d.n, nil
}

// Write implements net.Conn.
func (c *Conn) Write(p []byte) (int, error) {
	d := &c.writes
	d.mu.Lock()
	defer d.mu.Unlock()
	d.b, d.n, d.err = p, 0, nil
	err := c.raw.Write(d.step)
	d.b = nil
	if err == nil && d.err != nil {
		err = c.fault("write", d.err)
	}
	return d.n, err
}

// ReadFrom would be net.TCPConn's, whose writes are not these.
func (c *Conn) ReadFrom(r io.Reader) (int64, error) { return io.Copy(struct{ io.Writer }{c}, r) }

// WriteTo would be net.TCPConn's, whose reads are not these.
func (c *Conn) WriteTo(w io.Writer) (int64, error) { return io.Copy(w, struct{ io.Reader }{c}) }

func (c *Conn) fault(what string, err error) error {
	return &net.OpError{Op: what, Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
}

// read returns false to be called again when there is something to be read.
func (d *direction) read(fd uintptr) bool {
	d.n, d.err = Read(fd, d.b)
	return !errors.Is(d.err, syscall.EAGAIN)
}

// write returns false to be called again when more can be written.
func (d *direction) write(fd uintptr) bool {
	for len(d.b) > d.n {
		n, err := Write(fd, d.b[d.n:min(len(d.b), d.n+most)])
		d.n += n
		if errors.Is(err, syscall.EAGAIN) {
			return false
		}
		if err != nil {
			d.err = err
			return true
		}
	}
	return true
}
