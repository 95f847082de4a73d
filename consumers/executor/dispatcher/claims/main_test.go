package claims

import (
	"testing"

	"penstock/infra/bus/bustest"
)

func TestMain(m *testing.M) { bustest.Main(m) }
