package mover

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"penstock/schemas/control"
)

var day = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func journalIn(t testing.TB, dir string) *journal {
	t.Helper()
	j, err := openJournal(dir, false, day, time.Hour)
	ok(t, err)
	t.Cleanup(func() { _ = j.close() })
	return j
}

func taskOf(owner string, v uint64) *task {
	return &task{Move: control.Move{Owner: owner, From: "a", To: "b", Version: v, Bytes: 7}, scope: "b", window: day}
}

// fill writes the life of a few moves.
func fill(t testing.TB, j *journal) {
	t.Helper()
	for v := range uint64(3) {
		k := taskOf("done", v+1)
		ok(t, j.plan(k))
		ok(t, j.step(k, copied))
		ok(t, j.step(k, switched))
		e := retirement{owner: "done", site: "a", version: v + 1, to: "b", at: day.Add(time.Hour)}
		ok(t, j.write(e.record(retired), false))
		ok(t, j.answer(k, control.Done, day))
	}
	ok(t, j.plan(taskOf("open", 5)))
	e := retirement{owner: "purge", site: "a", version: 1, to: "b"}
	ok(t, j.write(e.record(retired), false))
	e.owner = "gone"
	ok(t, j.write(e.record(retired), false))
	ok(t, j.write(e.record(deleted), false))
}

func state(j *journal) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return fmt.Sprint(j.open, j.done, j.retired)
}

func TestJournalComesBack(t *testing.T) {
	dir := t.TempDir()
	j := journalIn(t, dir)
	fill(t, j)
	want := state(j)
	ok(t, j.close())
	ok(t, j.close())
	if err := j.plan(taskOf("late", 1)); !errors.Is(err, ErrClosed) {
		t.Errorf("a closed journal takes a plan: %v", err)
	}
	j = journalIn(t, dir)
	if got := state(j); got != want {
		t.Errorf("came back as\n%s\nwant\n%s", got, want)
	}
	if tasks := j.openTasks(); len(tasks) != 1 || !reflect.DeepEqual(&tasks[0], taskOf("open", 5)) {
		t.Errorf("open %+v", tasks)
	}
	ok(t, j.file.rewrite(j.records()))
	ok(t, j.plan(taskOf("after", 1)))
	want = state(j)
	ok(t, j.close())
	j = journalIn(t, dir)
	if got := state(j); got != want {
		t.Errorf("compacted and reopened as\n%s\nwant\n%s", got, want)
	}
	ok(t, j.close())
	// Answers from too long ago are forgotten.
	later, err := openJournal(dir, true, day.Add(2*time.Hour), time.Hour)
	ok(t, err)
	defer func() { ok(t, later.close()) }()
	if later.isAnswered(ownerVersion{"done", 3}) || !later.isOpen(ownerVersion{"open", 5}) {
		t.Error("old answers are remembered, or open moves are not")
	}
}

// TestRetirements reads the journal of a mover that runs.
func TestRetirements(t *testing.T) {
	dir := t.TempDir()
	retired, err := Retirements(dir)
	if err != nil || retired("done", "a") {
		t.Errorf("no journal: %v", err)
	}
	j := journalIn(t, dir)
	fill(t, j)
	retired, err = Retirements(dir)
	ok(t, err)
	if !retired("done", "a") || !retired("purge", "a") || retired("gone", "a") || retired("done", "b") {
		t.Error("other copies are to be deleted than were journalled")
	}
}

func TestJournalInUse(t *testing.T) {
	dir := t.TempDir()
	j := journalIn(t, dir)
	if _, err := openJournal(dir, false, day, time.Hour); !errors.Is(err, ErrInUse) {
		t.Errorf("a second opening: %v", err)
	}
	ok(t, j.close())
	ok(t, journalIn(t, dir).close())
}

