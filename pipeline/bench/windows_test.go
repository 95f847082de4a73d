package bench

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"penstock/infra/bus"
	"penstock/pipeline/config"
	"penstock/pipeline/topology"
	"penstock/producers/recording"
	"penstock/schemas/event"
)

// thin writes a recording of that many hours with ten rows each: a write and
// nine reads of ten owners' data, as of check-ins over years. Everybody stays
// where they are, so that next to nothing is moved.
func thin(t testing.TB, hours int) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "thin.parquet")
	w, err := recording.Create(name, recording.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	first := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
	for h := range hours {
		for i := range 10 {
			r := event.NewRequest(first + int64(h)*time.Hour.Microseconds() + int64(i)*6*time.Minute.Microseconds())
			n := (h + i) % 100
			r.Owner, r.User = fmt.Sprint("owner-", n), fmt.Sprint("user-", n)
			r.Lat, r.Lon, r.Bytes, r.Status = 38, -80-float32(n%5)*10, 1000, 200
			if i == 0 {
				r.Op, r.User = event.Write, r.Owner
			}
			if err := w.Write(&r); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return name
}

// thinWindows replays thin windows in lockstep through the whole loop and
// returns what a window took.
func thinWindows(t testing.TB, sync bus.Sync, parts, hours int) took {
	t.Helper()
	file := thin(t, hours)
	cfg, err := config.Read("paper.yaml", fmt.Appendf(nil, `
sites:
  - {name: us-east,    lat: 37.3719, lon: -79.8164,  capacity: 1GB/h}
  - {name: us-central, lat: 29.4167, lon: -98.5,     capacity: 1GB/h}
  - {name: us-west,    lat: 37.783,  lon: -122.417,  capacity: 1GB/h}
bus: {partitions: %d}
`, parts))
	if err != nil {
		t.Fatal(err)
	}
	var lines bytes.Buffer
	r := topology.Replay{Files: []string{file}, Config: cfg, Out: t.TempDir(), Sync: sync, Logger: zerolog.New(&lines).Level(zerolog.WarnLevel)}
	m := measure(hours, func() {
		rep, err := r.Run(t.Context())
		if err != nil {
			t.Fatalf("%v\n%s", err, lines.String())
		}
		if len(rep.Windows) != hours || rep.Account.Counted != int64(10*hours) {
			t.Errorf("%d windows and account %+v, expected %d windows of 10 rows", len(rep.Windows), rep.Account, hours)
		}
	})
	return m
}
