package catalog

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
