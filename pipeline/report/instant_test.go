package report

import (
	"testing"
	"time"
)

func TestInstantsOfShortWindowsHaveSeconds(t *testing.T) {
	at := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		at   time.Time
		want string
	}{{at, "2026-03-01 09:00"}, {at.Add(10 * time.Second), "2026-03-01 09:00:10"}} {
		if got := Instant(c.at); got != c.want {
			t.Errorf("got %s, expected %s", got, c.want)
		}
	}
	if got := ClockTime(at.Add(time.Second)); got != "09:00:01" {
		t.Errorf("got %s", got)
	}
}
