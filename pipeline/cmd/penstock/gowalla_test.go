package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"penstock/infra/shareddata"
)

// TestCheckInsAreReadNearerThanByDistanceOnly imports check-ins and replays
// them: 20 months, so that the time a window takes counts. One seed by
// default, all five with PENSTOCK_WHOLE.
func TestCheckInsAreReadNearerThanByDistanceOnly(t *testing.T) {
	t.Parallel()
	dir := shareddata.Dir(t, "gowalla-head10k")
	seeds := 1
	if os.Getenv("PENSTOCK_WHOLE") != "" {
		seeds = 5
	}
	for seed := 1; seed <= seeds; seed++ {
		work := t.TempDir()
		rec := filepath.Join(work, "checkins.parquet")
		must(t, "import", "checkins", filepath.Join(dir, "gowalla_events.tsv.gz"), "--friends", filepath.Join(dir, "gowalla_users.tsv.gz"),
			"--reads", "10", "--seed", fmt.Sprint(seed), "-o", rec)
		for _, partitions := range []string{"1", "8"} {
			if partitions == "8" && seeds == 1 {
				continue
			}
			began := time.Now()
			out := filepath.Join(work, "out"+partitions)
			must(t, "replay", rec, "-c", example("gowalla.yaml"), "--partitions", partitions, "--out", out)
			took := time.Since(began)
			r := readReport(t, out)
			only := r.Baselines["distance-only"]
			t.Logf("seed %d, partitions %s: %.1f s, %d windows; mean latency delay of reads %.2f ms, distance only %.2f; of all %.2f, %.2f; unlocated %d",
				seed, partitions, took.Seconds(), len(r.Windows), r.LatencyR.Mean, only.LatencyR.Mean, r.Latency.Mean, only.Latency.Mean, r.Latency.Unlocated)
			if r.LatencyR.Mean >= only.LatencyR.Mean {
				t.Errorf("seed %d: reads take %.2f ms on average, distance only %.2f", seed, r.LatencyR.Mean, only.LatencyR.Mean)
			}
			if !r.Account.Holds() || r.Account.Counted != r.Account.Received || r.Account.Received < 70_000 {
				t.Errorf("seed %d: account %+v", seed, r.Account)
			}
		}
	}
}
