package report

import "errors"

// ErrAudit is returned when events are not all accounted for. What was read is
// unchanged.
var ErrAudit = errors.New("the account does not hold")
