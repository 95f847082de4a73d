package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/objectstore"
	"penstock/schemas/control"
)

// TestComesBack moves owners away and back again within delete_after, one between
// each two kinds of stores, with a crash after each move. What was written
// meanwhile is there, only that was copied, and the deletion that was planned of
// the first copy never fires. A purge deletes what moved away at once.
func TestComesBack(t *testing.T) {
	t.Parallel()
	const deleteAfter = 20 * time.Second // More than it takes to move all there and back.
	dir := t.TempDir()
	b := bustest.Start(t, func(o *bus.Options) { o.Partitions, o.Listen = 2, "127.0.0.1:0" })
	c := bustest.Client(t, b)
	e := build(t, dir, 2, deleteAfter)
	e.open(c)
	args := []string{"--config", e.config, "--state", filepath.Join(dir, "state"), "--name", "one", "--nats", b.URL()}
	w := gather(t, c, len(backends)*len(backends))
	home, away := map[string]string{}, map[string]string{}
	for i := range w.owners {
		owner := ownerName(i)
		home[owner], away[owner] = backends[i/len(backends)]+"-1", backends[i%len(backends)]+"-2"
		e.fill(home[owner], owner)
	}
	w.at = home
	move := func(to map[string]string) {
		t.Helper()
		if d := w.decision(w.sendTo(e, to)); moves(d) != w.owners {
			t.Fatalf("%d moves, reasons %v", moves(d), codes(d))
		}
	}
	done := func(n int, at map[string]string) {
		t.Helper()
		if got := w.outcomes(n); got[control.Done] != n {
			t.Fatalf("outcomes %v, expected %d done", got, n)
		}
		w.at = at
	}
	must(t, "mode", "placement", "act", "--nats", b.URL())
	s := serve(t, args...)
	move(away)
	done(w.owners, away)
	s.kill()

	written := map[string]int64{} // bytes of objects that differ, by the site that they come back to
	for owner, site := range away {
		for n := range uint64(2) {
			if at, err := e.post(owner, home[owner], filled+n+1); err != nil || at != site {
				t.Fatalf("%s wrote at %s, %v", owner, at, err)
			}
		}
		e.put(site, owner, "letters/from afar", content(owner))
		written[home[owner]] += int64(len(content(owner))) + e.size(site, owner, postsObject)
	}
	s = serve(t, args...)
	move(home)
	done(2*w.owners, home)
	for site, want := range written {
		eventually(t, fmt.Sprintf("%d bytes moved to %s", want, site), func() bool {
			return s.count("penstock_moved_bytes_total", fmt.Sprintf("to=%q", site)) == int(want)
		})
	}
	if n := s.count("penstock_set_aside_total", `reason="deletes kept-return"`); n != w.owners {
		t.Errorf("%d deletions were cancelled by the return, expected %d", n, w.owners)
	}
	s.kill()

	// The copies that the owners left last are deleted. Those that they came back to
	// would have been before that.
	s = serve(t, args...)
	e.alone(home)
	e.back(home)
	if n := s.count("penstock_set_aside_total", `reason="deletes deleted"`); n > w.owners {
		t.Errorf("%d copies were deleted, expected %d at most", n, w.owners)
	}
	s.stop()

	text, err := os.ReadFile(e.config)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, e.config, strings.Replace(string(text), "delete_after: "+deleteAfter.String(), "delete_after: 24h", 1))
	s = serve(t, args...)
	move(away)
	done(3*w.owners, away)
	for owner := range away {
		if m := e.copies(owner)[home[owner]]; m.State != objectstore.Retired {
			t.Errorf("%s left a copy at %s that is %s", owner, home[owner], m)
		}
	}
	must(t, "purge", "--nats", b.URL())
	e.alone(away)
	e.back(away)
	s.stop()
}

// size is that of an object.
func (e *estate) size(site, owner, name string) int64 {
	e.t.Helper()
	l, err := e.stores[site].List(e.t.Context(), owner)
	if err != nil {
		e.t.Fatal(err)
	}
	for _, o := range l.Objects {
		if o.Name == name {
			return o.Size
		}
	}
	e.t.Fatalf("%s has no %s at %s", owner, name, site)
	return 0
}

// alone waits until each owner has a copy at its site and nowhere else.
func (e *estate) alone(at map[string]string) {
	e.t.Helper()
	for owner, site := range at {
		eventually(e.t, fmt.Sprintf("the only copy of %s to be at %s", owner, site), func() bool {
			copies := e.copies(owner)
			if m, ok := copies[site]; !ok || !m.Writable() {
				e.t.Fatalf("%s, whose data is at %s, has copies %v", owner, site, copies)
			}
			return len(copies) == 1
		})
	}
}

// back sees that the owners have all that they had and what they wrote afar.
func (e *estate) back(at map[string]string) {
	e.t.Helper()
	for owner, site := range at {
		e.whole(site, owner, filled+2)
		got, err := e.stores[site].Digest(e.t.Context(), owner, "letters/from afar")
		if want := fmt.Sprintf("%x", sha256.Sum256(content(owner))); err != nil || got != want {
			e.t.Errorf("%s at %s: what was written afar has digest %s, not %s: %v", owner, site, got, want, err)
		}
	}
}
