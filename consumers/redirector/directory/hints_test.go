package directory

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

func (w *world) hints(what string) float64 {
	return testutil.ToFloat64(w.d.shown.hints.WithLabelValues(what))
}

// TestHints: a greater version is believed until the bus has its say.
func TestHints(t *testing.T) {
	w := begin(t, Options{Sites: []string{"a", "b", "c"}, HintTTL: time.Hour})
	pinned := at("a", 3)
	pinned.Pinned = true
	w.set("x", pinned)
	w.follows("an entry")
	located := func(owner, site string, version uint64) {
		t.Helper()
		s, v, known := w.d.Locate(owner)
		l, there := w.d.Get(owner)
		if s != site || v != version || known != (site != "") || there != known || l.Site != site || l.Version != version {
			t.Errorf("%s is at %q %d, in full %+v, expected %q %d", owner, s, v, l, site, version)
		}
	}
	for _, c := range []struct {
		owner, site string
		version     uint64
		what        string
	}{
		{"x", "b", 3, "old"},
		{"x", "b", 2, "old"},
		{"x", "mars", 9, "unknown-site"},
		{"x", "", 9, "unusable"},
		{"x", "b", 0, "unusable"},
		{strings.Repeat("x", maxOwner+1), "b", 1, "unusable"},
		{"x", "b", 5, "learned"},
		{"x", "c", 4, "old"},
		{"x", "c", 5, "old"},
		{"x", "c", 6, "learned"},
		{"new", "b", 1, "learned"},
	} {
		before := w.hints(c.what)
		w.d.Learn(c.owner, c.site, c.version)
		if w.hints(c.what) != before+1 {
			t.Errorf("%.9q at %s %d is not %s", c.owner, c.site, c.version, c.what)
		}
	}
	located("x", "c", 6)
	located("new", "b", 1)
	if l, _ := w.d.Get("x"); !l.Pinned {
		t.Error("no longer pinned, by a hint")
	}
	w.set("x", at("b", 5)) // on its way when the hint came
	eventually(t, "the entry", func() bool { return testutil.ToFloat64(w.d.shown.changed) == 1 })
	located("x", "c", 6)
	w.set("x", at("a", 6))
	eventually(t, "the entry of the hint's version", func() bool { return w.hints("superseded") == 1 })
	located("x", "a", 6)
	w.set("new", at("c", 1))
	eventually(t, "a new entry", func() bool { return w.hints("superseded") == 2 })
	located("new", "c", 1)
	w.d.Learn("new", "b", 8)
	located("new", "b", 8)
	w.remove("new")
	eventually(t, "a deletion", func() bool { return w.hints("superseded") == 3 })
	located("new", "", 0)
}

// TestHintsExpire with a bus that doesn't confirm them, not without one; and they
// are bounded.
func TestHintsExpire(t *testing.T) {
	const most = 100
	w := begin(t, Options{HintTTL: 50 * time.Millisecond})
	w.set("x", at("a", 1))
	w.follows("an entry")
	w.bus.Suspend()
	eventually(t, "the loss", func() bool { _, connected := w.d.Freshness(); return !connected })
	w.d.hintMost = most // nobody else learns in this test
	w.d.Learn("x", "b", 2)
	for i := range most - 1 {
		w.d.Learn(fmt.Sprint(i), "b", 1)
	}
	w.d.Learn("one too many", "b", 1)
	w.d.Learn("x", "c", 3) // takes no more room
	if w.hints("full") != 1 || w.hints("learned") != most+1 {
		t.Errorf("%v full, %v learned", w.hints("full"), w.hints("learned"))
	}
	time.Sleep(100 * time.Millisecond) // longer than they would hold
	if site, _, _ := w.d.Locate("x"); site != "c" {
		t.Errorf("x is at %q", site)
	}
	ok(t, w.bus.Resume())
	eventually(t, "the end of hints", func() bool { return w.hints("expired") == most })
	if site, version, _ := w.d.Locate("x"); site != "a" || version != 1 {
		t.Errorf("x is at %q %d", site, version)
	}
}
