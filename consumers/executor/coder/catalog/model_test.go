package catalog_test

import (
	"math/rand/v2"
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
		// Rapid's own numbers are mostly small: few tests would get anywhere.
		chance := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		d := catalogtest.NewDriver(c, chance.IntN)
		defer func() { _ = d.Catalog.Close() }()
		for n := range rapid.IntRange(50, 250).Draw(t, "steps") {
			if err := d.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n%25 == 24 {
				if err := d.Verify(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if n%64 == 63 {
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
