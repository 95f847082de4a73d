package dispatcher

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"penstock/consumers/executor/dispatcher/pool"
	"penstock/infra/clock"
)

// Bounds of what is configured.
const (
	mostServers   = 4096
	mostInService = 1_000_000
	mostPenalty   = 1e9
)

// unlimited is the place in the queue of requests without a limit: behind those that
// are due within a minute. They have no penalty.
const unlimited = time.Minute

// complete fills in what is zero and checks the rest. ErrOptions.
func (o Options) complete() (Options, error) {
	o.Policy, o.Zone = cmp.Or(o.Policy, string(pool.A1)), cmp.Or(o.Zone, ByPenalty)
	o.InService, o.Queue = cmp.Or(o.InService, 16), cmp.Or(o.Queue, 1000)
	o.Ramp, o.Trial = cmp.Or(o.Ramp, 10*time.Second), cmp.Or(o.Trial, 10*time.Second)
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	if o.Shares == nil {
		o.Shares = Static{}
	}
	if o.Others == nil {
		o.Others = nobody{}
	}
	switch {
	case o.Site == "":
		return o, fmt.Errorf("Site: got none, expected a name: %w", ErrOptions)
	case o.Zone != ByPenalty && o.Zone != ByLoad:
		return o, fmt.Errorf("Zone: got %.80q, expected %s or %s: %w", o.Zone, ByPenalty, ByLoad, ErrOptions)
	case o.InService < 1 || o.InService > mostInService:
		return o, fmt.Errorf("places in service: got %d, expected 1 to %d: %w", o.InService, mostInService, ErrOptions)
	case o.Queue < 0:
		return o, fmt.Errorf("queue: got %d, expected 0 or more: %w", o.Queue, ErrOptions)
	}
	if !slices.ContainsFunc(o.Classes, func(c Class) bool { return c.Name == Other }) {
		o.Classes = append(slices.Clone(o.Classes), Class{Name: Other, Dynamic: true})
	}
	seen := map[string]bool{}
	for i, c := range o.Classes {
		switch {
		case c.Name == "" || seen[c.Name]:
			return o, fmt.Errorf("Classes[%d].Name: got %.80q, expected a name that no other has: %w", i, c.Name, ErrOptions)
		case c.Limit < 0:
			return o, fmt.Errorf("Classes[%d].Limit: got %v, expected 0 or more: %w", i, c.Limit, ErrOptions)
		case !(c.Penalty >= 0 && c.Penalty <= mostPenalty):
			return o, fmt.Errorf("Classes[%d].Penalty: got %v, expected 0 to %g: %w", i, c.Penalty, mostPenalty, ErrOptions)
		}
		seen[c.Name] = true
	}
	return o, checkZones(o.Zones)
}

// checkZones checks what New and Set are given.
func checkZones(zones []Zone) error {
	names, servers := map[string]bool{}, map[string]bool{}
	for i, z := range zones {
		if z.Name == "" || names[z.Name] {
			return fmt.Errorf("Zones[%d].Name: got %.80q, expected a name that no other has: %w", i, z.Name, ErrOptions)
		}
		names[z.Name] = true
		for j, s := range z.Servers {
			at := fmt.Sprintf("Zones[%d].Servers[%d]", i, j)
			switch {
			case s.Name == "" || servers[s.Name]:
				return fmt.Errorf("%s.Name: got %.80q, expected a name that no other of the site has: %w", at, s.Name, ErrOptions)
			case !(s.Weight >= 0) || math.IsInf(s.Weight, 1):
				return fmt.Errorf("%s.Weight: got %v, expected 0 or more: %w", at, s.Weight, ErrOptions)
			case s.InService < 0 || s.InService > mostInService:
				return fmt.Errorf("%s.InService: got %d, expected 0 to %d: %w", at, s.InService, mostInService, ErrOptions)
			}
			servers[s.Name] = true
		}
	}
	if len(servers) == 0 || len(servers) > mostServers {
		return fmt.Errorf("zones: got %d servers, expected 1 to %d: %w", len(servers), mostServers, ErrOptions)
	}
	return nil
}

// near is A3's: beyond a tenth more than the soonest a server is not near it.
const near = 0.1

// poolOptions are those of each zone's second-level switch.
func (o *Options) poolOptions() pool.Options {
	p := pool.Options{
		Policy: pool.Policy(o.Policy), Queue: o.Queue, Ramp: o.Ramp, Seed: o.Seed,
		Abreast: !o.Literal, Elapsed: !o.Literal, FreeFirst: !o.Literal,
	}
	if !o.Literal {
		p.Near, p.Trial = near, o.Trial
	}
	for _, c := range o.Classes {
		limit, penalty := c.Limit, c.Penalty
		if limit == 0 {
			limit, penalty = unlimited, 0
		}
		p.Classes = append(p.Classes, pool.Class{Limit: limit.Seconds(), Penalty: penalty})
	}
	return p
}

// nobody is Others of a dispatcher that is alone.
type nobody struct{}

func (nobody) Zone(string) (Load, bool) { return Load{}, false }
