package haproxy

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// keepState brings the state file up to date if that is due. A failure is no
// reason to doubt what was set: it is counted, and the file is due again.
func (t *Target) keepState(ctx context.Context, due bool) {
	if t.o.StateFile == "" || !due {
		return
	}
	t.stale = true
	answer, err := t.client.ask(ctx, "show servers state")
	if err == nil {
		_, err = parseState(answer)
	}
	if err != nil {
		t.o.Metrics.Count(StateFile, "read", 1)
		return
	}
	if err := replaceFile(t.o.StateFile, answer); err != nil {
		t.o.Metrics.Count(StateFile, "write", 1)
		return
	}
	t.stale = false
}

// replaceFile puts a file in the place of another, whole or not at all.
func replaceFile(name, text string) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".servers-*")
	if err != nil {
		return fmt.Errorf("state file: %w", err)
	}
	_, err = f.WriteString(text)
	for _, step := range [...]func() error{
		func() error { return f.Chmod(0o644) }, // HAProxy may be another user
		f.Sync,
	} {
		if err == nil {
			err = step()
		}
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("state file: %w", err)
	}
	return nil
}
