package split_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"penstock/consumers/decider/split"
)

func TestASnapshotIsWholeOrRefused(t *testing.T) {
	w := dayOf(t, split.Greedy, 3)
	for range 60 {
		w.step(act())
	}
	var b bytes.Buffer
	if err := w.policy.Snapshot(&b); err != nil {
		t.Fatal(err)
	}
	body := b.Bytes()
	try := func(what string, body []byte) {
		p, err := split.Parse(w.policy.Config())
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Restore(bytes.NewReader(body)); !errors.Is(err, split.ErrSnapshot) {
			t.Errorf("%s: got %v, expected ErrSnapshot", what, err)
		}
	}
	try("nothing", nil)
	try("another format", append([]byte("x"), body...))
	for _, n := range []int{20, len(body) / 3, len(body) - 1} {
		try("cut off", body[:n])
	}
	for _, at := range []int{25, len(body) / 2, len(body) - 5} {
		other := bytes.Clone(body)
		other[at] ^= 0x10
		try("a bit flipped", other)
	}
}

// A snapshot is read under another configuration: what still fits is kept.
func TestASnapshotOfAnEarlierConfiguration(t *testing.T) {
	w := dayOf(t, split.Greedy, 3)
	for range 60 {
		w.step(act())
	}
	var b bytes.Buffer
	if err := w.policy.Snapshot(&b); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]split.Config{
		"another order and one more": {Sites: sitesOf("north", "west", "east")},
		"one less":                   {Sites: sitesOf("west")},
		"another resolution":         {Sites: sitesOf("east", "west"), Resolution: 256},
		"another history":            {Sites: sitesOf("east", "west"), History: 2},
		"another width":              {Sites: sitesOf("east", "west"), Window: 30_000_000_000},
		"another policy":             {Sites: sitesOf("east", "west"), Policy: split.LP},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := split.New(c)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Restore(bytes.NewReader(b.Bytes())); err != nil {
				t.Fatal(err)
			}
			if _, ok := p.Explain("cart"); !ok {
				t.Error("cart is forgotten")
			}
			again := dayOf(t, split.Greedy, 9)
			again.policy, again.width = p, p.Width()
			if again.width == w.width {
				again.n = w.n
			}
			if c.Resolution != 0 {
				return // its tables are of other parts than check expects
			}
			for range 30 {
				again.step(act())
			}
			restarted(t, p)
		})
	}
}

func TestConfigurationsWithFaults(t *testing.T) {
	sites := sitesOf("east", "west")
	for _, c := range []struct {
		config split.Config
		want   string
	}{
		{split.Config{}, `sites: got "0", expected 1 to 256`},
		{split.Config{Sites: sites, Policy: "best"}, `policy: got "best", expected greedy, lp, closest, redirect or locality-failover`},
		{split.Config{Sites: sitesOf("east", "east")}, `sites[1].name: got "east", expected a name of its own of 1 to 1024 bytes`},
		{split.Config{Sites: sites, Window: 15_000_000_000}, `window: got "15s", expected a multiple of 10s`},
		{split.Config{Sites: sites, History: 65}, `history: got "65", expected 1 to 64 windows`},
		{split.Config{Sites: sites, MinSamples: -1}, `min_samples: got "-1", expected at least 1`},
		{split.Config{Sites: sites, Damping: 1.5}, `damping: got "1.5", expected more than 0, at most 1`},
		{split.Config{Sites: sites, MaxStep: split.Step{Down: -1}}, `max_step.down: got "-1", expected more than 0, at most 1`},
		{split.Config{Sites: sites, TTL: 1}, `ttl: got "1ns", expected at least two windows`},
		{split.Config{Sites: sites, Resolution: 5}, `resolution: got "5", expected 10 to 1,000,000`},
		{split.Config{Sites: sites, Probes: split.Probing{Share: 0.2}}, `probes.share: got "0.2", expected at most 0.1`},
		{split.Config{Sites: sites, Components: []split.Component{{Name: "entry"}}}, `components[0].name: got "entry", expected a name of its own, and not entry`},
		{split.Config{Sites: sites, Components: []split.Component{{Name: "db", Pin: []string{"mars"}}}}, `components[0].pin[0]: got "mars", expected the name of a site`},
		{split.Config{Sites: sites, Components: []split.Component{{Name: "db", Pin: []string{"east"}, Sites: []string{"west"}}}}, `components[0]: got "db", expected a site that sites, pin and residency leave`},
		{split.Config{Sites: sites, Components: []split.Component{{Name: "db", Capacity: map[string]float64{"east": -1}}}}, `components[0].capacity.east: got "-1", expected 0 or more calls a second`},
		{split.Config{Sites: sites, Residency: []split.Rule{{Match: "x"}}}, `residency[0]: got "x", expected a pattern and sites`},
		{split.Config{Sites: sites, Colocate: [][]string{{"a"}}}, `colocate[0]: got "1", expected two components or more`},
		{split.Config{Sites: sites, Links: []split.Link{{From: "east", To: "mars"}}}, `links[0].to: got "mars", expected the name of a site`},
		{split.Config{Sites: sites, Egress: map[string]float64{"mars": 1}}, `egress: got "mars", expected the name of a site`},
	} {
		_, err := split.New(c.config)
		if !errors.Is(err, split.ErrConfig) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v\nexpected %s", err, c.want)
		}
	}
	if _, err := split.Parse([]byte(`{"sites":[{"name":"east"}],"polcy":"lp"}`)); !errors.Is(err, split.ErrConfig) {
		t.Errorf("an unknown field: %v", err)
	}
}

// Weights never add up to zero, with one, two and three replicas that are all
// slow, fail, or both (P31).
func TestAllReplicasBad(t *testing.T) {
	for sites := 1; sites <= 3; sites++ {
		for _, policy := range split.Policies {
			names := []string{"east", "west", "north"}[:sites]
			w := newWorld(t, split.Config{Policy: policy, Sites: sitesOf(names...), Cooldown: -1})
			w.edges = [][2]string{{"", "web"}, {"web", "db"}}
			w.rate = func(int, string) float64 { return 20 }
			w.network = near
			w.service = func(n int, _, _ string, _ float64) float64 {
				if n > 10 {
					return 2_000_000
				}
				return 5000
			}
			for n := range 60 {
				op := act()
				if n > 30 {
					op.Evacuate = names // nowhere to go: nobody leaves
				}
				w.step(op) // checks the sum of every row of every table
				for k, shares := range w.force {
					var sum float64
					for _, x := range shares {
						sum += x
					}
					if sum < 0.9999 {
						t.Fatalf("%s, %d sites, window %d: %s adds up to %v", policy, sites, n, k, sum)
					}
				}
			}
		}
	}
}
