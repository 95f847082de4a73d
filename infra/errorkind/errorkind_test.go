package errorkind

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"
)

// TestErrorf: the kind and the cause are found through further wrapping, and the
// text is what was said.
func TestErrorf(t *testing.T) {
	t.Parallel()
	kind, other := errors.New("a kind"), errors.New("another")
	cause := &fs.PathError{Op: "open", Path: "x", Err: fs.ErrNotExist}
	err := fmt.Errorf("outer: %w", Errorf(kind, "format %d: %w", 7, cause))
	if got := err.Error(); got != "outer: format 7: open x: file does not exist" {
		t.Errorf("%s", got)
	}
	var found *fs.PathError
	if !errors.Is(err, kind) || !errors.Is(err, fs.ErrNotExist) || !errors.As(err, &found) || errors.Is(err, other) {
		t.Errorf("%#v", err)
	}
	if err := Errorf(kind, "alone"); err.Error() != "alone" || !errors.Is(err, kind) {
		t.Errorf("%#v", err)
	}
}
