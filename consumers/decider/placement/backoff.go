package placement

// heldUntil is the end (µs) of the last window in which an owner whose moves
// failed is not moved: after one failure the next window passes it over, after
// two in a row the next two, then 4, 8 and so on up to Config.BackOff. It is
// noTime without failures.
func (m *moveRecord) heldUntil(c *Config) int64 {
	if m.fails == 0 || c.BackOff == 0 {
		return noTime
	}
	windows := min(int64(1)<<min(m.fails-1, 7), int64(c.BackOff))
	return m.failed + windows*c.Window.Microseconds()
}

// failsMost bounds the count of failures in a row: beyond, nothing changes.
const failsMost = 8

// fail counts a move that failed or expired at event time now; succeed begins
// anew.
func (m *moveRecord) fail(now int64) {
	m.fails, m.failed = min(m.fails+1, failsMost), now
}

func (m *moveRecord) succeed() { m.fails, m.failed = 0, noTime }
