package geo

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

// There are no golden files here; the flag is make golden's, which runs all
// packages with it.
var _ = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
