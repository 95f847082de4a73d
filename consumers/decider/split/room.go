package split

import "math"

// What more calls do to a replica shows only in the next windows. So each gets only a
// part more in one, whatever the plan wants, and the next part when that has been
// seen: else a plan that is wrong about what the others take, since calls have become
// heavier or a capacity is told too high, would overload them at once. A replica that
// is hopeless is left without that care.
const (
	// hopeless is how many times slower than the best, and by how much (µs).
	hopeless, hopelessBy = 5.0, 50_000.0
	// A replica gets at most this part of the room that it has left, or where no limit
	// is known this part of its own load; and never less than a tenth of all calls.
	roomShare, loadShare, leastShare = 0.25, 0.5, 0.1
)

// rooms returns how many more calls a second each replica may get in this window.
func (t *Policy) rooms(e *estimates) []float64 {
	m := len(t.config.Sites)
	out := make([]float64, len(e.load))
	for j := range t.state.components {
		best, worst, all := math.Inf(1), 0.0, 0.0
		for p := range m {
			r := j*m + p
			all += e.load[r]
			if !e.known[r] {
				continue
			}
			best = min(best, e.service[r])
			if !t.pushed(e, j, p) {
				worst = max(worst, e.service[r])
			}
		}
		for r := j * m; r < (j+1)*m; r++ {
			out[r] = loadShare * e.load[r]
			if !math.IsInf(e.limit[r], 1) {
				out[r] = roomShare * (e.limit[r] - e.load[r])
			}
			out[r] = max(out[r], leastShare*all)
			if worst > hopeless*best && worst > best+hopelessBy {
				out[r] = math.Inf(1)
			}
		}
	}
	return out
}

// pushed reports whether a replica gets clearly more calls than it is known to take, or
// than a moment ago: a fifth more, and more than chance makes of it, of which few calls
// have much.
func (t *Policy) pushed(e *estimates, j, p int) bool {
	proven := t.state.replicas[j][p].capacity.proven()
	chance := 3 * math.Sqrt(proven/t.config.Window.Seconds())
	return proven > 0 && e.load[j*len(t.config.Sites)+p] > 1.2*proven+chance || t.rising(t.state.replicas[j][p].history)
}

// rising reports whether a replica got clearly more calls in the last window than in
// those before: what a burst makes slow may be well before anything can be done.
func (t *Policy) rising(s series) bool {
	var calls, n float64
	for _, x := range s[min(1, len(s)):] {
		if t.weight(x.window) > 0 {
			calls += float64(x.requests)
			n++
		}
	}
	if n == 0 || len(s) == 0 {
		return false
	}
	mean := calls / n
	return float64(s[0].requests) > 1.2*mean+3*math.Sqrt(mean)
}

// within is the damping of a row that the room of the sites that it goes to leaves; nil
// if that is not worth a command in this window. Policies that know no delays are not held: what they want, they want whole.
func (w *decision) within(d *damping, edge, a int) *damping {
	t := w.t
	if t.config.Policy == Closest || t.config.Policy == LocalityFailover {
		return d
	}
	e, m := &t.state.edges[edge], len(t.config.Sites)
	row := &e.rows[a]
	var room float64
	for n := range m {
		if row.target[n] > row.parts[n] {
			room += max(0, w.room[e.to*m+n])
		}
	}
	rate := t.rate(e.links[a]...)
	if rate <= 0 || room >= rate {
		return d
	}
	out := *d
	most := int(room / rate * float64(d.whole))
	if most <= d.band {
		return nil
	}
	out.up, out.down = min(d.up, most), min(d.down, most)
	return &out
}

// take takes what a row's calls need of the rooms.
func (w *decision) take(edge, a int, next []int) {
	t := w.t
	e, m := &t.state.edges[edge], len(t.config.Sites)
	rate := t.rate(e.links[a]...) / float64(t.config.Resolution)
	for n := range m {
		if more := next[n] - e.rows[a].parts[n]; more > 0 {
			w.room[e.to*m+n] -= float64(rate * float64(more))
		}
	}
}
