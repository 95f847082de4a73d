package checkins

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"penstock/producers/recording"
	"penstock/schemas/event"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func save(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// result is all that came of reading.
type result struct {
	rows  []event.Request
	bad   []recording.BadLine
	stats Stats
	err   error
}

func readFiles(events, friends string, o Options) (res result) {
	o.Bad = func(b recording.BadLine) { res.bad = append(res.bad, b) }
	res.stats, res.err = Read(context.Background(), events, friends, o, func(r *event.Request) error {
		res.rows = append(res.rows, *r)
		return r.Check()
	})
	return res
}

func (r result) String() string {
	var b strings.Builder
	for i := range r.rows {
		q := &r.rows[i]
		fmt.Fprintf(&b, "%s %-5s owner=%s user=%s at %v,%v %d B\n",
			time.UnixMicro(q.Time).UTC().Format("2006-01-02T15:04:05.000000"), q.Op, q.Owner, q.User, q.Lat, q.Lon, q.Bytes)
	}
	for _, bad := range r.bad {
		bad.File = filepath.Base(bad.File)
		fmt.Fprintf(&b, "bad: %s\n", bad.Error())
	}
	fmt.Fprintf(&b, "%+v\n", r.stats)
	return b.String()
}
