package follow

import (
	"os"
	"testing"
)

// rotations are the ways in which logs are rotated. Each leaves access.log for
// the writer.
var rotations = map[string]func(w *world){
	"rename and create": func(w *world) {
		w.shift("access.log")
		w.rename("access.log", "access.log.1")
		w.append("access.log", "")
	},
	"rename, the writer is late": func(w *world) {
		w.shift("access.log")
		w.rename("access.log", "access.log.1")
		w.add("access.log.1", 7)
	},
	"copy and truncate": func(w *world) { w.copyTruncate("access.log") },
	"copy, truncate and compress": func(w *world) {
		w.copyTruncate("access.log")
		w.compress("access.log.1")
	},
	"rename and compress": func(w *world) {
		w.shift("access.log")
		w.rename("access.log", "access.log.1")
		w.append("access.log", "")
		w.compress("access.log.1")
	},
}

// TestRotations rotates a log in each way while it is followed, and while it is
// not, once and twice in a row.
func TestRotations(t *testing.T) {
	t.Parallel()
	for name, rotate := range rotations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.add("access.log", 50)
			w.start()
			w.await()
			for range 3 { // followed
				w.add("access.log", 20)
				rotate(w)
				w.add("access.log", 20)
				w.await()
			}
			w.crash()
			w.add("access.log", 20)
			rotate(w) // nobody looks
			w.add("access.log", 20)
			w.start()
			w.await()
			w.stop()
			for range 2 { // a whole generation comes and goes
				w.add("access.log", 20)
				rotate(w)
			}
			w.start()
			w.add("access.log", 20)
			w.await()
			w.crash()
			w.start() // everything again, and nothing new
			w.add("access.log", 1)
			w.await()
		})
	}
}

// TestDeleted: what a follower has open it reads to its end, though no name leads
// to it any more.
func TestDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add("access.log", 50)
	w.start()
	w.await()
	for range 3 {
		w.add("access.log", 20)
		w.remove("access.log")
		w.add("access.log", 20)
		w.await()
	}
	w.until("the deleted ones to be done", func() bool { return w.metric("files done") == 3 })
	if got := w.metric("rotations_total renamed"); got != 3 {
		t.Errorf("%v", w.metrics())
	}
	if err := os.Truncate(w.path("access.log"), 0); err != nil {
		t.Fatal(err)
	}
	w.add("access.log", 20)
	w.await()
}
