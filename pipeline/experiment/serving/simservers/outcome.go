package simservers

import "slices"

// Outcome is what a run came to.
type Outcome struct {
	Requests int
	// Penalty and ServerCost are the parts of Cost.
	Penalty, ServerCost, Cost float64
	ServerSeconds             float64
	// P50, P90, P99 and Mean are response times, s.
	P50, P90, P99, Mean float64
	// Late is the share of requests beyond their limit.
	Late float64
	// Changes are servers turned on or off.
	Changes int
	// Started are requests by server.
	Started []int
}

// end sums a run up.
func (s *system) end() *Outcome {
	o := &s.out
	s.now = max(s.now, s.Length)
	for i := range s.machines {
		if m := &s.machines[i]; m.state != Off {
			s.off(m)
		}
	}
	o.Requests = len(s.Requests)
	o.ServerCost = s.Cost * o.ServerSeconds
	o.Cost = o.ServerCost + o.Penalty
	late, sum := 0, int64(0)
	for i, b := range s.back {
		sum += b
		if float64(b)/1e9 > s.Classes[s.Requests[i].Page].Limit {
			late++
		}
	}
	if n := len(s.back); n > 0 {
		o.Late, o.Mean = float64(late)/float64(n), float64(sum)/float64(n)/1e9
		slices.Sort(s.back)
		at := func(q float64) float64 { return float64(s.back[min(n-1, int(q*float64(n)))]) / 1e9 }
		o.P50, o.P90, o.P99 = at(0.5), at(0.9), at(0.99)
	}
	return o
}
