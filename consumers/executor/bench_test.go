package executor_test

import (
	"fmt"
	"strings"
	"testing"

	"penstock/consumers/executor"
	"penstock/schemas/control"
)

// BenchmarkLoop is the executor's part of a replay: commands of small moves, from
// COMMANDS to OUTCOMES, on a bus that syncs at intervals, stores that don't.
func BenchmarkLoop(b *testing.B) {
	r := newRig(b)
	content := strings.Repeat("0123456789", 1000)
	var moves []control.Move
	for i := range b.N {
		owner := fmt.Sprintf("owner-%d", i)
		r.put("a", owner, content)
		moves = append(moves, control.Move{Owner: owner, From: "a", To: "b", Version: 1})
	}
	m := r.mover("m", b.TempDir())
	b.ReportAllocs()
	b.ResetTimer()
	stop := r.run(executor.Options{Target: m})
	for from := 0; from < len(moves); from += 100 {
		r.send(command(uint64(from+1), moves[from:min(from+100, len(moves))]...))
	}
	for left := b.N; left > 0; left -= 100 {
		r.outcomes(min(left, 100))
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "moves/s")
	ok(b, stop())
}
