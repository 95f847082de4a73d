package load

import "errors"

var (
	// ErrLate is returned by Run when a request was sent later than MaxLag after
	// it was due. All that were due have been sent.
	ErrLate = errors.New("requests were not sent when they were due")
	// ErrCrowded is returned by Run when requests were not sent because MaxInFlight
	// others had not been answered. The report says how many.
	ErrCrowded = errors.New("too many requests were under way")
)
