package decider

import (
	"testing"
	"time"

	"penstock/schemas/control"
)

func TestStale(t *testing.T) {
	end := time.Date(2015, 5, 17, 10, 0, 0, 0, time.UTC)
	w := control.Window{Start: end.Add(-time.Hour), End: end}
	short := control.Window{Start: end.Add(-time.Second), End: end}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var none time.Time
	for _, c := range []struct {
		name                string
		w                   control.Window
		at, watermark, then time.Time
		want                bool
	}{
		{"nothing decided", control.Window{}, none, end, now, false},
		{"just decided", w, now, end, now, false},
		{"two windows on", w, now, end.Add(2 * time.Hour), now, false},
		{"more than two windows on", w, now, end.Add(2*time.Hour + 1), now, true},
		{"without a watermark", w, now, none, now.Add(2 * time.Hour), false},
		{"without a watermark, later", w, now, none, now.Add(2*time.Hour + 1), true},
		{"the wall counts too", w, now, end, now.Add(3 * time.Hour), true},
		{"not in a replay", w, now, end, none, false},
		{"a short one comes late", short, now, end.Add(9 * time.Second), now.Add(9 * time.Second), false},
		{"a short one, later", short, now, end, now.Add(11 * time.Second), true},
		{"a short one, more windows on", short, now, end.Add(11 * time.Second), now, true},
		{"nor of an unknown record", w, none, end, now, false},
	} {
		if got := Stale(c.w, c.at, c.watermark, c.then); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
		s := Status{Window: c.w, At: c.at, Watermark: c.watermark}
		if s.Stale(c.then) != c.want {
			t.Errorf("%s: the status says otherwise", c.name)
		}
	}
}

// TestStatusFollowsTheWatermark: without data no window closes, and the status
// tells how far time has come all the same.
func TestStatusFollowsTheWatermark(t *testing.T) {
	w := newWorld(t, 2, 0)
	r := w.start()
	w.close(0, row{0, "regular", 1})
	w.next()
	r.settled()
	s := r.Status()
	if s.At.IsZero() || s.Stale(s.At) || !s.Watermark.Equal(s.Window.End) {
		t.Errorf("status %+v", s)
	}
	w.close(3)
	for !r.Status().Stale(s.At) {
		if w.ctx.Err() != nil {
			t.Fatalf("status %+v", r.Status())
		}
		r.settled()
	}
	r.kill()
	r = w.start() // which learns when the record came from the bus
	<-r.Ready()
	if again := r.Status(); again.At.Sub(s.At).Abs() > time.Minute || !again.Window.End.Equal(s.Window.End) {
		t.Errorf("after a restart: %+v, before %+v", again, s)
	}
	r.stop()
}
