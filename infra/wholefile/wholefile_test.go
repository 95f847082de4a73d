package wholefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestWrite replaces what is there, with the mode that is asked for, and leaves
// nothing behind; not even where it can't.
func TestWrite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "state")
	for _, text := range []string{"a long content", "short", ""} {
		if err := Write(name, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(name)
		got, rerr := os.ReadFile(name)
		if err != nil || rerr != nil || string(got) != text || info.Mode() != 0o640 {
			t.Errorf("%q: %q, %v, %v, %v", text, got, info.Mode(), err, rerr)
		}
	}
	if err := Write(filepath.Join(dir, "nowhere", "state"), nil, 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in a folder that isn't there: %v", err)
	}
	if err := os.Mkdir(filepath.Join(dir, "full"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Write(filepath.Join(dir, "full"), []byte("x"), 0o600); err == nil {
		t.Error("a folder was replaced")
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
