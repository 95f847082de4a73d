package solve

import "math"

// square is a dense square matrix with its factors P·A = L·U.
type square struct {
	n    int
	a    []float64 // row by row
	perm []int
	work []float64
}

func (q *square) reset(n int) {
	q.n = n
	if cap(q.a) < n*n {
		q.a = make([]float64, n*n*2)
		q.perm, q.work = make([]int, 2*n), make([]float64, 2*n)
	}
	if cap(q.perm) < n {
		q.perm, q.work = make([]int, 2*n), make([]float64, 2*n)
	}
	q.a, q.perm, q.work = q.a[:n*n], q.perm[:n], q.work[:n]
	clear(q.a)
}

func (q *square) set(i, j int, v float64) { q.a[i*q.n+j] = v }

// factor replaces the matrix by its factors, with the greatest pivot of each
// column; false if it has none.
func (q *square) factor() bool {
	n := q.n
	for i := range q.perm {
		q.perm[i] = i
	}
	for k := range n {
		best := k
		for i := k + 1; i < n; i++ {
			if math.Abs(q.a[i*n+k]) > math.Abs(q.a[best*n+k]) {
				best = i
			}
		}
		pivot := q.a[best*n+k]
		if math.Abs(pivot) < 1e-14 {
			return false
		}
		if best != k {
			for j := range n {
				q.a[best*n+j], q.a[k*n+j] = q.a[k*n+j], q.a[best*n+j]
			}
			q.perm[best], q.perm[k] = q.perm[k], q.perm[best]
		}
		row := q.a[k*n+k+1 : (k+1)*n]
		for i := k + 1; i < n; i++ {
			f := q.a[i*n+k]
			if f == 0 {
				continue
			}
			f /= pivot
			q.a[i*n+k] = f
			to := q.a[i*n+k+1 : (i+1)*n]
			for j, x := range row {
				to[j] -= float64(f * x)
			}
		}
	}
	return true
}

// solve replaces b by the solution of A·x = b.
func (q *square) solve(b []float64) {
	n := q.n
	for i, p := range q.perm {
		q.work[i] = b[p]
	}
	for i := range n {
		v := q.work[i]
		for j := range i {
			v -= float64(q.a[i*n+j] * q.work[j])
		}
		q.work[i] = v
	}
	for i := n - 1; i >= 0; i-- {
		v := q.work[i]
		for j := i + 1; j < n; j++ {
			v -= float64(q.a[i*n+j] * q.work[j])
		}
		q.work[i] = v / q.a[i*n+i]
	}
	copy(b, q.work)
}

// solveTransposed replaces b by the solution of Aᵀ·x = b.
func (q *square) solveTransposed(b []float64) {
	n := q.n
	copy(q.work, b)
	for i := range n {
		v := q.work[i] / q.a[i*n+i]
		q.work[i] = v
		for j := i + 1; j < n; j++ {
			q.work[j] -= float64(q.a[i*n+j] * v)
		}
	}
	for i := n - 1; i >= 0; i-- {
		v := q.work[i]
		for j := range i {
			q.work[j] -= float64(q.a[i*n+j] * v)
		}
	}
	for i, p := range q.perm {
		b[p] = q.work[i]
	}
}
