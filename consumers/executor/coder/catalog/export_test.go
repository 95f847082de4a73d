package catalog

import berrors "go.etcd.io/bbolt/errors"

// ErrFull is what a full file's commits fail with.
var ErrFull = berrors.ErrMaxSizeReached

// Full lets the file grow no more, or again.
func (c *Catalog) Full(full bool) {
	c.db.MaxSize = 0
	if full {
		c.db.MaxSize = 1
	}
}

// Waiting is how many writers stand in line.
func (c *Catalog) Waiting() int {
	c.line.mu.Lock()
	defer c.line.mu.Unlock()
	return len(c.line.waiting)
}

// Commits is the number of the file's last transaction.
func (c *Catalog) Commits() (n int) {
	_ = c.read(func(v *view) error {
		n = v.tx.ID()
		return nil
	})
	return n
}
