package coder

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"penstock/consumers/executor/coder/catalog"
	"penstock/consumers/executor/coder/object"
)

// TestTidy: what a dead process was writing in the folder of the state is removed, and what
// a live one is writing is not.
func TestTidy(t *testing.T) {
	t.Parallel()
	b := setup(t, object.Shared, 0, 0, nil)
	left := []string{filepath.Join(b.options.State, "body-1"), filepath.Join(b.options.State, ".new-2")}
	for _, name := range left {
		if err := os.WriteFile(name, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Open(t.Context(), b.options); !errors.Is(err, catalog.ErrLocked) {
		t.Errorf("a second coder of one state: %v", err)
	}
	for _, name := range left {
		if _, err := os.Stat(name); err != nil {
			t.Errorf("of a coder that lives: %v", err)
		}
	}
	b.stop()
	b.start(t)
	for _, name := range left {
		if _, err := os.Stat(name); !os.IsNotExist(err) {
			t.Errorf("of a dead coder %s stays: %v", name, err)
		}
	}
}
