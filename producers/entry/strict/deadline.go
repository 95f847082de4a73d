package strict

import (
	"errors"
	"time"
)

// SetReadDeadline implements net.Conn. Of it and the deadline of a head the
// earlier counts.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.IsZero() && c.owner.IsZero() {
		return nil
	}
	c.owner = t
	return c.arm()
}

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

func (c *Conn) setOwn(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.own.Equal(t) {
		return
	}
	c.own = t
	_ = c.arm() // on a closed connection the read that follows says so
}

// Deadlines in the socket are expensive to set. Those that are renewed with each
// request are set an eighth later than they need be, and left alone for as long as
// they are not too early.

// idleDeadline is when the wait for a request is over.
func (c *Conn) idleDeadline() time.Time {
	t, slack := c.within(c.limits.IdleTimeout), c.limits.IdleTimeout/8
	if t.IsZero() {
		return t
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if late := c.own.Sub(t); late >= 0 && late <= slack {
		return c.own
	}
	return t.Add(slack)
}

// patience sets the deadline of a write.
func (c *Conn) patience() {
	d := c.limits.WriteTimeout
	if d <= 0 {
		return
	}
	now := c.clock.Now()
	if left := time.Duration(c.writeBy.Load() - now.UnixNano()); left >= d && left <= d+d/8 {
		return
	}
	by := now.Add(d + d/8)
	c.writeBy.Store(by.UnixNano())
	_ = c.Conn.SetWriteDeadline(by) // the write says what is wrong
}

// SetWriteDeadline implements net.Conn. It holds until the next Write.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.writeBy.Store(0)
	return c.Conn.SetWriteDeadline(t)
}

// arm sets the earlier of both deadlines; the lock is held.
func (c *Conn) arm() error {
	if c.watch.stopping {
		return nil
	}
	t := c.own
	if t.IsZero() || !c.owner.IsZero() && c.owner.Before(t) {
		t = c.owner
	}
	return c.Conn.SetReadDeadline(t)
}

// ownerDue reports whether the owner's deadline is what has passed.
func (c *Conn) ownerDue() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.owner.IsZero() && !c.clock.Now().Before(c.owner)
}
