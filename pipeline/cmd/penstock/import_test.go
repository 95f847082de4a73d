package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestImportKeepsWhatItReads: an output that is an input, by whatever name, and
// one whose ending names no format are refused before anything is written.
func TestImportKeepsWhatItReads(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	const rows = "time,op,user,owner,bytes\n2024-01-01T00:00:00Z,read,u,o,1\n"
	for _, name := range []string{"a.csv", "b.csv", "friends.csv", "params.csv"} {
		writeFile(t, file(name), rows)
	}
	if err := os.Symlink(file("a.csv"), file("link.csv")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		says string
		args []string
	}{
		{"b.csv is read", []string{"recording", file("a.csv"), file("b.csv"), "-o", file("b.csv")}},
		{"link.csv is read", []string{"accesslog", file("a.csv"), "-o", file("link.csv")}},
		{"friends.csv is read", []string{"checkins", file("a.csv"), "--friends", file("friends.csv"), "-o", file("friends.csv")}},
		{"params.csv is read", []string{"workload", file("params.csv"), "-o", file("params.csv")}},
		{"expected one of .parquet, .arrow", []string{"recording", file("a.csv"), "-o", file("out.xlsx")}},
		{"expected one of .parquet, .arrow", []string{"workload", file("params.csv"), "-o", file("out")}},
		{"expected a name without .gz", []string{"recording", file("a.csv"), "-o", file("out.parquet.gz")}},
	} {
		if _, errs, code := command(t, append([]string{"import"}, c.args...)...); code != 2 || !strings.Contains(errs, c.says) {
			t.Errorf("%q: exit code %d, %s", c.args, code, errs)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 5 {
		t.Errorf("%v, %v", entries, err)
	}
	if b, err := os.ReadFile(file("a.csv")); err != nil || string(b) != rows {
		t.Errorf("%q, %v", b, err)
	}
	must(t, "import", "recording", file("a.csv"), file("b.csv"), "-o", file("out.jsonl.gz"))
	must(t, "import", "recording", file("a.csv"), "-o", file("out.jsonl.gz")) // An old result is replaced.
}
