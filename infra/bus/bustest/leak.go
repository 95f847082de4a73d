package bustest

import (
	"testing"

	"go.uber.org/goleak"
)

// Main runs a package's tests and fails if goroutines are left over:
//
//	func TestMain(m *testing.M) { bustest.Main(m) }
//
// One of nats.go's is let pass. Putting an object starts it and ends it through
// a channel in a field; on a busy machine the field is emptied before the
// goroutine has read it, and it waits for nothing (v1.55,
// resetPendingAcksOnReconnect). It holds no connection.
func Main(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction(
		"github.com/nats-io/nats.go/jetstream.(*jetStream).resetPendingAcksOnReconnect",
	))
}
