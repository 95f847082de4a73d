package baselines

import "time"

// AkkioOptions are the thresholds of akkio-like.
type AkkioOptions struct {
	// Least is how many accesses an owner's counters must hold. Defaults to 10.
	Least int64
	// Share is what part of them another site must have. Defaults to 0.5.
	Share float64
	// Lead is by how much that part must exceed that of the site where the data is.
	// Defaults to 0.1.
	Lead float64
	// Cooldown is how long data that migrated stays. Defaults to 6 h.
	Cooldown time.Duration
}

func (o AkkioOptions) complete() AkkioOptions {
	if o.Least == 0 {
		o.Least = 10
	}
	if o.Share == 0 {
		o.Share = 0.5
	}
	if o.Lead == 0 {
		o.Lead = 0.1
	}
	if o.Cooldown == 0 {
		o.Cooldown = 6 * time.Hour
	}
	return o
}

// Akkio is akkio-like: access counters, and data that migrates to where it is
// accessed from. Of the system PAPERS §1.6 has "access counters, migrate when
// benefit"; the rest is our reading [A]:
//
// Let a(i,j) be the accesses to owner i's data from places whose nearest site is
// j, each window's worth half of the next one's,
//
//	a(i,j) = Σ_w requests(i,j,w) · 2^−(now−w),
//
// rounded down at each halving; windows in which nothing was asked of anybody do
// not exist. At the end of a window in which i was asked for, with s the site of
// its data and b the site of greatest a(i,·) (s before others, then config order),
// it migrates to b if b ≠ s, Σ_j a(i,j) ≥ Least, a(i,b) ≥ Share · Σ,
// a(i,b) − a(i,s) ≥ Lead · Σ, and its last migration was at least Cooldown ago.
// Capacity has no say. Accesses without a place count for no site.
type Akkio struct {
	ledger *Ledger
	o      AkkioOptions
	stands standing
	counts []uint32 // by owner and site
	turns  []int32  // the closing before which an owner's counts were halved
	since  []int64  // end (µs) of the window of the last migration
	turn   int32
	moved  []Moved
}

func newAkkio(l *Ledger, o AkkioOptions) *Akkio { return &Akkio{ledger: l, o: o.complete()} }

// Name is akkio-like.
func (*Akkio) Name() string { return "akkio-like" }

// Text says what it does.
func (*Akkio) Text() string {
	return "one copy, which migrates to where it was last asked for most, by access counters, thresholds and a cooldown"
}

// Copies is 1.
func (*Akkio) Copies() int { return 1 }

// Stand says where an owner's data is.
func (k *Akkio) Stand(owner int32, site int16) { k.stands.set(owner, site) }

// never is the time of a migration that was not.
const never = -1 << 62

// counters returns an owner's counters, halved up to now.
func (k *Akkio) counters(owner int32) []uint32 {
	m := len(k.ledger.sites)
	for int(owner) >= len(k.turns) {
		k.turns, k.since = append(k.turns, k.turn), append(k.since, never)
		for range m {
			k.counts = append(k.counts, 0)
		}
	}
	c := k.counts[int(owner)*m : int(owner)*m+m]
	if age := k.turn - k.turns[owner]; age > 0 {
		for j := range c {
			c[j] >>= min(age, 32)
		}
		k.turns[owner] = k.turn
	}
	return c
}

// Access counts an access, and returns where the data is.
func (k *Akkio) Access(a *Access) int16 {
	if a.Owner >= 0 && a.Place >= 0 {
		c := &k.counters(a.Owner)[k.ledger.places.known[a.Place].near]
		*c = uint32(min(int64(*c)+a.Requests, 1<<32-1))
	}
	return k.stands.serve(k.ledger, a)
}

// Close migrates what the thresholds allow.
func (k *Akkio) Close(end int64) []Moved {
	k.moved = k.moved[:0]
	for _, o := range k.ledger.asked {
		from := k.stands.at(o)
		if from < 0 {
			continue
		}
		to := k.better(k.counters(o), from)
		if to == from || k.since[o] != never && end-k.since[o] < k.o.Cooldown.Microseconds() {
			continue
		}
		k.moved = append(k.moved, Moved{Owner: o, From: from, To: to, Bytes: k.ledger.nodes[o].stored})
		k.stands[o], k.since[o] = to, end
	}
	k.turn++
	return k.moved
}

// better returns the site to which data at from should go; from if it should
// stay.
func (k *Akkio) better(counts []uint32, from int16) int16 {
	best, sum := from, int64(0)
	for j, c := range counts {
		sum += int64(c)
		if c > counts[best] {
			best = int16(j)
		}
	}
	most, here := float64(counts[best]), float64(counts[from])
	if sum < k.o.Least || most < k.o.Share*float64(sum) || most-here < k.o.Lead*float64(sum) {
		return from
	}
	return best
}
