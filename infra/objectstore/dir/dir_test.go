package dir

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"penstock/infra/objectstore"
	"penstock/infra/objectstore/objectstoretest"
)

func open(t testing.TB, o Options) *Store {
	t.Helper()
	s, err := Open(t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestConformance(t *testing.T) {
	objectstoretest.Run(t, func(t *testing.T) objectstore.Store { return open(t, Options{NoSync: true}) })
}

func TestConformanceSynced(t *testing.T) {
	objectstoretest.Run(t, func(t *testing.T) objectstore.Store { return open(t, Options{}) })
}

var (
	free    objectstore.Mark
	retired = objectstore.Mark{State: objectstore.Retired, Version: 2, Site: "b"}
)

// TestForeign: what isn't ours is neither seen nor touched, and outlives a
// deletion; the owner it lies with is gone all the same.
func TestForeign(t *testing.T) {
	s := open(t, Options{NoSync: true})
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	put := func(owner, name string) {
		t.Helper()
		_, err := s.Put(ctx, owner, name, strings.NewReader("x"), free)
		must(err)
	}
	put("o", "a")
	put("o", "sub/b")
	must(os.WriteFile(filepath.Join(s.root, "README.txt"), []byte("hands off"), 0o600))
	must(os.MkdirAll(filepath.Join(s.root, "lost+found", "x"), 0o755))
	must(os.MkdirAll(filepath.Join(s.root, "b64=YQ"), 0o755)) // "a", which needs no escape
	must(os.MkdirAll(filepath.Join(s.root, "short~", "a"), 0o755))
	must(os.Symlink("/etc/passwd", filepath.Join(s.root, "o", "sub", "link")))
	var owners []string
	must(s.Owners(ctx, func(owner string, _ objectstore.Mark) error { owners = append(owners, owner); return nil }))
	l, err := s.List(ctx, "o")
	must(err)
	if fmt.Sprint(owners) != "[o]" || len(l.Objects) != 2 {
		t.Errorf("owners %q, objects %+v", owners, l.Objects)
	}
	if _, err := s.Open(ctx, "o", "sub"); !errors.Is(err, objectstore.ErrNoObject) {
		t.Errorf("a folder opens as an object: %v", err)
	}
	must(s.Remove(ctx, "o", "sub/link", free))
	must(s.Delete(ctx, "o", free))
	for _, name := range []string{"README.txt", "lost+found/x", "b64=YQ", "short~/a", "o/sub/link"} {
		if _, err := os.Lstat(filepath.Join(s.root, name)); err != nil {
			t.Errorf("foreign %s: %v", name, err)
		}
	}
	if m, err := s.Stat(ctx, "o"); err != nil || m.State != objectstore.Absent {
		t.Errorf("the owner is %v, %v", m, err)
	}
	must(s.Owners(ctx, func(owner string, _ objectstore.Mark) error { return fmt.Errorf("%q is still there", owner) }))
	put("o", "again")
	if m, err := s.Stat(ctx, "o"); err != nil || m != free {
		t.Errorf("the owner is %v, %v", m, err)
	}
}

// TestNoTraversal: whatever the owner is called, its folder is below the root.
func TestNoTraversal(t *testing.T) {
	s := open(t, Options{NoSync: true})
	for _, owner := range objectstoretest.Names {
		path, err := ownerPath(s.root, owner)
		if err != nil {
			t.Fatal(err)
		}
		rel, err := filepath.Rel(s.root, path)
		if err != nil || strings.HasPrefix(rel, "..") || rel == "." {
			t.Errorf("owner %.40q lies at %.80q", owner, path)
		}
		for piece := range strings.SplitSeq(rel, string(filepath.Separator)) {
			if len(piece) > maxElement+1 {
				t.Errorf("owner %.40q needs a folder name of %d bytes", owner, len(piece))
			}
		}
	}
}

// TestCrashedDelete: the folder of a deletion that was cut off after the rename
// is removed when the store is opened, and one that was cut off before is still
// a retired copy and can be deleted again.
func TestCrashedDelete(t *testing.T) {
	s := open(t, Options{NoSync: true})
	ctx := t.Context()
	for _, name := range []string{"a", "b"} {
		if _, err := s.Put(ctx, "o", name, strings.NewReader("x"), free); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Mark(ctx, "o", free, retired); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(s.root, "o", "a")); err != nil {
		t.Fatal(err)
	}
	if m, err := s.Stat(ctx, "o"); err != nil || m != retired {
		t.Errorf("half deleted, the copy is %v, %v", m, err)
	}
	if err := os.Rename(filepath.Join(s.root, "o"), filepath.Join(s.root, goneFolder+"77")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(s.root, goneFolder+"77", "b")); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(s.root, Options{}); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(s.root); err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
}

// TestDamagedMark: a copy whose mark can't be read is not taken for a live one.
func TestDamagedMark(t *testing.T) {
	s := open(t, Options{NoSync: true})
	if err := s.Mark(t.Context(), "o", objectstore.Mark{State: objectstore.Absent}, retired); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.root, "o", markFile), []byte(`{"state":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), "o", "a", strings.NewReader("x"), free); !errors.Is(err, objectstore.ErrCorrupt) {
		t.Errorf("a write got %v", err)
	}
	if _, err := s.Stat(t.Context(), "o"); !errors.Is(err, objectstore.ErrCorrupt) {
		t.Errorf("stat got %v", err)
	}
}

// two are one folder opened twice, as two processes do: they share nothing in
// memory.
type two struct {
	objectstore.Store
	other *Store
}

func (s two) Hold(ctx context.Context, owner, version string) (objectstore.Held, error) {
	return s.other.Hold(ctx, owner, version)
}

func (s two) Mark(ctx context.Context, owner string, from, to objectstore.Mark) error {
	return s.other.Mark(ctx, owner, from, to)
}

func (s two) Delete(ctx context.Context, owner string, as objectstore.Mark) error {
	return s.other.Delete(ctx, owner, as)
}

// TestConformanceOfTwo runs the suite with writers in one process and movers in
// another.
func TestConformanceOfTwo(t *testing.T) {
	objectstoretest.Run(t, func(t *testing.T) objectstore.Store {
		s := open(t, Options{NoSync: true})
		other, err := Open(s.root, Options{NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		return two{s, other}
	})
}

// TestKilledHolder: a process that is killed while it holds an owner leaves
// nobody locked out.
func TestKilledHolder(t *testing.T) {
	s := open(t, Options{NoSync: true})
	if err := s.Create(t.Context(), "o", free); err != nil {
		t.Fatal(err)
	}
	child := exec.Command(os.Args[0], "-test.run=^TestHolder$")
	child.Env = append(os.Environ(), "HOLD="+s.root)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Fatalf("the child says %q, %v", line, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := s.Put(ctx, "o", "a", strings.NewReader("x"), free); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a write while another process holds: %v", err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	if _, err := s.Put(t.Context(), "o", "a", strings.NewReader("x"), free); err != nil {
		t.Errorf("a write after it was killed: %v", err)
	}
}

// TestHolder is the child of TestKilledHolder; without its folder it has nothing
// to do.
func TestHolder(t *testing.T) {
	root := os.Getenv("HOLD")
	if root == "" {
		return
	}
	s, err := Open(root, Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Hold(t.Context(), "o", ""); err != nil {
		t.Fatal(err)
	}
	fmt.Println("held")
	time.Sleep(time.Minute) // until it is killed
}
