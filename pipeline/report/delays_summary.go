package report

// Summary is what a report says of the distribution, with the requests that have
// no place beside it.
func (d *Delays) Summary(unlocated int64) Delay { return d.summary(unlocated) }
