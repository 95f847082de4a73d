package dir

import (
	"testing"

	"penstock/consumers/executor/coder/chunks/chunkstest"
)

func BenchmarkStore(b *testing.B) { chunkstest.Bench(b, opens(b, b.TempDir())) }
