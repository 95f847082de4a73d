package wholefile

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestJSON keeps values over restarts, writes one that is kept already not again, and
// tells a file that is not there from one that can't be read.
func TestJSON(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := JSON[[]string]{Name: filepath.Join(dir, "list.json")}
	read := func(want []string, some bool) {
		t.Helper()
		again := JSON[[]string]{Name: f.Name}
		if got, ok, err := again.Read(); err != nil || ok != some || !slices.Equal(got, want) {
			t.Errorf("got %q, %v, %v, expected %q, %v", got, ok, err, want, some)
		}
	}
	keep := func(v ...string) {
		t.Helper()
		if err := f.Keep(v); err != nil {
			t.Fatal(err)
		}
	}
	read(nil, false)
	keep("a", "b")
	read([]string{"a", "b"}, true)
	if err := os.Remove(f.Name); err != nil {
		t.Fatal(err)
	}
	keep("a", "b")
	read(nil, false)
	keep("a")
	read([]string{"a"}, true)
	if err := os.WriteFile(f.Name, []byte("["), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, some, err := f.Read(); err == nil || some {
		t.Errorf("half a list: %v, %v", some, err)
	}
	lost := JSON[[]string]{Name: filepath.Join(dir, "nowhere", "list.json")}
	for range 2 {
		if err := lost.Keep(nil); err == nil {
			t.Error("it was kept in a folder that isn't there")
		}
	}
}
