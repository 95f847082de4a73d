package dir

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMade: a folder is remembered once a blob is in it, as long as it is the same.
func TestMade(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s := opens(t, folder)
	put := func(key string) {
		t.Helper()
		if err := s.Put(t.Context(), key, strings.NewReader("x"), 1); err != nil {
			t.Fatal(err)
		}
	}
	known := func(name string) (identity, bool) {
		o := s.now.Load()
		o.made.mu.Lock()
		defer o.made.mu.Unlock()
		id, ok := o.made.known[name]
		return id, ok
	}
	put("a/b/one")
	f, err := os.Open(filepath.Join(folder, "a", "b"))
	if err != nil {
		t.Fatal(err)
	}
	want, can := identify(f)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if got, ok := known("a/b"); ok != can || got != want {
		t.Errorf("remembered %v %v, expected %v %v", got, ok, want, can)
	}
	// Somebody else makes it anew, until the file system's clock has gone on.
	again := false
	for range 10_000 {
		if err := os.RemoveAll(filepath.Join(folder, "a")); err != nil {
			t.Fatal(err)
		}
		put("a/b/two")
		if got, ok := known("a/b"); !can || ok && got != want {
			again = true
			break
		}
	}
	if !again {
		t.Error("another folder is taken for the one before")
	}
	if err := s.Delete(t.Context(), "a/b/two"); err != nil {
		t.Fatal(err)
	}
	if _, ok := known("a/b"); ok {
		t.Error("a folder is remembered that is gone")
	}
}

func TestMadeIsBounded(t *testing.T) {
	t.Parallel()
	var m made
	for i := range mostMade + 1 {
		m.add(fmt.Sprint(i), identity{})
	}
	if len(m.known) > mostMade || !m.has(fmt.Sprint(mostMade), identity{}) || m.has("0", identity{}) {
		t.Errorf("%d folders", len(m.known))
	}
}
