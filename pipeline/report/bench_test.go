package report

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"penstock/producers/workload"
	"penstock/schemas/event"
)

// daysRows draws the first rows of the paper's day, as make run replays it: every
// row is served at the site nearest to its owner's first place.
func daysRows(b *testing.B, most int) []event.Request {
	b.Helper()
	name := filepath.Join("..", "..", "infra", "examples", "paper-day.yaml")
	text, err := os.ReadFile(name)
	if err != nil {
		b.Fatal(err)
	}
	p, err := workload.Decode(text, name)
	if err != nil {
		b.Fatal(err)
	}
	g, err := workload.New(p)
	if err != nil {
		b.Fatal(err)
	}
	at := map[string]string{}
	var rows []event.Request
	for len(rows) < most {
		r := event.NewRequest(0)
		if err := g.Next(&r); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			b.Fatal(err)
		}
		if at[r.Owner] == "" {
			at[r.Owner] = clouds[len(at)%len(clouds)].Name
		}
		r.ToSite = at[r.Owner]
		rows = append(rows, r)
	}
	return rows
}

// BenchmarkCollector is what the report costs a replay, a row and with all that
// happens at the ends of windows.
func BenchmarkCollector(b *testing.B) {
	rows := daysRows(b, 1_000_000)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		c := NewCollector(clouds, time.Hour)
		for i := range rows {
			c.Row(&rows[i], "")
		}
		var r Report
		c.Fill(&r)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(rows)), "ns/row")
}
