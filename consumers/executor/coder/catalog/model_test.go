package catalog_test

import (
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"penstock/consumers/executor/coder/catalog"
	"penstock/consumers/executor/coder/catalog/catalogtest"
)

// TestAgainstModel makes random changes, closes and opens in between, and compares all that
// the catalog says with a model made of maps.
func TestAgainstModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "catalog")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		o := catalog.Options{Coder: "objects", NoSync: true}
		path := filepath.Join(dir, "catalog")
		c, err := catalog.Open(path, o)
		if err != nil {
			t.Fatal(err)
		}
		d := catalogtest.NewDriver(c, func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "n") })
		defer func() { _ = d.Catalog.Close() }()
		for n := range rapid.IntRange(1, 60).Draw(t, "steps") {
			if err := d.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n%8 == 7 {
				if err := d.Verify(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if n%32 == 31 {
				if err := c.Close(); err != nil {
					t.Fatal(err)
				}
				if c, err = catalog.Open(path, o); err != nil {
					t.Fatal(err)
				}
				d.Reopened(c)
			}
		}
		if err := d.Verify(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}
