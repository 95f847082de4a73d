package placement

// rows is a table of (user, owner, number) to be added to edges, in columns.
// The ids of row i are of[owner[i]] and by[user[i]]; rows without either, of an
// owner with itself, or with a number below 1 are none. The values in of are
// distinct, as those of a dictionary are.
type rows struct {
	owner, user []int32
	of, by      []int32
	number      []int64
	owners      int // ids are below
	workers     int
}

// at returns the owner's code and the user's id of row i, false if it is none.
// An owner with itself is found out later, where that costs less.
func (r *rows) at(i int) (code, user int32, ok bool) {
	o, u := r.owner[i], r.user[i]
	if o < 0 || u < 0 || r.number[i] < 1 {
		return 0, 0, false
	}
	return o, r.by[u], true
}

// bucketOwners is how many owners' rows go into one bucket: as many as leave
// what is counted and placed for them in the cache of a processor.
const bucketOwners = 1 << codeBits

// row is a row on its way to its owner: codeBits of the owner's code within its
// bucket, and above them the number, or bigRow if it stands in edges.big.
type row struct {
	user   int32
	packed uint32
}

const (
	codeBits = 15
	bigRow   = 1<<(32-codeBits) - 1
)

func (x row) code() int     { return int(x.packed % bucketOwners) }
func (x row) level() uint32 { return x.packed / bucketOwners }

// collect sorts rows by owner, rows of one owner in the order of the table,
// which is that of users. It does so in two steps, first into buckets of owners
// that are neighbours in the dictionary, then within each: one step would jump
// through all memory for each of fifty million rows.
func collect(r rows, rank []int32) *edges {
	buckets := (len(r.of) + bucketOwners - 1) / bucketOwners
	e := &edges{start: make([]int64, r.owners+1)}
	sorted, begin := r.spread(e, buckets)
	inEach(r.workers, buckets, func(b int) { // how many rows each owner has
		of := r.of[b*bucketOwners : min((b+1)*bucketOwners, len(r.of))]
		for _, x := range sorted[begin[b]:begin[b+1]] {
			if id := of[x.code()]; id != x.user {
				e.start[id]++
			}
		}
	})
	var total int64
	for o, n := range e.start {
		e.start[o], total = total, total+n
	}
	if total == 0 {
		return e
	}
	e.list = make([]edge, total)
	next := make([][]int64, r.workers)
	inEachBy(r.workers, buckets, func(w, b int) {
		if next[w] == nil {
			next[w] = make([]int64, bucketOwners)
		}
		r.settle(e, sorted[begin[b]:begin[b+1]], b*bucketOwners, next[w])
	})
	e.order(rank, r.workers)
	return e
}

// spread puts rows into buckets; those of bucket b are sorted[begin[b]:begin[b+1]].
// Numbers that don't fit a row are added up in e.big.
func (r *rows) spread(e *edges, buckets int) (sorted []row, begin []int) {
	counts := make([][]int, r.workers)
	inParts(r.workers, len(r.number), func(w, lo, hi int) {
		c := make([]int, buckets)
		for i := lo; i < hi; i++ {
			if o, _, ok := r.at(i); ok {
				c[o/bucketOwners]++
			}
		}
		counts[w] = c
	})
	begin = make([]int, buckets+1)
	total := 0
	for b := range buckets {
		begin[b] = total
		for _, c := range counts {
			if c != nil {
				c[b], total = total, total+c[b]
			}
		}
	}
	begin[buckets] = total
	sorted = make([]row, total)
	inParts(r.workers, len(r.number), func(w, lo, hi int) {
		c := counts[w]
		for i := lo; i < hi; i++ {
			o, u, ok := r.at(i)
			if !ok {
				continue
			}
			level := uint32(bigRow)
			if v := r.number[i]; v < bigRow {
				level = uint32(v)
			} else {
				e.addBig(r.of[o], u, v)
			}
			sorted[c[o/bucketOwners]] = row{u, level*bucketOwners + uint32(o%bucketOwners)}
			c[o/bucketOwners]++
		}
	})
	return sorted, begin
}

// settle writes the rows of one bucket, whose codes begin at from, to the places
// of their owners. next is memory for the next place of each.
func (r *rows) settle(e *edges, bucket []row, from int, next []int64) {
	of := r.of[from:min(from+bucketOwners, len(r.of))]
	for i, id := range of {
		next[i] = e.start[id]
	}
	for _, x := range bucket {
		i, level := x.code(), x.level()
		if of[i] == x.user {
			continue
		}
		if level == bigRow {
			level = escaped
		}
		e.list[next[i]] = edge{x.user, level}
		next[i]++
	}
}
