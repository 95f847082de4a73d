package locations

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"penstock/infra/objectstore"
)

// StoreRows are rows by what the stores hold: an owner is where its copy is that
// may be written to. They are ascending by owner, and their lines count them.
type StoreRows struct {
	found  map[string]*inStores
	owners []string
	at     int
	// Closed is how many copies are closed to writers, incoming or retired: they
	// say nothing of where an owner is.
	Closed int
}

// inStores is an owner's copy that may be written to.
type inStores struct {
	site    string
	version uint64
	second  string // another site with one
}

// FromStores lists the stores. It keeps some 150 bytes an owner in memory.
func FromStores(ctx context.Context, stores map[string]objectstore.Store) (*StoreRows, error) {
	s := &StoreRows{found: map[string]*inStores{}}
	for _, site := range slices.Sorted(maps.Keys(stores)) {
		err := stores[site].Owners(ctx, func(owner string, m objectstore.Mark) error {
			if !m.Writable() {
				s.Closed++
				return nil
			}
			if f := s.found[owner]; f != nil {
				f.second = site
			} else {
				s.found[owner] = &inStores{site: site, version: m.Version}
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("list the store at %s: %w", site, err)
		}
	}
	s.owners = slices.Sorted(maps.Keys(s.found))
	return s, nil
}

// Next returns the next owner. One with copies that may be written to at two
// sites is at neither, and an error of its row: whose writes are the right ones
// is for a person to say.
func (s *StoreRows) Next() (Row, int, error) {
	if s.at == len(s.owners) {
		return Row{}, 0, io.EOF
	}
	owner := s.owners[s.at]
	s.at++
	f := s.found[owner]
	if f.second != "" {
		return Row{}, s.at, fmt.Errorf("owner %.80q has copies that may be written to at %s and at %s: %w", owner, f.site, f.second, ErrRow)
	}
	return Row{Owner: owner, Site: f.site, Version: f.version}, s.at, nil
}
