package publisher

import "penstock/schemas/event"

// Classify says how a live row stands to the clock (DESIGN §3, late and
// future): late if it is before the horizon that its partition has announced,
// future if it is more than maxSkew ahead of now. All are µs. It is pure.
func Classify(time, horizon, now, maxSkew int64) event.Timing {
	switch {
	case time > now+maxSkew:
		return event.Future
	case time < horizon:
		return event.Late
	default:
		return event.InTime
	}
}
