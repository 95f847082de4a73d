package report

import "time"

// Instant writes an instant for people: to the minute where it is a whole one, as
// the ends of hourly windows are, else to the second.
func Instant(t time.Time) string { return t.UTC().Format("2006-01-02 " + clockFormat(t)) }

// ClockTime is Instant without the day.
func ClockTime(t time.Time) string { return t.UTC().Format(clockFormat(t)) }

func clockFormat(t time.Time) string {
	if t.Second() == 0 {
		return "15:04"
	}
	return "15:04:05"
}
