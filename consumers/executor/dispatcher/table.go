package dispatcher

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"penstock/schemas/control"
)

// force is what is in force. The zero value is the default: all servers are on, and no
// weights bind the choice of a zone.
type force struct {
	table   *control.ServersTable // nil: the default
	epoch   uint64
	until   time.Time // zero: for ever
	off     map[string]bool
	weights map[string]float64 // by zone; nil: none are in force
}

// Table is what a site goes by.
type Table struct {
	// Epoch of the table; 0: the default is in force.
	Epoch uint64
	// Until is when its ttl is over; zero for the default.
	Until time.Time
	// Servers is the table; nil for the default. It must not be changed.
	Servers *control.ServersTable
}

// Table is what is in force.
func (s *Site) Table() Table {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Table{Epoch: s.force.epoch, Until: s.force.until, Servers: s.force.table}
}

// Put brings a table into force until a time: servers that are off get no new requests,
// what waits for them is placed anew, and what runs there runs to its end. ErrTable if it
// can't be; what is in force stays then.
func (s *Site) Put(t *control.ServersTable, epoch uint64, until time.Time) error {
	s.applying.Lock()
	defer s.applying.Unlock()
	f, strangers, err := s.compile(t)
	if err != nil {
		return err
	}
	f.epoch, f.until = epoch, until
	if strangers > 0 {
		s.o.Logger.Warn().Str("site", s.o.Site).Uint64("epoch", epoch).Int("strangers", strangers).
			Msg("a table names servers or zones that the configuration of this entry point doesn't have")
	}
	s.apply(&f)
	return nil
}

// compile checks a table against the servers that there are. strangers are names in it
// that are none of these: another configuration may be a little ahead of this one.
func (s *Site) compile(t *control.ServersTable) (f force, strangers int, err error) {
	servers, zones := map[string]bool{}, map[string]bool{}
	for _, z := range s.config {
		zones[z.Name] = true
		for _, server := range z.Servers {
			servers[server.Name] = true
		}
	}
	f = force{table: t, off: map[string]bool{}, weights: map[string]float64{}}
	on := false
	for _, name := range t.On {
		on = on || servers[name]
	}
	for _, name := range t.Off {
		f.off[name] = true
	}
	for _, name := range slices.Concat(t.On, t.Off) {
		if !servers[name] {
			strangers++
		}
	}
	sum := 0.0
	for name, w := range t.ZoneWeights {
		if !(w >= 0) || math.IsInf(w, 1) {
			return f, 0, fmt.Errorf("zone_weights[%.80s]: got %v, expected 0 or more: %w", name, w, ErrTable)
		}
		if !zones[name] {
			strangers++
			continue
		}
		f.weights[name] = w
		sum += w
	}
	switch {
	case !on:
		return f, 0, fmt.Errorf("on: got none of the servers of %s, expected at least one: %w", s.o.Site, ErrTable)
	case !(sum > 0):
		return f, 0, fmt.Errorf("zone_weights: got a sum of %v over the zones of %s, expected more than 0: %w", sum, s.o.Site, ErrTable)
	}
	for name := range f.off {
		if slices.Contains(t.On, name) {
			return f, 0, fmt.Errorf("off: got %.80q, which is on: %w", name, ErrTable)
		}
	}
	f.table = &control.ServersTable{On: slices.Clone(t.On), Off: slices.Clone(t.Off), ZoneWeights: maps.Clone(t.ZoneWeights)}
	return f, strangers, nil
}

// Expire puts the default in the place of a table whose time is over, and says whether
// there was one.
func (s *Site) Expire(now time.Time) bool {
	s.applying.Lock()
	defer s.applying.Unlock()
	if t := s.Table(); t.Until.IsZero() || t.Until.After(now) {
		return false
	}
	s.apply(&force{})
	return true
}

// giveWay puts the default in the place of whatever is in force.
func (s *Site) giveWay() {
	s.applying.Lock()
	defer s.applying.Unlock()
	s.apply(&force{})
}
