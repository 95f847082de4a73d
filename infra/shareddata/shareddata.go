// Package shareddata finds the recordings of real traffic that tests read. They
// lie beside the checkout, in ../shared/data, and are never part of it.
//
// A test that needs a recording which isn't there is left out and says so; with
// CI=true that is a failure, so that a green run has read them.
package shareddata

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// Dir returns the folder of a recording. Without it the test is left out, or
// fails where the environment says CI=true.
func Dir(t testing.TB, name string) string {
	t.Helper()
	_, file, _, _ := runtime.Caller(0)
	root := filepath.Dir(filepath.Dir(filepath.Dir(file)))
	dir := filepath.Join(filepath.Dir(root), "shared", "data", name)
	if _, err := os.Stat(dir); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("recording %s: %v", name, err)
		}
		t.Skipf("left out: no recording %s beside the checkout", name)
	}
	return dir
}