// TestJournalTorn cuts the journal at every byte: what was whole before the cut
// is there, and it can be gone on with.
func TestJournalTorn(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, journalName)
	j := journalIn(t, dir)
	var states []string // after 0, 1, 2 … records
	var ends []int64
	note := func() {
		states = append(states, state(j))
		ends = append(ends, j.file.size)
	}
	note()
	for v := range uint64(3) {
		ok(t, j.plan(taskOf("o", v+1)))
		note()
		ok(t, j.answer(taskOf("o", v+1), control.Done, day))
		note()
	}
	ok(t, j.close())
	whole, err := os.ReadFile(path)
	ok(t, err)
	for size := range len(whole) + 1 {
		n := 0
		for n+1 < len(ends) && ends[n+1] <= int64(size) {
			n++
		}
		tails := []string{""}
		if ends[n] == int64(size) {
			tails = append(tails, "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", "\x07")
		}
		for _, tail := range tails {
			ok(t, os.WriteFile(path, []byte(string(whole[:size])+tail), 0o600))
			j, err := openJournal(dir, false, day, time.Hour)
			if err != nil {
				t.Fatalf("cut at %d: %v", size, err)
			}
			if got := state(j); got != states[n] {
				t.Fatalf("cut at %d: %s, want %s", size, got, states[n])
			}
			ok(t, j.plan(taskOf("next", 1)))
			ok(t, j.close())
			j, err = openJournal(dir, false, day, time.Hour)
			ok(t, err)
			if !j.isOpen(ownerVersion{"next", 1}) {
				t.Fatalf("cut at %d: what was written after is lost", size)
			}
			ok(t, j.close())
		}
	}
}

// TestJournalDamaged: a byte that changed before the end is not passed over.
func TestJournalDamaged(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, journalName)
	j := journalIn(t, dir)
	fill(t, j)
	ok(t, j.close())
	whole, err := os.ReadFile(path)
	ok(t, err)
	for _, at := range []int{4, 8, 20} {
		bad := []byte(string(whole))
		bad[at] ^= 0x10
		ok(t, os.WriteFile(path, bad, 0o600))
		if _, err := openJournal(dir, false, day, time.Hour); !errors.Is(err, ErrCorrupt) {
			t.Errorf("byte %d changed: %v", at, err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != string(bad) {
			t.Errorf("byte %d: the damaged journal was changed", at)
		}
	}
}

// TestJournalCompacts: a long life leaves a short journal, whatever runs at the
// time.
func TestJournalCompacts(t *testing.T) {
	dir := t.TempDir()
	j, err := openJournal(dir, true, day, time.Hour)
	ok(t, err)
	pad := strings.Repeat("long", 200)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for v := range uint64(200) {
				k := taskOf(fmt.Sprint(pad, g, v%5), v+1)
				if err := j.plan(k); err != nil {
					t.Error(err)
				}
				if err := j.answer(k, control.Done, day.Add(-2*time.Hour)); err != nil {
					t.Error(err)
				}
				j.forget(day.Add(-time.Hour))
			}
		})
	}
	wg.Wait()
	ok(t, j.plan(taskOf("open", 1)))
	want := state(j)
	info, err := os.Stat(filepath.Join(dir, journalName))
	ok(t, err)
	if info.Size() > compactBytes+compactBytes/4 {
		t.Errorf("the journal has %d bytes", info.Size())
	}
	ok(t, j.close())
	j = journalIn(t, dir)
	if got := state(j); got != want {
		t.Errorf("came back as %.300s, want %.300s", got, want)
	}
}

func FuzzJournal(f *testing.F) {
	b, err := frame(taskOf("o", 1).record())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(append(b, 0, 0, 0))
	f.Fuzz(func(t *testing.T, content []byte) {
		dir := t.TempDir()
		ok(t, os.WriteFile(filepath.Join(dir, journalName), content, 0o600))
		j, err := openJournal(dir, false, day, time.Hour)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		defer func() { ok(t, j.close()) }()
		if j.file.size > int64(len(content)) {
			t.Fatal("read more than there is")
		}
	})
}
