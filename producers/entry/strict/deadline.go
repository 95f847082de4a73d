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
	return errors.Join(c.SetReadDeadline(t), c.Conn.SetWriteDeadline(t))
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

// arm sets the earlier of both deadlines; the lock is held.
func (c *Conn) arm() error {
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
