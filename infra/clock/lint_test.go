package clock_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// forbidden are the functions of package time that ask the machine or wait.
var forbidden = []string{
	"Now", "Sleep", "After", "AfterFunc", "NewTicker", "NewTimer", "Tick", "Since", "Until",
}

// TestNoOtherClock walks the module: outside this package no file but tests uses
// the machine's clock, packages for tests included.
func TestNoOtherClock(t *testing.T) {
	t.Parallel()
	root := moduleRoot(t)
	files := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if rel == filepath.Join("infra", "clock") || rel != "." && skipped(d.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		files++
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, use := range clockUses(t, rel, src) {
			t.Errorf("%s: use penstock/infra/clock", use)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 10 {
		t.Errorf("only %d files were looked at", files)
	}
}

func skipped(dir string) bool {
	return strings.HasPrefix(dir, ".") || strings.HasPrefix(dir, "_") ||
		dir == "testdata" || dir == "vendor"
}

func moduleRoot(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above the test")
		}
		dir = up
	}
}

// clockUses lists "file:line: time.Now" for each use of a forbidden function,
// under whatever name package time is imported.
func clockUses(t *testing.T, name string, src []byte) []string {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
	if err != nil {
		// Another test's business; while it does not parse it does not build.
		t.Logf("left out: %v", err)
		return nil
	}
	alias := ""
	for _, i := range file.Imports {
		if path, err := strconv.Unquote(i.Path.Value); err != nil || path != "time" {
			continue
		}
		alias = "time"
		if i.Name != nil {
			alias = i.Name.Name
		}
	}
	if alias == "" || alias == "_" {
		return nil
	}
	var uses []string
	found := func(n ast.Node, fn string) {
		uses = append(uses, fset.Position(n.Pos()).String()+": time."+fn)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == alias && slices.Contains(forbidden, n.Sel.Name) {
				found(n, n.Sel.Name)
			}
			_, onPackage := n.X.(*ast.Ident)
			return !onPackage // do not take x.Now of a dot import for time's
		case *ast.Ident:
			if alias == "." && slices.Contains(forbidden, n.Name) {
				found(n, n.Name)
			}
		}
		return true
	})
	return uses
}

func TestClockUsesAreFound(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]int{
		`import "time"; var x = time.Now()`:                            1,
		`import t "time"; var x, y = t.Since(t.Time{}), t.Until`:       2,
		`import . "time"; var x = Now()`:                               1,
		`import . "time"; var x = c.Now()`:                             0,
		`import _ "time"; var x = time.Now()`:                          0,
		`import "time"; var x = time.Second; var y = clock.Now()`:      0,
		`import "other/time"; var x = time.Now()`:                      0,
		`import "time"; func f() { <-time.After(1); time.Sleep(2) }`:   2,
		`import "time"; var f = []any{time.NewTicker, time.AfterFunc}`: 2,
	} {
		if got := clockUses(t, "x.go", []byte("package x\n"+src)); len(got) != want {
			t.Errorf("%s: %v", src, got)
		}
	}
}
