package follow

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// The test binary is also the process that TestKill kills.
func TestMain(m *testing.M) {
	if os.Getenv(followed) != "" {
		os.Exit(followHere())
	}
	goleak.VerifyTestMain(m)
}
