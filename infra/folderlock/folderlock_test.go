package folderlock

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTake: a folder is one's until it is given free.
func TestTake(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	l, err := Take(folder, "lock", 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Take(folder, "lock", 0o600); !errors.Is(err, ErrHeld) || !strings.Contains(err.Error(), folder) {
		t.Errorf("a second one: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Take(folder, "lock", 0o600)
	if err != nil {
		t.Fatalf("once it is free: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

// TestTakeNothing: a folder that isn't there is not another's.
func TestTakeNothing(t *testing.T) {
	t.Parallel()
	if _, err := Take(filepath.Join(t.TempDir(), "none"), "lock", 0o600); !errors.Is(err, os.ErrNotExist) || errors.Is(err, ErrHeld) {
		t.Errorf("%v", err)
	}
}
