package dispatcher

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkAdmit is a request's way through the switch when a server has a place: zone,
// server, and the learning at its end.
func BenchmarkAdmit(b *testing.B) {
	for _, policy := range []string{"A1", "A2", "A3", "ll", "p2c"} {
		for _, servers := range []int{10, 100, 1000} {
			b.Run(fmt.Sprintf("%s/%d", policy, servers), func(b *testing.B) {
				z := Zone{Name: "z"}
				for i := range servers {
					z.Servers = append(z.Servers, Server{Name: fmt.Sprint("s", i)})
				}
				s, err := New(Options{Site: "here", Policy: policy, Zones: []Zone{z}, Classes: []Class{{Name: "dynamic", Limit: time.Second, Penalty: 1, Dynamic: true}}})
				if err != nil {
					b.Fatal(err)
				}
				ctx := b.Context()
				b.ReportAllocs()
				for n := 0; b.Loop(); n++ {
					t, err := s.Admit(ctx, Facts{Class: "dynamic", Key: uint64(n % 100), Body: 100})
					if err != nil {
						b.Fatal(err)
					}
					t.Done(Result{OK: true, Service: time.Millisecond, Answer: 1000})
				}
			})
		}
	}
}

// BenchmarkZones is the same with so many zones of four servers.
func BenchmarkZones(b *testing.B) {
	for _, zones := range []int{1, 2, 10} {
		b.Run(fmt.Sprint(zones), func(b *testing.B) {
			o := Options{Site: "here", Classes: []Class{{Name: "dynamic", Limit: time.Second, Penalty: 1, Dynamic: true}}}
			weights, on := map[string]float64{}, []string{}
			for i := range zones {
				z := Zone{Name: fmt.Sprint("z", i)}
				for j := range 4 {
					z.Servers = append(z.Servers, Server{Name: fmt.Sprint("s", i, "-", j)})
					on = append(on, z.Servers[j].Name)
				}
				o.Zones = append(o.Zones, z)
				weights[z.Name] = 1
			}
			s, err := New(o)
			if err != nil {
				b.Fatal(err)
			}
			if err := s.Put(table(nil, weights, on...), 1, time.Time{}); err != nil {
				b.Fatal(err)
			}
			ctx := b.Context()
			b.ReportAllocs()
			for b.Loop() {
				t, err := s.Admit(ctx, Facts{Class: "dynamic", Body: 100})
				if err != nil {
					b.Fatal(err)
				}
				t.Done(Result{OK: true, Service: time.Millisecond, Answer: 1000})
			}
		})
	}
}
