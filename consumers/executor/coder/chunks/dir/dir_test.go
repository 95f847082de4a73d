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

func opens(t testing.TB, folder string) *Store {
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
	chunkstest.Suite(t, func(t *testing.T) chunks.Store { return opens(t, filepath.Join(t.TempDir(), "made", "here")) })
}

// TestComesBack: blobs are there after the store is opened again, what was under way is
// not, and names that aren't ours are left alone and not listed.
func TestComesBack(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s := opens(t, folder)
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
	s = opens(t, folder)
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

// TestFolderGoes: while the folder is gone nothing is told to be not there, and nothing to
// be deleted; when one is back, empty or not, it is the store.
func TestFolderGoes(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "store")
	s := opens(t, folder)
	put := func() error { return s.Put(t.Context(), "a/b", strings.NewReader("x"), 1) }
	get := func() error { _, err := s.Get(t.Context(), "a/b", 0, 1, io.Discard); return err }
	list := func() error { _, err := s.List(t.Context(), "a/", "", 10); return err }
	calls := map[string]func() error{"put": put, "get": get, "list": list, "delete": func() error { return s.Delete(t.Context(), "a/b") }}
	if err := put(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(folder, folder+".away"); err != nil {
		t.Fatal(err)
	}
	if err := get(); err != nil {
		t.Errorf("a folder of another name: %v", err)
	}
	if err := os.RemoveAll(folder + ".away"); err != nil {
		t.Fatal(err)
	}
	for name, call := range calls {
		if err := call(); err == nil || errors.Is(err, chunks.ErrNotFound) {
			t.Errorf("%s in a folder that is gone: %v", name, err)
		}
	}
	for _, first := range []string{"put", "get", "list", "delete"} {
		if err := os.Mkdir(folder, 0o750); err != nil {
			t.Fatal(err)
		}
		if err := calls[first](); err != nil && !errors.Is(err, chunks.ErrNotFound) {
			t.Errorf("%s when the folder is back: %v", first, err)
		}
		if err := errors.Join(put(), get(), list()); err != nil {
			t.Errorf("after %s: %v", first, err)
		}
		for _, name := range []string{".new", "a"} {
			if err := os.RemoveAll(filepath.Join(folder, name)); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(put(), get(), list()); err != nil {
			t.Errorf("in a folder that was emptied: %v", err)
		}
		if err := os.RemoveAll(folder); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTwoOfOneFolder: who opens a folder lets be what another process is writing there.
func TestTwoOfOneFolder(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	first := opens(t, folder)
	begun, more := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- first.Put(t.Context(), "a", io.MultiReader(&gate{begun, more}, strings.NewReader("x")), 1)
	}()
	<-begun
	second := opens(t, folder)
	if err := second.Put(t.Context(), "b", strings.NewReader("y"), 1); err != nil {
		t.Error(err)
	}
	close(more)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got, err := second.List(t.Context(), "", "", 10); err != nil || len(got) != 2 {
		t.Errorf("%v, %v", got, err)
	}
	if err := errors.Join(first.Close(), second.Close()); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(filepath.Join(folder, ".new")); err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
}

// gate is a reader of nothing that tells when it is read, and ends when it is let.
type gate struct{ begun, more chan struct{} }

func (g *gate) Read([]byte) (int, error) {
	close(g.begun)
	<-g.more
	return 0, io.EOF
}

// TestNoLinkLeadsOut: a link in the folder that leads out of it is followed by nothing.
func TestNoLinkLeadsOut(t *testing.T) {
	t.Parallel()
	outside, folder := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret~"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := opens(t, folder)
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
	s := opens(t, folder)
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
	if len(left) != 3 { // the folder, .new, and the lock
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
