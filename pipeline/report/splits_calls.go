package report

import (
	"math"
	"time"

	"penstock/consumers/panes"
	"penstock/schemas/control"
	"penstock/schemas/window"
)

// delayPoint is the mean delay of the calls of a window.
type delayPoint struct {
	start int64 // µs
	ms    float64
}

// linkSums are calls of a link to one site: counts, and sums in µs.
type linkSums struct {
	calls, errors     int64
	service, serviceN int64
	network, networkN int64
	windowUS, windowN int64 // of the window that is added up: delay and calls with one
}

func (x *linkSums) means() (service, network Figure) {
	mean := func(sum, n int64) Figure {
		if n == 0 {
			return Figure(math.NaN())
		}
		return Figure(rounded(float64(sum) / float64(n) / 1000))
	}
	return mean(x.service, x.serviceN), mean(x.network, x.networkN)
}

// rounded leaves six decimals: shares have at most as many.
func rounded(x float64) float64 { return math.Round(x*1e6) / 1e6 }

// Watch takes in the delays of a closed window of the group fast; it is for
// WriteMatrices.
func (s *Splits) Watch(w *panes.Window) {
	if s == nil {
		return
	}
	t := w.Tables[window.Delay.Name]
	if t == nil {
		return
	}
	if s.upto = time.UnixMicro(w.End).UTC(); s.from.IsZero() {
		s.from = time.UnixMicro(w.Start).UTC()
	}
	fromC, fromS, toC, toS := t.Key("from_component"), t.Key("from_site"), t.Key("to_component"), t.Key("to_site")
	requests, failed, service, network := t.Column("requests"), t.Column("errors"), t.Column("service_us"), t.Column("network_us")
	serviceH, networkH := t.HistColumn("service"), t.HistColumn("network")
	seen := map[linkKey]bool{}
	for i := range t.Len() {
		key := linkKey{fromC.At(i), fromS.At(i), toC.At(i)}
		if key.from == "" {
			key.from = control.Outside
		}
		l := s.links[key]
		n, known := s.number[toS.At(i)]
		if l == nil || !known {
			continue
		}
		if s.sums[key] == nil {
			s.sums[key] = make([]linkSums, len(s.sites))
		}
		x := &s.sums[key][n]
		sn, nn := serviceH[i].Count(), networkH[i].Count()
		x.calls += requests[i]
		x.errors += failed[i]
		x.service += service[i]
		x.serviceN += sn
		x.network += network[i]
		x.networkN += nn
		if sn > 0 && l.drawn {
			// Parts of which each has a mean of its own.
			x.windowN += sn
			x.windowUS += service[i]
			if nn > 0 {
				x.windowUS += int64(float64(network[i]) / float64(nn) * float64(sn))
			}
			seen[key] = true
		}
	}
	for key := range seen {
		s.keep(key, w.Start)
	}
}

// keep notes the mean delays of a link that is drawn, of the window that starts
// then (µs).
func (s *Splits) keep(key linkKey, start int64) {
	l := s.links[key]
	if l.delays == nil {
		l.delays = map[string][]delayPoint{}
	}
	for n := range s.sums[key] {
		if x := &s.sums[key][n]; x.windowN > 0 {
			l.delays[s.sites[n]] = append(l.delays[s.sites[n]], delayPoint{start, float64(x.windowUS) / float64(x.windowN) / 1000})
			x.windowUS, x.windowN = 0, 0
		}
	}
}

// calls are those that the recording has of a link.
func (s *Splits) calls(key linkKey) (out []SplitCalls) {
	for n, x := range s.sums[key] {
		if x.calls > 0 {
			service, network := x.means()
			out = append(out, SplitCalls{Site: s.sites[n], Calls: x.calls, Errors: x.errors, ServiceMS: service, NetworkMS: network})
		}
	}
	return out
}
