package door

import (
	"net"
	"sync"
)

// limited is a listener whose connections are open so many at a time; others wait.
type limited struct {
	net.Listener

	slots  chan struct{}
	closed chan struct{}
	once   sync.Once
}

// limit returns a listener of at most n connections at a time.
func limit(l net.Listener, n int) net.Listener {
	return &limited{Listener: l, slots: make(chan struct{}, n), closed: make(chan struct{})}
}

// Accept implements net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &limitedConn{Conn: c, free: sync.OnceFunc(func() { <-l.slots })}, nil
}

// Close implements net.Listener.
func (l *limited) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// limitedConn is a connection that frees its slot when it is closed.
type limitedConn struct {
	net.Conn

	free func()
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	defer c.free()
	return c.Conn.Close()
}

// CloseWrite says that nothing more will be written. net/http does so before it closes a
// connection whose request it didn't read whole: a client that still sends would have
// the connection reset otherwise, and never read why it was refused.
func (c *limitedConn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}
