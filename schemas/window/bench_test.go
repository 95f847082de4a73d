package window_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"penstock/schemas/window"
)

// panes returns sorted tables as aggregators of as many partitions flush them.
func panes(partitions, rows, owners int) []*window.Table {
	r := rand.New(rand.NewPCG(1, 9))
	out := make([]*window.Table, partitions)
	for p := range out {
		t := window.NewTable(window.Interactions)
		for range rows {
			o := r.IntN(owners)*partitions + p
			t.Append(int64(r.IntN(2))*3_600_000_000, []string{fmt.Sprintf("user-%08d", r.IntN(owners)), fmt.Sprintf("user-%08d", o)}, []int64{1})
		}
		t.Sort()
		out[p] = t
	}
	return out
}

func BenchmarkMerge(b *testing.B) {
	in := panes(8, 100_000, 50_000)
	b.ReportAllocs()
	for b.Loop() {
		window.Merge(window.Interactions, in...)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/800_000, "ns/row")
}

func BenchmarkSort(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 9))
	in := window.NewTable(window.Traffic)
	for range 200_000 {
		in.Append(0, []string{fmt.Sprintf("user-%08d", r.IntN(1_000_000)), fmt.Sprint("site-", r.IntN(3))}, []int64{1, 1, 0, 1000, 0})
	}
	b.ReportAllocs()
	for b.Loop() {
		// Merge sorts a copy.
		window.Merge(window.Traffic, in)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(in.Len()), "ns/row")
}

func BenchmarkEncode(b *testing.B) {
	in := panes(1, 20_000, 5_000)[0]
	b.ReportAllocs()
	var body []byte
	for b.Loop() {
		var err error
		if body, err = in.Encode(body[:0]); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(in.Len()), "ns/row")
	b.ReportMetric(float64(len(body))/float64(in.Len()), "B/row")
}

func BenchmarkDecodeTable(b *testing.B) {
	in := panes(1, 20_000, 5_000)[0]
	body, err := in.Encode(nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := window.DecodeTable(body); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(in.Len()), "ns/row")
}
