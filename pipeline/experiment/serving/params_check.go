package serving

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"penstock/consumers/executor/dispatcher/pool"
	"penstock/pipeline/experiment/serving/loads"
)

// faults collects what is wrong.
type faults []error

func (f *faults) need(ok bool, format string, args ...any) {
	if !ok {
		*f = append(*f, fmt.Errorf(format, args...))
	}
}

// check names every fault.
func (p *Params) check() error {
	f := new(faults)
	f.need(p.Version == 1, "version: got %d, expected 1", p.Version)
	f.need(p.ServerCost > 0, "server_cost: got %v, expected more than 0", p.ServerCost)
	f.need(len(p.Policies) > 0, "policies: expected at least one")
	for i := range p.Policies {
		x := &p.Policies[i]
		f.need(slices.IndexFunc(p.Policies, func(o Policy) bool { return o.Name == x.Name }) == i, "policies: got %q twice", x.Name)
		f.need(slices.Contains(pool.Policies(), x.of()), "policies: got %q, expected one of %v", x.of(), pool.Policies())
		f.need(x.Near >= 0 && !math.IsInf(x.Near, 1), "policies: %s: got near %v, expected 0 or more", x.Name, x.Near)
		f.need(x.Trial >= 0, "policies: %s: got trial %v, expected 0 or more", x.Name, x.Trial)
	}
	f.need(p.Targets.Worse >= 1 && p.Targets.Auto >= 1, "targets: got %+v, expected times of a cost, 1 or more", p.Targets)
	p.checkSystem(f)
	p.checkPages(f)
	p.checkScenarios(f)
	if len(*f) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrParams, errors.Join(*f...))
}

func (p *Params) checkSystem(f *faults) {
	s := &p.System
	f.need(s.Zones > 0 && s.Databases > 0 && s.InService > 0, "system: got %d zones with %d databases, %d in service, expected at least one of each", s.Zones, s.Databases, s.InService)
	f.need(areSpeeds(s.Speeds), "system.speeds: got %v, expected numbers above 0", s.Speeds)
	f.need(s.Carried > 0 && s.Carried <= 1, "system.carried: got %v, expected a share above 0", s.Carried)
	f.need(s.Hop >= 0 && s.Ramp > 0, "system: got a hop of %v and a ramp of %v, expected 0 or more, and more", s.Hop, s.Ramp)
	f.need(s.FirstLevel == ByLoad || s.FirstLevel == ByPenalty, "system.first_level: got %q, expected %s or %s", s.FirstLevel, ByLoad, ByPenalty)
	w := &p.Switching
	f.need(w.Period > 0 && w.StartDelay >= 0 && w.Cooldown >= 0 && w.Hold > 0, "switching: got %+v", *w)
	f.need(w.Least > 0 && w.Least <= s.Zones*len(s.Speeds), "switching.least: got %d, expected 1 to all servers", w.Least)
}

func areSpeeds(v []float64) bool {
	return len(v) > 0 && !slices.ContainsFunc(v, func(x float64) bool { return !(x > 0) || math.IsInf(x, 0) })
}

func (p *Params) checkPages(f *faults) {
	st := &p.Stations
	for name, x := range map[string]loads.Station{"before": st.Before, "disk": st.Disk, "behind": st.Behind, "database": st.Database} {
		f.need(x.MS >= 0 && x.PerKB >= 0 && x.MS+x.PerKB > 0, "stations.%s: got %+v, expected times above 0", name, x)
	}
	f.need(st.Sigma >= 0, "stations.sigma: got %v, expected 0 or more", st.Sigma)
	sum := 0.0
	for i, x := range p.Pages {
		f.need(x.Name != "" && p.page(x.Name) == i, "pages: got %q, expected a name of its own", x.Name)
		f.need(x.Share >= 0 && x.KB > 0 && x.Sigma >= 0 && x.Dynamic >= 0 && x.Dynamic <= 1 && x.Limit > 0 && x.Penalty >= 0, "pages: %s: got %+v", x.Name, x)
		sum += x.Share
	}
	f.need(len(p.Pages) > 0 && math.Abs(sum-1) < 1e-9, "pages: got shares that sum to %v, expected 1", sum)
}

func (p *Params) checkScenarios(f *faults) {
	f.need(len(p.Scenarios) > 0, "scenarios: expected at least one")
	for i := range p.Scenarios {
		s := &p.Scenarios[i]
		first := slices.IndexFunc(p.Scenarios, func(x Scenario) bool { return x.Name == s.Name })
		f.need(s.Name != "" && first == i, "scenarios: got %q, expected a name of its own", s.Name)
		f.need(s.Length > 0, "scenarios: %s: got length %v, expected more than 0", s.Name, s.Length)
		f.need(s.Speeds == nil || areSpeeds(s.Speeds), "scenarios: %s: got speeds %v, expected numbers above 0", s.Name, s.Speeds)
		if err := loads.CheckCourse(s.Course); err != nil {
			f.need(false, "scenarios: %s: %w", s.Name, err)
		}
		if b := s.Bursts; b != nil {
			f.need(b.Calm > 0 && b.Burst > 0 && b.Load > 0, "scenarios: %s: got bursts %+v, expected more than 0", s.Name, *b)
		}
		if w := s.Slow; w != nil {
			f.need(w.Factor > 0 && 0 <= w.From && w.From < w.To && w.Servers > 0 && w.Servers <= len(p.speeds(s)), "scenarios: %s: got slow %+v", s.Name, *w)
		}
		if m := s.Mix; m != nil {
			f.need(m.Fits(len(p.Pages)), "scenarios: %s: got mix %+v, expected a share of each page, 1 in sum", s.Name, *m)
		}
	}
	for i := range p.Recorded {
		r := &p.Recorded[i]
		f.need(strings.HasPrefix(r.Name, "azure") || strings.HasPrefix(r.Name, "nasa"), "recorded: got %q, expected azure… or nasa…", r.Name)
		f.need(r.Length > 0 && r.Load > 0, "recorded: %s: got %v at %v per cent", r.Name, r.Length, r.Load)
		f.need(!strings.HasPrefix(r.Name, "azure") || len(r.Pages) == 2, "recorded: %s: got pages %v, expected two", r.Name, r.Pages)
		for _, name := range r.Pages {
			f.need(p.page(name) >= 0, "recorded: %s: got page %q, expected one of the pages", r.Name, name)
		}
	}
}

// speeds are those of a zone's servers in a scenario.
func (p *Params) speeds(s *Scenario) []float64 {
	if s.Speeds != nil {
		return s.Speeds
	}
	return p.System.Speeds
}
