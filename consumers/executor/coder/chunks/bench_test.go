package chunks_test

import (
	"testing"

	"penstock/consumers/executor/coder/chunks"
	"penstock/consumers/executor/coder/chunks/chunkstest"
)

func BenchmarkStore(b *testing.B) { chunkstest.Bench(b, chunks.NewMemory("memory")) }
