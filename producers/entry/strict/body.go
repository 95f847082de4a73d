package strict

import (
	"io"
	"time"
)

// readBody hands on what belongs to the body, from the buffer or straight from
// the connection; what follows the body stays in the buffer.
func (c *Conn) readBody(p []byte) (int, error) {
	if c.from < c.to {
		n, err := c.body(c.buf[c.from:min(c.to, c.from+len(p))])
		copy(p, c.buf[c.from:c.from+n])
		c.from += n
		if n > 0 {
			return n, nil
		}
		return 0, err
	}
	c.setOwn(time.Time{})
	if c.state == inLength && int64(len(p)) > c.length {
		p = p[:c.length]
	}
	n, err := c.Conn.Read(p)
	if n == 0 {
		return 0, err
	}
	m, bodyErr := c.body(p[:n])
	if m < n && bodyErr == nil {
		rest := p[m:n]
		if len(c.buf) < len(rest) {
			c.buf = make([]byte, len(rest))
		}
		c.from, c.to, c.scanned = 0, copy(c.buf, rest), 0
		c.started = c.clock.Now()
	}
	if m == 0 {
		return 0, bodyErr
	}
	return m, nil // a fault comes with the next read
}

// body follows b and returns how much of it is the body's. At its end the next
// head begins.
func (c *Conn) body(b []byte) (int, error) {
	if c.state == inLength {
		n := int(min(int64(len(b)), c.length))
		if c.length -= int64(n); c.length == 0 {
			c.state = inHead
		}
		return n, nil
	}
	n, done, r := c.chunks.feed(b)
	if r != nil {
		c.bodyFault.Store(r)
		c.state, c.err = failed, &BodyError{r}
		return n, c.err
	}
	if done {
		c.state = inHead
	}
	return n, nil
}

// hold reads without handing on, while nobody knows whether the other protocol
// is agreed on: the server still learns that the client has gone.
func (c *Conn) hold() error {
	if c.to-c.from >= c.limits.Header {
		c.state, c.err = failed, io.ErrUnexpectedEOF
		return c.err
	}
	c.makeRoom()
	c.setOwn(time.Time{})
	n, err := c.Conn.Read(c.buf[c.to:])
	c.to += n
	if n > 0 {
		return nil
	}
	return err
}
