package locations

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/cespare/xxhash/v2"

	"penstock/infra/objectstore"
	"penstock/schemas/control"
)

// Fault is what can be wrong with an owner's copies.
type Fault string

// The faults.
const (
	// Missing: locations names a site, and its store has no copy.
	Missing Fault = "missing"
	// NotLive: the copy that locations names is closed to writers.
	NotLive Fault = "not-live"
	// Unsettled: the copy that locations names was flipped to and not opened yet:
	// its mover was cut off and will do so when it comes back.
	Unsettled Fault = "unsettled"
	// SecondLive: another copy than the one that locations names may be written
	// to as well.
	SecondLive Fault = "second-live"
	// Ambiguous: there is no entry and not exactly one copy that may be written
	// to.
	Ambiguous Fault = "ambiguous"
	// Leftover: an incoming copy of a move that is over.
	Leftover Fault = "leftover"
	// Unjournalled: a retired copy that no mover whose journal was looked at is
	// going to delete. The mover that retired it may be another.
	Unjournalled Fault = "unjournalled"
	// UnknownSite: locations names a site without a store.
	UnknownSite Fault = "unknown-site"
)

// Problem is a fault of one owner at one site.
type Problem struct {
	Owner string `json:"owner"`
	Site  string `json:"site,omitempty"`
	Fault Fault  `json:"fault"`
	Text  string `json:"text"`
}

// Report is what the stores hold against what locations says.
type Report struct {
	Owners   int `json:"owners"`   // seen in a store or in locations
	Live     int `json:"live"`     // with exactly one live copy, where locations says or without an entry
	Retired  int `json:"retired"`  // copies
	Incoming int `json:"incoming"` // copies of moves under way
	// Problems, ascending by owner and site.
	Problems []Problem `json:"problems"`
}

// found is one copy.
type found struct {
	site string
	mark objectstore.Mark
}

// passOwners is how many owners a pass holds in memory; tests make it small.
var passOwners = 1 << 20

// Verify lists the stores and compares them with locations: every owner must have
// exactly one live copy, the one that locations names, and all others must be
// retired and, if retired isn't nil, known to a mover that will delete them, as far
// as the journals go that it looks at. It
// changes nothing. Moves under way may show as faults of the moment: stop the
// movers, or look twice.
//
// Memory is bounded whatever the number of owners: beyond a million they are
// looked at in passes, by a hash of their names, and each pass lists the stores
// and locations again.
func Verify(ctx context.Context, t Table, stores map[string]objectstore.Store, retired func(owner, site string) bool) (Report, error) {
	v := verifier{Report: Report{Problems: []Problem{}}, stores: stores, retired: retired}
	p := pass{of: 1}
	for ; p.nth < p.of; p.nth++ {
		if err := p.gather(ctx, t, stores); err != nil {
			return Report{}, err
		}
		for owner, list := range p.copies {
			v.owner(owner, list, p.entries)
		}
		v.Owners += len(p.copies)
	}
	slices.SortFunc(v.Problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Site, b.Site), cmp.Compare(a.Fault, b.Fault))
	})
	return v.Report, nil
}

// pass is one look at a part of the owners: those whose hash is nth of so many.
type pass struct {
	nth, of uint64
	copies  map[string][]found
	entries map[string]control.Location
}

// mine reports whether an owner is of this pass.
func (p *pass) mine(owner string) bool { return p.of == 1 || xxhash.Sum64String(owner)%p.of == p.nth }

// gather lists what there is of the pass's owners. The first pass finds out how
// many there must be: it lets go of half of its owners whenever it has too many.
func (p *pass) gather(ctx context.Context, t Table, stores map[string]objectstore.Store) error {
	p.copies, p.entries = map[string][]found{}, map[string]control.Location{}
	for _, site := range slices.Sorted(maps.Keys(stores)) {
		err := stores[site].Owners(ctx, func(owner string, m objectstore.Mark) error {
			if p.mine(owner) {
				p.copies[owner] = append(p.copies[owner], found{site, m})
				p.shrink()
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("list the store at %s: %w", site, err)
		}
	}
	return t.List(ctx, func(owner string, l control.Location) error {
		if p.mine(owner) {
			p.entries[owner] = l
			if _, there := p.copies[owner]; !there {
				p.copies[owner] = nil
			}
			p.shrink()
		}
		return nil
	})
}

func (p *pass) shrink() {
	for p.nth == 0 && len(p.copies) > passOwners {
		p.of *= 2
		// Maps keep the room that they once had.
		copies, entries := make(map[string][]found, len(p.copies)/2), make(map[string]control.Location, len(p.entries)/2)
		for owner, list := range p.copies {
			if p.mine(owner) {
				copies[owner] = list
				if l, ok := p.entries[owner]; ok {
					entries[owner] = l
				}
			}
		}
		p.copies, p.entries = copies, entries
	}
}

type verifier struct {
	Report
	stores  map[string]objectstore.Store
	retired func(owner, site string) bool
}

func (v *verifier) problem(owner, site string, f Fault, format string, args ...any) {
	v.Problems = append(v.Problems, Problem{owner, site, f, fmt.Sprintf(format, args...)})
}

func (v *verifier) owner(owner string, list []found, entries map[string]control.Location) {
	l, known := entries[owner]
	before := len(v.Problems)
	open, named := 0, false
	for _, c := range list {
		if c.mark.Writable() {
			open++
		}
		if known && c.site == l.Site {
			named = true
			v.named(owner, l, c)
			continue
		}
		v.other(owner, l, known, c)
	}
	switch {
	case !known && open != 1:
		v.problem(owner, "", Ambiguous, "no entry, and %d copies that may be written to", open)
	case known && v.stores[l.Site] == nil:
		v.problem(owner, l.Site, UnknownSite, "locations names it at version %d, and it is no site", l.Version)
	case known && !named:
		v.problem(owner, l.Site, Missing, "locations names it at version %d, and there is no copy", l.Version)
	case len(v.Problems) == before:
		v.Live++
	}
}

// named looks at the copy that locations names.
func (v *verifier) named(owner string, l control.Location, c found) {
	switch {
	case c.mark.Writable():
	case c.mark.State == objectstore.Incoming && c.mark.Version <= l.Version:
		v.problem(owner, c.site, Unsettled, "the live copy is %s still", c.mark)
	default:
		v.problem(owner, c.site, NotLive, "locations names it at version %d, and it is %s", l.Version, c.mark)
	}
}

// other looks at a copy that locations doesn't name.
func (v *verifier) other(owner string, l control.Location, known bool, c found) {
	switch {
	case c.mark.State == objectstore.Retired:
		v.Retired++
		if v.retired != nil && !v.retired(owner, c.site) {
			v.problem(owner, c.site, Unjournalled, "%s, and of the journals that were looked at none has it: the executor that retired it deletes it, if there is one yet", c.mark)
		}
	case c.mark.State == objectstore.Incoming && c.mark.Version > l.Version:
		v.Incoming++
	case c.mark.State == objectstore.Incoming:
		v.problem(owner, c.site, Leftover, "%s, and the owner is at version %d", c.mark, l.Version)
	case known:
		v.problem(owner, c.site, SecondLive, "%s, and locations names %s", c.mark, l.Site)
	}
}
