package report

import "errors"

// ErrAudit is returned when events are not all accounted for. What was read is
// unchanged.
var ErrAudit = errors.New("the account does not hold")

// ErrLatency is returned for a latency table that cannot be used; the error
// names file, line, field and what was expected. Nothing was taken from it.
var ErrLatency = errors.New("latency table")
