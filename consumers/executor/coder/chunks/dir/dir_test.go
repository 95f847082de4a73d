package dir

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"penstock/consumers/executor/coder/chunks"
	"penstock/consumers/executor/coder/chunks/chunkstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t testing.TB, folder string) *Store {
	t.Helper()
	s, err := Open("disk", folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestSuite(t *testing.T) {
	t.Parallel()
	chunkstest.Suite(t, func(t *testing.T) chunks.Store { return open(t, filepath.Join(t.TempDir(), "made", "here")) })
}

// TestComesBack: blobs are there after the store is opened again, what was under way is
// not, and names that aren't ours are left alone and not listed.
func TestComesBack(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s := open(t, folder)
	if err := s.Put(t.Context(), "a/b", strings.NewReader("x"), 1); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), "a/c", strings.NewReader("x"), 1); err == nil {
		t.Error("a closed store takes blobs")
	}
	for _, name := range []string{".new/half", "a/notes.txt", "a/b c~"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("y"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s = open(t, folder)
	if got, err := s.List(t.Context(), "", "", 10); err != nil || len(got) != 1 || got[0] != (chunks.Entry{Key: "a/b", Bytes: 1}) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := os.Stat(filepath.Join(folder, ".new", "half")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("half a blob stays: %v", err)
	}
	if _, err := os.Stat(filepath.Join(folder, "a", "notes.txt")); err != nil {
		t.Error(err)
	}
}

// TestNoLinkLeadsOut: a link in the folder that leads out of it is followed by nothing.
func TestNoLinkLeadsOut(t *testing.T) {
	t.Parallel()
	outside, folder := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret~"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, folder)
	for link, to := range map[string]string{"out": outside, "file~": filepath.Join(outside, "secret~")} {
		if err := os.Symlink(to, filepath.Join(folder, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"out/secret", "file"} {
		if n, err := s.Get(t.Context(), key, 0, 10, io.Discard); n != 0 || err == nil {
			t.Errorf("%s: %d bytes, %v", key, n, err)
		}
	}
	if err := s.Put(t.Context(), "out/new", strings.NewReader("x"), 1); err == nil {
		t.Error("written outside")
	}
	if err := s.Delete(t.Context(), "out/secret"); err == nil {
		t.Error("deleted outside")
	}
	if got, err := s.List(t.Context(), "", "", 10); err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
	left, err := os.ReadDir(outside)
	if err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
}

// TestNothingIsLeft: a store from which everything was deleted is empty.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s := open(t, folder)
	for _, key := range []string{"a/b/c/d", "a/b/x", "a"} {
		if err := s.Put(t.Context(), key, strings.NewReader("x"), 1); err != nil {
			t.Fatal(err)
		}
	}
	_ = s.Put(t.Context(), "a/b/y", strings.NewReader("x"), 2)
	for _, key := range []string{"a/b/c/d", "a/b/x", "a"} {
		if err := s.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	var left []string
	_ = filepath.WalkDir(folder, func(path string, _ fs.DirEntry, _ error) error {
		left = append(left, path)
		return nil
	})
	if len(left) != 2 { // the folder and .new
		t.Error(left)
	}
}

func TestOpenFails(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open("disk", file); err == nil {
		t.Error("a file was opened as a store")
	}
}
