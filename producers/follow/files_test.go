package follow

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestGlobs: old files of a glob are read too, compressed ones as well, each
// once, whatever they are renamed to.
func TestGlobs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) { o.Paths = []string{o.Paths[0] + "*", o.Paths[0]} })
	for i := 3; i >= 1; i-- {
		w.add(fmt.Sprintf("access.log.%d", i), 40)
	}
	w.compress("access.log.3")
	w.compress("access.log.2")
	w.add("access.log", 40)
	if err := os.Mkdir(w.path("access.log.d"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(w.path("access.log"), w.path("access.log.same")); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.await()
	w.remove("access.log.same")
	for _, name := range []string{"rename and create", "copy and truncate", "rename and compress", "copy, truncate and compress"} {
		rotations[name](w)
		w.add("access.log", 20)
		w.await()
	}
	w.crash()
	rotations["copy, truncate and compress"](w)
	w.add("access.log", 20)
	w.start()
	w.await()
	w.stop()
	w.start()
	w.add("access.log", 1)
	w.await()
}

// TestFromEnd: what is there at the very first start is passed over, half a line
// too; what comes later is not.
func TestFromEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) {
		o.FromEnd = true
		o.Paths = []string{o.Paths[0] + "*"}
	})
	w.append("access.log", "1 1000000 old\n2 1000001 half of")
	w.append("access.log.1", "1 1000002 old\n")
	w.start()
	w.until("the first position", func() bool { return w.book.Position() != nil && w.metric("files live") > 0 })
	w.append("access.log", " a line\n")
	w.add("access.log", 10)
	w.rename("access.log.1", "access.log.2")
	rotations["rename and compress"](w)
	w.add("access.log", 10)
	w.await()
	w.crash()
	w.add("access.log", 10)
	w.append("access.log.9", "") // a new one, of the same family
	w.start()
	w.await()
	if got := w.book.count(); got != w.n {
		t.Errorf("%d rows of %d", got, w.n)
	}
}

// TestLinks: a symbolic link that leads to another file each day, as containers
// have them.
func TestLinks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) { o.Paths = []string{filepath.Join(filepath.Dir(o.Paths[0]), "current")} })
	link := func(to string) {
		t.Helper()
		w.append(to, "")
		_ = os.Remove(w.path("current")) // the first time it is not there
		if err := os.Symlink(w.path(to), w.path("current")); err != nil {
			t.Fatal(err)
		}
	}
	link("day-a.log")
	w.add("current", 20)
	w.start()
	w.await()
	w.add("current", 20)
	link("day-b.log")
	w.add("day-a.log", 5) // late
	w.add("current", 20)
	w.await()
	w.crash()
	w.add("current", 20)
	link("day-c.log")
	w.add("current", 20)
	w.start()
	w.await()
	w.rename("day-c.log", "day-c.log.20260131-235959") // as the kubelet does
	w.add("day-c.log.20260131-235959", 5)
	w.append("day-c.log", "")
	w.add("current", 20)
	w.await()
}

// TestTroubles: what cannot be opened is tried again, and holds nothing up.
func TestTroubles(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) { o.Paths = []string{filepath.Join(filepath.Dir(o.Paths[0]), "*.log")} })
	if err := os.Symlink(w.path("loop.log"), w.path("loop.log")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(w.path("nothing"), w.path("dangling.log")); err != nil {
		t.Fatal(err)
	}
	w.add("access.log", 10)
	w.start()
	w.await()
	w.until("the trouble to be counted", func() bool { return w.metric("troubles_total") >= 1 })
	if !strings.Contains(w.said.String(), "loop.log") {
		t.Errorf("said: %s", w.said.String())
	}
	w.remove("loop.log")
	w.add("loop.log", 10)
	w.add("nothing", 10)
	w.await()
	before := w.book.figures().horizon
	w.until("the horizon to move on", func() bool { return w.book.figures().horizon > before })
}

