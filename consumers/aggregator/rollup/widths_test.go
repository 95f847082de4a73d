package rollup

import (
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"penstock/consumers/aggregator/ledger"
	"penstock/schemas/event"
	"penstock/schemas/window"
)

// TestNarrowWindowsMergeToWideOnes adds the same rows up in windows of any width
// that divides an hour, and of hours: the narrow ones of an hour merge to it.
func TestNarrowWindowsMergeToWideOnes(t *testing.T) {
	var all []time.Duration
	for d := time.Second; d <= time.Hour; d += time.Second {
		if time.Hour%d == 0 {
			all = append(all, d)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		widths := window.Widths{Owners: rapid.SampledFrom(all).Draw(t, "width")}
		narrow, _ := New(window.Owners, widths)
		wide, _ := New(window.Owners, window.Widths{})
		spread := widths.Owners.Microseconds()
		for range rapid.IntRange(1, 4).Draw(t, "batches") {
			var b event.Requests
			var class []ledger.Class
			for range rapid.IntRange(0, 12).Draw(t, "rows") {
				r := draw(t)
				r.Time += rapid.Int64Range(-2, 2).Draw(t, "windows") * spread
				b.Append(&r)
				class = append(class, rapid.SampledFrom([]ledger.Class{ledger.Counted, ledger.Counted, ledger.Late, ledger.Quarantined}).Draw(t, "class"))
			}
			narrow.Add(&b, class)
			wide.Add(&b, class)
		}
		var hours []*window.Table
		for _, p := range narrow.Tables() {
			if p.Wide() != widths.Owners {
				t.Fatalf("%s is %s wide, expected %s", p.Rollup.Name, p.Wide(), widths.Owners)
			}
			h := window.NewTable(p.Rollup)
			for i := range p.Len() {
				if p.Start[i] != window.Start(p.Start[i], widths.Owners) {
					t.Fatalf("%s: a window starts at %d", p.Rollup.Name, p.Start[i])
				}
				h.AppendRow(p, i)
				h.Start[i] = window.Start(p.Start[i], time.Hour)
			}
			hours = append(hours, window.Merge(p.Rollup, h))
		}
		got, err := cells(hours)
		if err != nil {
			t.Fatal(err)
		}
		want, err := cells(wide.Tables())
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("windows of %s: got %v\nwant %v", widths.Owners, got, want)
		}
	})
}
