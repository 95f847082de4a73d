package servers_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"penstock/consumers/decider/servers"
	"penstock/schemas/control"
)

// machine is a server of the simulated site, as the switch and the dispatcher see it.
type machine struct {
	name, zone string
	on         bool // it runs and gets requests
	wanted     bool
	ready      int // window in which one that starts is on
	inFlight   int
	changed    int // window in which a table last changed it
}

// site simulates a site in windows: its dispatchers follow the last table, and its switch
// turns a server off once nothing is in flight there.
type site struct {
	t        *testing.T
	policy   *servers.Policy
	rng      *rand.Rand
	seconds  float64
	machines []*machine
	weights  map[string]float64
	waiting  map[string]int
	epoch    uint64

	came, done, cut, changes int
	least                    int
	cost, penalty            float64
	last                     int // window of the last change
}

const (
	slots   = 16
	service = 2.0 // s of a request
)

func (s *site) window(n int, rate float64) {
	s.serve(n)
	r := rows{}
	s.arrive(rate, r)
	o := step(s.t, s.policy, n, r, act())
	for i := range o.Commands {
		s.follow(n, &o.Commands[i])
	}
}

// serve ends what is in flight, starts and stops machines, and tells of it.
func (s *site) serve(n int) {
	var settled, pending bool
	for _, m := range s.machines {
		s.done += m.inFlight
		m.inFlight = 0
		switch {
		case m.wanted && !m.on && n >= m.ready:
			m.on, settled = true, true
		case !m.wanted && m.on && m.inFlight == 0:
			m.on, settled = false, true
		case m.wanted != m.on:
			pending = true
		}
	}
	if settled && !pending {
		s.policy.Apply(&control.Outcome{Kind: control.Servers, Scope: "east", Epoch: s.epoch, Status: control.Done, Target: control.SwitchTarget})
	}
}

// arrive gives a window's requests to the zones by their weights, and each zone's to the
// servers that are on, as many as they can do.
func (s *site) arrive(rate float64, r rows) {
	mean := rate * s.seconds
	n := max(0, int(math.Round(mean+math.Sqrt(mean)*s.rng.NormFloat64())))
	s.came += n
	for _, zone := range []string{"a", "b"} {
		s.waiting[zone] += int(math.Round(float64(n) * s.weights[zone]))
	}
	s.waiting["a"] += n - int(math.Round(float64(n)*s.weights["a"])) - int(math.Round(float64(n)*s.weights["b"]))
	running := 0
	for _, zone := range []string{"a", "b"} {
		var open []*machine
		for _, m := range s.machines {
			if m.zone == zone && m.on && m.wanted {
				open = append(open, m)
			}
			if m.zone == zone && (m.on || m.wanted) {
				s.cost += s.seconds
				if m.wanted {
					running++
				}
			}
		}
		for i, m := range open {
			most := int(slots * s.seconds / service)
			share := s.waiting[zone] / (len(open) - i)
			took := min(most, share)
			left := share - took // Waits for the next window.
			s.waiting[zone] -= took
			m.inFlight = min(slots, int(float64(took)*service/s.seconds))
			s.done += took - m.inFlight
			late := float64(left) * s.seconds
			s.penalty += late
			r.add("east", m.name, "dynamic", map[string]int64{"requests": int64(took), "served": int64(took), "service_us": int64(float64(took) * service * 1e6), "limited": int64(took), "overdue_us": int64(late * 1e6)})
			r.add("east", m.name, "", map[string]int64{"gauges": int64(s.seconds), "in_service": int64(float64(took) * service), "queued": int64(float64(left) * s.seconds), "potential_us": int64(late * 1e6)})
		}
	}
	s.least = min(s.least, running)
}

// follow takes a table as dispatchers and the switch do.
func (s *site) follow(n int, c *control.Command) {
	s.epoch++
	s.weights = c.Servers.ZoneWeights
	changed := false
	cool := int(s.cooldown() / s.seconds)
	for _, m := range s.machines {
		wanted := slices.Contains(c.Servers.On, m.name)
		if wanted == m.wanted {
			continue
		}
		if s.changes > 0 && n-m.changed < cool && m.changed >= 0 {
			s.t.Errorf("%s is switched in windows %d and %d", m.name, m.changed, n)
		}
		m.wanted, m.changed, changed = wanted, n, true
		if m.ready = n + 2; wanted && m.on {
			m.ready = n
		}
	}
	if changed {
		if s.changes > 0 && n-s.last < cool {
			s.t.Errorf("changes in windows %d and %d, inside a cooldown", s.last, n)
		}
		s.changes++
		s.last = n
	}
	s.policy.Apply(&control.Outcome{Kind: control.Servers, Scope: "east", Epoch: s.epoch, Status: control.Done, Target: "entry"})
}

func (s *site) cooldown() float64 { return (5 * time.Minute).Seconds() }

// TestAWeekOfSite is a week of a site of two zones, in windows of a minute: no on/off pair inside
// the cooldown, never below the least, no request cut, and a fraction of the cost of all
// servers; with each policy.
func TestAWeekOfSite(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{servers.Penalty, servers.Forecast} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			c := servers.Config{Policy: policy, Window: time.Minute, Cooldown: 5 * time.Minute, StartDelay: time.Minute, Least: 2, Sites: []servers.Site{{Name: "east"}}}
			s := &site{t: t, rng: rand.New(rand.NewPCG(1, 2)), seconds: 60, weights: map[string]float64{"a": 0.5, "b": 0.5}, waiting: map[string]int{}, least: 8}
			for _, z := range []string{"a", "b"} {
				zone := servers.Zone{Name: z}
				for _, n := range []string{"1", "2", "3", "4"} {
					zone.Servers = append(zone.Servers, servers.Server{Name: z + n})
					s.machines = append(s.machines, &machine{name: z + n, zone: z, on: true, wanted: true, changed: -1})
				}
				c.Sites[0].Zones = append(c.Sites[0].Zones, zone)
			}
			var err error
			if s.policy, err = servers.New(c); err != nil {
				t.Fatal(err)
			}
			const day = 24 * 60
			for n := range 7 * day {
				s.window(n, 5+40*(1-math.Cos(2*math.Pi*float64(n%day)/day))/2)
			}
			for n := 7 * day; n < 7*day+20; n++ { // No more come.
				s.window(n, 0)
			}
			all := 8.0 * 7 * 86400
			t.Logf("%d requests, %d changes, cost %.0f of %.0f, penalty %.0f", s.came, s.changes, s.cost, all, s.penalty)
			if s.came != s.done || s.cut > 0 {
				t.Errorf("%d requests came, %d were answered and %d were cut", s.came, s.done, s.cut)
			}
			if s.least < 2 {
				t.Errorf("%d servers ran, expected 2 at least", s.least)
			}
			if s.changes < 7*4 || s.changes > 7*60 {
				t.Errorf("%d changes, expected the load to be followed without flapping", s.changes)
			}
			if s.cost+s.penalty > 0.9*all {
				t.Errorf("cost %.0f and penalty %.0f, expected nine tenths of %.0f at most", s.cost, s.penalty, all)
			}
		})
	}
}
