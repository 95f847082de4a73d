package main

import (
	"fmt"
	"time"
)

// instant is a time on the command line. The zero value is none.
type instant struct{ time.Time }

// UnmarshalText reads what RFC 3339 allows, and says so of anything else.
func (i *instant) UnmarshalText(text []byte) (err error) {
	if i.Time, err = time.Parse(time.RFC3339, string(text)); err != nil {
		return fmt.Errorf("%.80q: expected a time of RFC 3339 with its zone, such as 2026-03-01T10:00:00Z or 2026-03-01T11:00:00+01:00", text)
	}
	return nil
}
