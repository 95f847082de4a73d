package publisher

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// The test binary is also the process that TestKillAtEachPoint kills.
func TestMain(m *testing.M) {
	if os.Getenv(doomed) != "" {
		os.Exit(doom())
	}
	goleak.VerifyTestMain(m)
}
