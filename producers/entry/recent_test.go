package entry

import (
	"strconv"
	"testing"
	"time"
)

// What is remembered is so for its time, and never more than there is room for.
func TestRecent(t *testing.T) {
	t.Parallel()
	var r recent
	start := time.Unix(1000, 0)
	r.add("ada", start, time.Second)
	for after, want := range map[time.Duration]bool{0: true, 999 * time.Millisecond: true, time.Second: false} {
		if got := r.has("ada", start.Add(after)); got != want {
			t.Errorf("after %v: %v", after, got)
		}
	}
	if r.has("bea", start) {
		t.Error("bea was never added")
	}
	for i := range 2 * recentMost {
		r.add(strconv.Itoa(i), start, time.Second)
	}
	if n := len(r.until); n != recentMost {
		t.Errorf("%d owners are remembered", n)
	}
	r.add("bea", start.Add(2*time.Second), time.Second)
	if n := len(r.until); n != 1 || !r.has("bea", start.Add(2*time.Second)) {
		t.Errorf("%d owners are remembered after their time", n)
	}
}
