package claims

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"
)

// gap is how long a key is never without a write that a dispatcher reaches. After a longer one
// all were away, and those that are not back yet may be taken for dead by the others.
// In the infancy of a key a shorter one counts, for not all may have written.
const (
	gap      = 2500 * time.Millisecond
	youngGap = 1500 * time.Millisecond
	infancy  = 2 * time.Second
)

// ttl is how long a row counts without being written anew, by the server's clock.
const ttl = 5 * time.Second

// Figures are what a dispatcher has at a server.
type Figures struct {
	// Claim is how many places are its own.
	Claim int `json:"claim,omitempty"`
	// InService and Queued are its requests there.
	InService int `json:"in_service,omitempty"`
	Queued    int `json:"queued,omitempty"`
	// Potential is the penalty of those queued if they wait as long as is expected, in units
	// of cost.
	Potential float64 `json:"potential,omitempty"`
}

// book is the value of the key.
type book struct {
	// Born is when the key was made, or written for the first time after a gap, by the server's
	// clock in ns; 0: by this very write.
	Born int64 `json:"born,omitempty"`
	// Before is when the revision before this was written.
	Before      int64 `json:"before,omitempty"`
	Dispatchers []row `json:"dispatchers"`
}

// row is what one dispatcher says.
type row struct {
	Name string `json:"name"`
	// Instance tells processes of one name apart.
	Instance string `json:"instance"`
	// At is when the row was written, by the server's clock in ns; 0: by this very write,
	// whose time is only known once it is there.
	At      int64              `json:"at,omitempty"`
	Epoch   uint64             `json:"epoch"`
	Servers map[string]Figures `json:"servers,omitempty"`
}

func (r *row) compare(o *row) int {
	return cmp.Or(cmp.Compare(r.Name, o.Name), cmp.Compare(r.Instance, o.Instance))
}

// revision is the key as it was read.
type revision struct {
	book
	number uint64 // 0: there is no key
	at     int64  // when it was written, by the server's clock in ns
}

// read makes a revision of a value. Rows that were written by it get its time. The error
// wraps errBook; the revision then has no rows and can be written over.
func read(value []byte, number uint64, at int64) (revision, error) {
	r := revision{number: number, at: at}
	if err := json.Unmarshal(value, &r.book); err != nil {
		r.book = book{Born: at}
		return r, fmt.Errorf("%w: %w", errBook, err)
	}
	silent := at - r.Before
	if r.Born <= 0 || r.Born > at || r.Before > 0 && (silent > int64(gap) || silent > int64(youngGap) && r.Before-r.Born < int64(infancy)) {
		r.Born = at
	}
	slices.SortFunc(r.Dispatchers, func(a, b row) int { return a.compare(&b) })
	for i := range r.Dispatchers {
		d := &r.Dispatchers[i]
		if i > 0 && d.compare(&r.Dispatchers[i-1]) == 0 {
			r.book = book{Born: at}
			return r, fmt.Errorf("two rows of %.60q: %w", d.Name, errBook)
		}
		if d.At <= 0 || d.At > at {
			d.At = at
		}
		for name, f := range d.Servers {
			d.Servers[name] = f.checked()
		}
	}
	return r, nil
}

// mostPlaces is more than any server has: what says more can't be, and sums don't overflow.
const mostPlaces = 1 << 30

// checked makes numbers that can't be what they should be 0, or mostPlaces.
func (f Figures) checked() Figures {
	for _, n := range [...]*int{&f.Claim, &f.InService, &f.Queued} {
		*n = min(max(0, *n), mostPlaces)
	}
	if !(f.Potential >= 0) || math.IsInf(f.Potential, 1) {
		f.Potential = 0
	}
	return f
}

// others are the rows that count and are not of this instance.
func (r *revision) others(self *row) []row {
	var out []row
	for _, d := range r.Dispatchers {
		if d.compare(self) != 0 && r.at-d.At <= int64(ttl) {
			out = append(out, d)
		}
	}
	return out
}

// fair deals the places of servers out to live dispatchers and returns those of a rank. What
// a server has left over goes on from where the server before it ended, so that the totals
// of two ranks differ by at most one; turn is where the first begins.
func fair(servers []Server, live, rank int, turn int64) []int {
	out := make([]int, len(servers))
	next := int(turn % int64(live))
	for i, s := range servers {
		each, left := s.M/live, s.M%live
		out[i] = each
		if (rank-next+live)%live < left {
			out[i]++
		}
		next = (next + left) % live
	}
	return out
}
