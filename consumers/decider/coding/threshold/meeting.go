package threshold

// meeting is what a request loses to another one that it meets, where the connections
// are too few for both (n > L/2).
type meeting struct {
	// late is its mean delay beyond Service, added up over the ages at which the other
	// one can be met (ms²): at a rate λ requests are λ·late later, to the first order.
	late float64
	// waits is the same of the time without a connection, which alone counts as
	// backlog: none unless the other one has them all.
	waits float64
}

// ages is at how many ages of a request the other one meets it.
const ages = 32

// meeting is that of requests of j megabytes under (n,k) over l connections. The one that
// is met began n tasks together. The other one begins as many as there are connections
// left, more as tasks of the first end, and what is left when that has its k.
func (m Model) meeting(j float64, n, k, l int) meeting {
	b := j / float64(k)
	r := race{fixed: m.Fixed(b), mean: m.Mean(b)}
	starts, ends, mine := make([]float64, n), make([]float64, k), make([]float64, k)
	r.run(starts, ends)
	first, last := ends[0], ends[k-1]
	var late float64
	for i := range ages {
		age := last * (float64(i) + 0.5) / ages
		for t := max(0, l-n); t < n; t++ {
			starts[t] = max(0, ends[min(t-max(0, l-n), k-1)]-age)
		}
		r.run(starts, mine)
		late += (mine[k-1] - last) * last / ages
	}
	// A request is met the more often the longer it takes: E[T²] stands in place of
	// E[T]².
	out := meeting{late: late * (1 + m.variance(j, n, k))}
	if n >= l {
		p := r.mean / float64(n)
		out.waits = (float64(first*first) + float64(p*p)) / 2
	}
	return out
}

// race is tasks of fixed + Exp(mean) each.
type race struct{ fixed, mean float64 }

// run sets when the first tasks end, as many as ends has places, of tasks that start at
// rising times. Once its fixed part is over a task is one of w that may end, and one of
// those does mean/w later. For tasks that start together these are the mean times,
// fixed + mean·(H(n) − H(n−i)); for others they are near them.
func (r race) run(starts, ends []float64) {
	at, open, next := 0.0, 0, 0
	left := 1.0 // of the way to the next end
	for i := 0; i < len(ends); {
		if open == 0 {
			at = max(at, starts[next]+r.fixed)
		}
		for next < len(starts) && starts[next]+r.fixed <= at {
			next++
			open++
		}
		end := at + left*r.mean/float64(open)
		if next < len(starts) && starts[next]+r.fixed < end {
			entry := starts[next] + r.fixed
			left -= (entry - at) * float64(open) / r.mean
			at = entry
			continue
		}
		ends[i] = end
		at, left = end, 1
		open--
		i++
	}
}
