package redirector

import (
	"testing"

	"penstock/infra/bus/bustest"
)

func TestMain(m *testing.M) { bustest.Main(m) }

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
