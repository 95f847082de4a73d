package shares

import (
	"fmt"
	"strconv"
	"testing"
)

// world is a table for each of 100 components that call 10 others over 10 sites.
func world(b *testing.B) (*Router, []Link) {
	b.Helper()
	r := New(Options{})
	var links []Link
	for from := range 100 {
		b.StopTimer()
		t := tableOf(from, 1)
		if _, err := r.Put(b.Context(), t); err != nil {
			b.Fatal(err)
		}
		for _, row := range t.Rows {
			links = append(links, Link{t.From, row.FromSite, row.To})
		}
	}
	b.StartTimer()
	return r, links
}

func tableOf(from int, epoch uint64) Table {
	t := Table{From: fmt.Sprint("component-", from), Epoch: epoch}
	for site := range 10 {
		for to := range 10 {
			row := Row{FromSite: fmt.Sprint("site-", site), To: fmt.Sprint("component-", (from+to+1)%100)}
			for s := range 10 {
				row.Ratios = append(row.Ratios, Ratio{Site: fmt.Sprint("site-", s), Share: float64(1+(s+to+int(epoch))%10) / 55})
			}
			t.Rows = append(t.Rows, row)
			t.Probes = append(t.Probes, Probe{FromSite: row.FromSite, To: row.To, Site: "site-3", Share: 0.02})
		}
	}
	return t
}

// BenchmarkPick looks links up among 10,000, over 10 sites (DESIGN §7: 200 ns).
func BenchmarkPick(b *testing.B) {
	r, links := world(b)
	keys := make([]string, 1024)
	for i := range keys {
		keys[i] = "session-" + strconv.Itoa(i)
	}
	b.Run("turn", func(b *testing.B) {
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			r.Pick(links[i%64], "")
			i++
		}
	})
	b.Run("key", func(b *testing.B) {
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			r.Pick(links[i%64], keys[i%1024])
			i++
		}
	})
	b.Run("stay", func(b *testing.B) {
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			r.Stay(links[i%64], "site-7")
			i++
		}
	})
	b.Run("enter", func(b *testing.B) {
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			r.Enter(links[i%64], "", "", false).Leave()
			i++
		}
	})
	b.Run("probe", func(b *testing.B) {
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			r.Probe(links[i%64])
			i++
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			i := 0
			for pb.Next() {
				r.Pick(links[i%64], "")
				i++
			}
		})
	})
}

// BenchmarkPut brings a table of 100 rows over 10 sites into force among 10,000
// links.
func BenchmarkPut(b *testing.B) {
	r, _ := world(b)
	epoch := uint64(1)
	for b.Loop() {
		epoch++
		if _, err := r.Put(b.Context(), tableOf(int(epoch)%100, epoch)); err != nil {
			b.Fatal(err)
		}
	}
}
