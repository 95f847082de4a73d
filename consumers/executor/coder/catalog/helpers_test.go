package catalog_test

import (
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"penstock/consumers/executor/coder/catalog"
	"penstock/consumers/executor/coder/catalog/catalogtest"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(victimEnv); path != "" {
		victim(path)
		return
	}
	catalogtest.FewerChecks()
	goleak.VerifyTestMain(m)
}

// open makes a catalog that isn't synced: a crash of the machine is not what tests are of.
func open(t testing.TB) *catalog.Catalog {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "catalog"))
}

func openAt(t testing.TB, path string) *catalog.Catalog {
	t.Helper()
	c, err := catalog.Open(path, catalog.Options{Coder: "objects", NoSync: true})
	must(t, err)
	t.Cleanup(func() { must(t, c.Close()) })
	return c
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
