package shares

import (
	"math"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"
)

// Units is the resolution of keyless choices: shares are met to a thousandth.
const Units = 1000

// choice is a row made ready to choose by. It is not changed; turn and running
// are counters that outlive it.
type choice struct {
	row            Row
	epoch          uint64
	down, draining []bool          // by site, as it was told
	inverse        []float64       // by site, 1 over its part; 0 if it isn't chosen
	hashes         []uint64        // of the sites' names
	order          []uint8         // whose turn it is, at each turn of a round
	visits         []*atomic.Int64 // running requests by site
	writes         *atomic.Int64   // running requests at the site for writes, nil: none

	turn  *atomic.Uint64
	start uint64    // what is added to turn for the place in order
	owed  []float64 // requests that sites are owed beside what order gives them
}

// newChoice makes a row ready. Sites that are out get nothing while another site
// has a share; if none has, the rest is better than nothing (PROBLEMS P31): first
// those that are merely down, then all.
func newChoice(row Row, epoch uint64, down, draining []bool) (*choice, error) {
	n := len(row.Ratios)
	c := &choice{row: row, epoch: epoch, down: down, draining: draining, hashes: make([]uint64, n), inverse: make([]float64, n), owed: make([]float64, n)}
	either := make([]bool, n)
	for i, ratio := range row.Ratios {
		c.hashes[i] = xxhash.Sum64String(ratio.Site)
		either[i] = down[i] || draining[i]
	}
	var shares []float64
	var sum float64
	var err error
	for _, out := range [...][]bool{either, draining, make([]bool, n)} {
		shares = sharesOf(row)
		for i := range shares {
			if out[i] {
				shares[i] = 0
			}
		}
		if sum, _, err = total(shares); err == nil {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	units, err := Remainder(shares, Units)
	if err != nil {
		return nil, err
	}
	for i, s := range shares {
		if s > 0 {
			c.inverse[i] = sum / s
		}
	}
	c.order = schedule(units)
	return c, nil
}

// chosen says whether requests can go to the site at an index.
func (c *choice) chosen(i int) bool { return c.inverse[i] > 0 }

// enter is where a request goes: to the site for writes if it writes and there is
// one, else to the site that its session is at if that may stay, else by its key.
func (c *choice) enter(key, site string, write bool) Choice {
	if write && c.row.WritesAt != "" {
		return Choice{Site: c.row.WritesAt, Epoch: c.epoch, Known: true, running: c.writes}
	}
	if site != "" {
		if stays, ok := c.stay(site); ok {
			return stays
		}
	}
	return c.at(c.pick(key))
}

// stay is the site that a session is at; false if it can't stay there.
func (c *choice) stay(site string) (Choice, bool) {
	i := c.index(site)
	if i < 0 || !c.chosen(i) {
		return Choice{}, false
	}
	return c.at(i), true
}

func (c *choice) at(i int) Choice {
	return Choice{Site: c.row.Ratios[i].Site, Epoch: c.epoch, Known: true, running: c.visits[i]}
}

// pick returns the index of the site for a key; without one, of the site whose
// turn it is.
func (c *choice) pick(key string) int {
	if key != "" {
		return c.forKey(xxhash.Sum64String(key))
	}
	return int(c.order[(c.turn.Add(1)-1+c.start)%Units])
}

// forKey is weighted rendezvous hashing: each site draws from the key a time that
// is exponentially distributed with its share as the rate, and the first wins. A
// share that changes moves as many keys as it must and no others: from those that
// lose to those that win.
func (c *choice) forKey(h uint64) int {
	best, least := 0, math.Inf(1)
	for i, inverse := range c.inverse {
		if inverse == 0 {
			continue
		}
		if t := wait(mix(h^c.hashes[i])) * inverse; t < least {
			best, least = i, t
		}
	}
	return best
}

// mix spreads the bits of v (the finaliser of SplitMix64).
func mix(v uint64) uint64 {
	v = (v ^ v>>30) * 0xbf58476d1ce4e5b9
	v = (v ^ v>>27) * 0x94d049bb133111eb
	return v ^ v>>31
}

// index is where a site stands in the row, −1 if it doesn't.
func (c *choice) index(site string) int {
	for i := range c.row.Ratios {
		if c.row.Ratios[i].Site == site {
			return i
		}
	}
	return -1
}
