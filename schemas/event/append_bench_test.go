package event_test

import (
	"fmt"
	"testing"

	"penstock/schemas/event"
)

// BenchmarkAppend fills batches until they are full, as a publisher does, with
// the names of few people and of many.
func BenchmarkAppend(b *testing.B) {
	for _, people := range []int{2500, 1_000_000} {
		b.Run(fmt.Sprint("people=", people), func(b *testing.B) {
			names := make([]string, people)
			for i := range names {
				names[i] = fmt.Sprintf("user-%07d", i)
			}
			var batch event.Requests
			r := event.NewRequest(1)
			r.ToComponent, r.Status, r.Lat, r.Lon = "osn", 200, 30, -80
			sites := []string{"us-east", "us-central", "us-west"}
			n := uint64(1)
			b.ReportAllocs()
			for b.Loop() {
				n = n*6364136223846793005 + 1442695040888963407
				r.User, r.Owner = names[n>>33%uint64(people)], names[n>>43%uint64(people/8)]
				r.ToSite = sites[n>>40%3]
				batch.Append(&r)
				if batch.Size() >= event.MaxBytes {
					batch.Reset()
				}
			}
		})
	}
}