// TestShortened: a power cut took the end of a file; the rest is not read again.
func TestShortened(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add("access.log", 100)
	w.start()
	w.await()
	w.stop()
	fi, err := os.Stat(w.path("access.log"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(w.path("access.log"), fi.Size()-100); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.until("it to be seen", func() bool { return w.metric("rotations_total shortened") == 1 })
	w.append("access.log", "\n")
	w.add("access.log", 10)
	w.await()
}

// TestUnreadable: a copy that cannot be found, and a compressed one that breaks
// off, are given up, told and counted.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) { o.SearchFor = 150 * time.Millisecond })
	w.add("access.log", 50)
	w.start()
	w.await()
	if err := os.Truncate(w.path("access.log"), 0); err != nil {
		t.Fatal(err)
	}
	w.add("access.log", 50)
	w.await()
	w.until("the rest to be given up", func() bool { return w.metric("lost_total") == 1 })
	w.stop()
	w.add("access.log", 50)
	w.rename("access.log", "access.log.1")
	w.compress("access.log.1")
	fi, err := os.Stat(w.path("access.log.1.gz"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(w.path("access.log.1.gz"), fi.Size()-20); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.add("access.log", 1)
	w.until("it to be given up", func() bool { return w.metric("lost_total") == 1 })
}

// TestManyFiles follows more files than may be open.
func TestManyFiles(t *testing.T) {
	t.Parallel()
	const files = 1500
	w := newWorld(t, func(o *Options) {
		o.Paths, o.MaxOpen = []string{filepath.Join(filepath.Dir(o.Paths[0]), "*.log")}, 20
		o.PollMost, o.ScanEvery = 200*time.Millisecond, 200*time.Millisecond
	})
	for i := range files {
		w.add(fmt.Sprintf("site-%d.log", i), 2)
	}
	w.start()
	w.await()
	for i := range files {
		if i%3 == 0 {
			w.add(fmt.Sprintf("site-%d.log", i), 1)
		}
	}
	w.await()
	if open := w.metric("open_files"); open > 21 {
		t.Errorf("%v files are open", open)
	}
	w.stop()
	w.start()
	w.add("site-7.log", 1)
	w.await()
	if p := len(w.book.Position()); p > files*400 {
		t.Errorf("a position of %d bytes", p)
	}
}

// TestForget: of the files that are done only so many are remembered, and those
// that are forgotten are not read again.
func TestForget(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) { o.KeepDone = 2 })
	w.add("access.log", 5)
	w.start()
	for i := range 6 {
		w.await()
		rotations["rename and compress"](w)
		w.add("access.log", 5)
		w.await()
		w.until("it to be done", func() bool { return w.metric("files done") >= float64(min(i, 2)) && w.metric("files moved") == 0 })
	}
	w.until("the others to be forgotten", func() bool { return w.metric("files done") == 2 })
	w.stop()
	w.start()
	w.add("access.log", 5)
	w.await()
}

// TestAsleep: a glob that is taken away and comes back goes on where it was.
func TestAsleep(t *testing.T) {
	t.Parallel()
	away := false
	w := newWorld(t, func(o *Options) {
		if away {
			o.Paths = []string{filepath.Join(filepath.Dir(o.Paths[0]), "other.log")}
		}
	})
	w.add("access.log", 10)
	w.start()
	w.await()
	w.stop()
	away = true
	w.start()
	w.add("other.log", 5)
	w.await()
	w.stop()
	w.add("access.log", 10)
	away = false
	w.start()
	w.await()
}

// TestPathsThatMatchNothing: those of which there is no file are named at the
// start, and only then; their files are followed when they come.
func TestPathsThatMatchNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) {
		dir := filepath.Dir(o.Paths[0])
		o.Paths = append(o.Paths, filepath.Join(dir, "nonexistent", "*.log"))
	})
	w.add("access.log", 3)
	w.start()
	w.await()
	w.until("the warning", func() bool { return strings.Contains(w.said.String(), "no file matches") })
	if err := os.Mkdir(w.path("nonexistent"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.add(filepath.Join("nonexistent", "a.log"), 3)
	w.add("access.log", 3)
	w.await()
	w.stop()
	said := w.said.String()
	if n := strings.Count(said, "no file matches"); n != 1 || !strings.Contains(said, `"path":"`+w.path("nonexistent/*.log")+`"`) {
		t.Errorf("said %d times: %s", n, said)
	}
}
