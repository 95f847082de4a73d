package bus_test

import (
	"testing"

	"penstock/infra/bus/bustest"
)

// TestAClientRightAfterTheServerIsBack checks that a new client does not fail because
// the bus's own connection is still being made again.
func TestAClientRightAfterTheServerIsBack(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	for range 5 {
		bustest.Restart(t, b)
		bustest.Client(t, b)
	}
}
