package coding

import (
	"math"
	"slices"

	"penstock/consumers/decider/coding/threshold"
	"penstock/schemas/control"
)

// plan is the table that a coder should have by what is known now.
func (t *Policy) plan(i int) (table *control.CodingTable, priced bool) {
	s, x := &t.state.coders[i], &t.config.Coders[i]
	table = &control.CodingTable{Policy: t.config.Policy}
	for op := range ops {
		l, p := t.config.limits(x, op, s.sizes[op])
		priced = priced || p
		d := s.model(op)
		m := control.CodingDelay{Delta: d.Delta, DeltaPerMB: d.DeltaPerMB, Psi: d.Psi, PsiPerMB: d.PsiPerMB}
		if c := t.codes(d, x, l); op == read {
			table.Model.Read, table.Read = m, c
		} else {
			table.Model.Write, table.Write = m, c
		}
	}
	return table, priced
}

// codes are those of one operation under the policy.
func (t *Policy) codes(m threshold.Model, x *Coder, l threshold.Limits) control.CodingCodes {
	switch t.config.Policy {
	case control.CodingTOFEC:
		return t.thresholds(m, l)
	case control.CodingGreedy:
		return control.CodingCodes{K: always(l.KMax), N: always(l.NMax), RMax: l.RMax}
	case control.CodingHedge:
		c := fixed(t.config.Code, x, l)
		c.HedgeUS = hedgeAfter(m, l.SizeMB, len(c.K)+1, t.config.HedgeQuantile)
		return c
	}
	return fixed(t.config.Code, x, l)
}

// thresholds are tofec's. A model that samples have driven to no delay at all has none
// to compare: then as few requests each as there can be are best.
func (t *Policy) thresholds(m threshold.Model, l threshold.Limits) control.CodingCodes {
	of := threshold.Corrected
	if t.config.Uncorrected {
		of = threshold.Uncorrected
	}
	out := control.CodingCodes{K: make([]float64, l.KMax-1), N: make([]float64, l.NMax-1), RMax: l.RMax, MB: rounded(l.SizeMB)}
	for j := range l.KMin - 1 {
		out.K[j], out.N[j] = control.MaxBacklog, control.MaxBacklog
	}
	table, err := of(m, l)
	if err != nil {
		return out
	}
	for i, h := range table.K {
		out.K[i] = min(rounded(h), control.MaxBacklog)
	}
	for i, h := range table.N {
		out.N[i] = min(rounded(h), control.MaxBacklog)
	}
	return out
}

// fixed is one code at any backlog, within the cap on requests.
func fixed(c Code, x *Coder, l threshold.Limits) control.CodingCodes {
	k, n := min(c.K, l.NMax), min(c.N, l.NMax)
	if x.spread() {
		k, n = x.K, min(max(x.K, c.N*x.K/c.K), l.NMax)
	}
	return control.CodingCodes{K: always(k), N: always(n), RMax: float64(n)}
}

// always is thresholds by which the count is n whatever the backlog.
func always(n int) []float64 {
	return slices.Repeat([]float64{control.MaxBacklog}, n-1)
}

// hedgeAfter is the delay (µs) within which a share q of requests of k chunks and none
// to spare are done: (1 − exp(−(d − Delta)/Psi))^k = q.
func hedgeAfter(m threshold.Model, size float64, k int, q float64) int64 {
	b := size / float64(k)
	d := m.Fixed(b) - float64(m.Mean(b)*math.Log1p(-math.Pow(q, 1/float64(k))))
	return max(1, int64(math.Round(1000*d)))
}

// apart is how much two tables of the same policy differ, at most: thresholds, and
// the hedge's delay. What is of another policy or shape is wholly apart.
func apart(a, b *control.CodingTable) (share float64, shape bool) {
	if a.Policy != b.Policy {
		return 1, true
	}
	for _, x := range [][2]*control.CodingCodes{{&a.Read, &b.Read}, {&a.Write, &b.Write}} {
		p, q := x[0], x[1]
		if len(p.K) != len(q.K) || len(p.N) != len(q.N) || p.RMax != q.RMax || (p.HedgeUS == 0) != (q.HedgeUS == 0) {
			return 1, true
		}
		share = max(share, threshold.Apart(threshold.Table{K: p.K, N: p.N}, threshold.Table{K: q.K, N: q.N}))
		if top := max(p.HedgeUS, q.HedgeUS); top > 0 {
			share = max(share, math.Abs(float64(p.HedgeUS-q.HedgeUS))/float64(top))
		}
	}
	return share, false
}

// most is the most requests that a read may be under a table: those of an empty queue.
func most(c *control.CodingCodes) int {
	n, _ := threshold.Table{K: c.K, N: c.N}.Code(0, c.RMax)
	return n
}
