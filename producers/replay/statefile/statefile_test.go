package statefile

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWriteReplacesTheWholeFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.json")
	// What a crash left under the temporary name does no harm.
	if err := os.WriteFile(path+".tmp", []byte("half of something that was longer"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, v := range []string{"first, and longer", "third!", "fourth", "fifth!", "second"} {
		if err := Write(path, v); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != "\""+v+"\"\n" {
			t.Errorf("got %q, %v", got, err)
		}
	}
	if err := Write(path, func() {}); err == nil {
		t.Error("a value that is no JSON was written")
	}
	if err := Write(filepath.Join(path, "below"), 1); err == nil {
		t.Error("a file was written below a file")
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "\"second\"\n" {
		t.Errorf("after failures the file holds %q, %v", got, err)
	}
}
