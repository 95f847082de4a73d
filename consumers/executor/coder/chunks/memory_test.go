package chunks_test

import (
	"testing"

	"go.uber.org/goleak"

	"penstock/consumers/executor/coder/chunks"
	"penstock/consumers/executor/coder/chunks/chunkstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMemory(t *testing.T) {
	t.Parallel()
	chunkstest.Suite(t, func(*testing.T) chunks.Store { return chunks.NewMemory("memory") })
}
