package pool

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// loaded is a pool whose servers have M in service and so many queued.
func loaded(b *testing.B, o Options, servers, m, queued int) (*Pool, int64) {
	b.Helper()
	o.Classes = []Class{{Limit: 0.5, Penalty: 1}, {Limit: 2, Penalty: 3}}
	o.Ramp = -1
	o.Queue = max(queued*2, 1)
	p, err := New(o)
	if err != nil {
		b.Fatal(err)
	}
	list := make([]Server, servers)
	for i := range list {
		list[i] = Server{Name: fmt.Sprintf("s%d", i), M: m}
	}
	if _, _, err := p.SetServers(0, list, nil, nil); err != nil {
		b.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, uint64(servers)))
	now := int64(second)
	for id := range uint64(servers * (m + queued)) {
		j := p.take(now, benchRequest(r, id+1))
		p.jobs[j.id] = j
		s := p.servers[id%uint64(servers)]
		p.put(now, j, s, nil)
		now += 100
		if id < uint64(servers*40) {
			p.learn(now, s, j, 0.01+1e-7*j.size, true)
			static, dynamic, service, _, _ := s.line.Sums()
			s.model.LearnWait(static, dynamic, service/float64(m))
		}
	}
	return p, now
}

func benchRequest(r *rand.Rand, id uint64) Request {
	return Request{ID: id, Class: r.IntN(2), Size: 1e3 + 1e5*r.Float64(), Dynamic: r.IntN(3) == 0, Impact: uint8(id % 3)}
}

// BenchmarkDecide is one decision, without the placing (DESIGN §7: rr to prequal of 100
// servers in 2 µs; A1 of 100 with 1,000 queued each in 100 µs; no allocation).
func BenchmarkDecide(b *testing.B) {
	decide := func(b *testing.B, o Options, servers, m, queued int) {
		p, now := loaded(b, o, servers, m, queued)
		r := rand.New(rand.NewPCG(2, 3))
		requests := make([]*job, 64)
		for i := range requests {
			q := benchRequest(r, uint64(i)+1<<40)
			q.Entered = now - r.Int64N(second)
			requests[i] = p.take(now, q)
		}
		b.ReportAllocs()
		b.ResetTimer()
		for i := range b.N {
			if p.choose(now, requests[i%len(requests)], arrivingMay) == nil {
				b.Fatal("nobody may")
			}
		}
		if servers == 100 {
			judge(b, allowed(o.Policy, queued))
		}
	}
	for _, policy := range Policies() {
		for _, servers := range []int{10, 100, 1000} {
			b.Run(fmt.Sprintf("%s/servers=%d", policy, servers), func(b *testing.B) {
				decide(b, Options{Policy: policy}, servers, 16, 4)
			})
		}
	}
	for _, policy := range []Policy{A1, A3, ICBS} {
		for _, queued := range []int{100, 1000} {
			b.Run(fmt.Sprintf("%s/servers=100/queued=%d", policy, queued), func(b *testing.B) {
				decide(b, Options{Policy: policy}, 100, 16, queued)
			})
		}
	}
	for _, policy := range []Policy{A1, PeakEWMA, Prequal, ICBS} {
		b.Run(fmt.Sprintf("%s/servers=100/elapsed", policy), func(b *testing.B) {
			decide(b, Options{Policy: policy, Elapsed: true}, 100, 16, 4)
		})
	}
}

// allowed is what DESIGN §7 allows a decision among 100 servers, 0: it says nothing.
func allowed(policy Policy, queued int) time.Duration {
	switch policy {
	case RR, WRR, LL, CAP, P2C, PeakEWMA, Prequal:
		return 2 * time.Microsecond
	case A1:
		if queued == 1000 {
			return 100 * time.Microsecond
		}
	}
	return 0
}

// judge tells which part of what is allowed a decision has taken.
func judge(b *testing.B, allowed time.Duration) {
	if allowed == 0 {
		return
	}
	part := 100 * float64(b.Elapsed()) / float64(b.N) / float64(allowed)
	b.ReportMetric(part, fmt.Sprintf("%%-of-%v", allowed))
	if verdict := "met"; b.N > 1 { // the first run is none
		if part > 100 {
			verdict = "NOT MET"
		}
		b.Logf("at most %v a decision: %s", allowed, verdict)
	}
}

// BenchmarkRequest is a request's whole way: it arrives, is queued, another ends and the
// next is started. A server's estimates learn of each.
func BenchmarkRequest(b *testing.B) {
	for _, policy := range Policies() {
		b.Run(fmt.Sprintf("%s/servers=100", policy), func(b *testing.B) {
			p, now := loaded(b, Options{Policy: policy}, 100, 16, 4)
			r := rand.New(rand.NewPCG(2, 3))
			var run []uint64
			for id, j := range p.jobs {
				if j.state == running {
					run = append(run, id)
				}
			}
			var starts []Start
			id := uint64(1 << 40)
			b.ReportAllocs()
			b.ResetTimer()
			slots := len(run)
			for range b.N {
				id++
				now += 100_000
				var err error
				if _, starts, err = p.Arrive(now, benchRequest(r, id), starts[:0]); err != nil {
					b.Fatal(err)
				}
				k := r.IntN(len(run))
				starts = p.Done(now, run[k], Outcome{OK: true, Service: 0.02}, starts)
				run[k] = run[len(run)-1]
				run = run[:len(run)-1]
				for _, s := range starts {
					run = append(run, s.ID)
				}
			}
			if len(run) > slots {
				b.Fatalf("%d in service, %d slots", len(run), slots)
			}
		})
	}
}
