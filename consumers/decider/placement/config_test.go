package placement

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"penstock/consumers/decider"
	"penstock/schemas/control"
)

func goodConfig() Config {
	return Config{Sites: []Site{
		{Name: "east", Lat: 0, Lon: 10, Capacity: 100}, {Name: "west", Lat: 0, Lon: 0, Capacity: 200},
	}}
}

func TestEveryFaultOfAConfigurationIsNamed(t *testing.T) {
	for _, c := range []struct {
		name string
		with func(*Config)
		want []string
	}{
		{"nothing", func(c *Config) { *c = Config{} }, []string{"sites: got 0, expected 1 to 4096 sites"}},
		{"site", func(c *Config) { c.Sites[1] = Site{Lat: 91, Lon: math.NaN()} }, []string{
			"sites[1].name", "sites[1].lat: got 91", "sites[1].lon: got NaN", "sites[1].capacity: got 0",
		}},
		{"twice", func(c *Config) { c.Sites[1].Name = "east" }, []string{"sites[1].name: got east, expected a name that no other site has"}},
		{"alpha", func(c *Config) { c.Alpha = -1 }, []string{"alpha: got -1"}},
		{"beta", func(c *Config) { c.Beta = math.Inf(1) }, []string{"beta: got +Inf", "alpha + beta"}},
		{"sum", func(c *Config) { c.Alpha, c.Beta = 9e5, 2e5 }, []string{"alpha + beta: got 1.1e+06, expected at most 1e+06"}},
		{"shares", func(c *Config) { c.Headroom, c.TieTolerance = 1, math.NaN() }, []string{"headroom: got 1", "tie_tolerance: got NaN"}},
		{"choices", func(c *Config) { c.Place, c.Traffic = "home", "both" }, []string{"place: got home, expected latest or mean", "traffic: got both"}},
		{"window", func(c *Config) { c.Window = time.Millisecond }, []string{"window: got 1ms"}},
		{
			"guardrails",
			func(c *Config) { c.Cooldown, c.MinRequests, c.Limits = -1, -1, Limits{-1, -1} },
			[]string{"cooldown", "limits.moves", "limits.bytes", "min_requests"},
		},
		{"residency", func(c *Config) { c.Residency = []Rule{{"", nil}, {"a*", []string{"mars"}}} }, []string{
			"residency[0].match", "residency[0].sites: got none", "residency[1].sites[0]: got mars",
		}},
		{"friends", func(c *Config) { c.Friends = []Friend{{"a", "a", 1}, {"a", "b", -1}} }, []string{"friends[0]", "friends[1].level"}},
		{"locations", func(c *Config) {
			c.Locations = map[string]control.Location{"": {Site: "east"}, "a": {Site: "mars"}}
		}, []string{`locations[""]: got "", expected an owner`, `locations["a"].site: got mars`}},
		{"stored", func(c *Config) {
			c.Locations = map[string]control.Location{"a": {Site: "east"}}
			c.Stored = map[string]int64{"a": -1, "b": 1}
		}, []string{`stored["a"]: got -1, expected 0 or more`, `stored["b"]: got 1`}},
		{"policy", func(c *Config) { c.Policy, c.BackOff = "best", 65 }, []string{"policy: got best, expected tmatch or optimal", "back_off: got 65"}},
		{
			"objective",
			func(c *Config) {
				c.Objective = Objective{Overload: -1, PerGB: -1, PerUSD: math.Inf(1), Margin: math.NaN()}
			},
			[]string{"objective.overload: got -1", "objective.per_gb: got -1", "objective.per_usd: got +Inf", "objective.margin: got NaN"},
		},
		{"egress", func(c *Config) { c.Egress = map[string]float64{"mars": 1, "east": -1} }, []string{`egress["east"]: got -1`, `egress["mars"]: got mars`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := goodConfig()
			c.with(&config)
			_, err := New(config)
			if !errors.Is(err, ErrConfig) {
				t.Fatalf("got error %v", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error lacks %q:\n%v", want, err)
				}
			}
			if lines := strings.Count(err.Error(), "\n") + 1; lines != len(c.want) {
				t.Errorf("%d faults, expected %d:\n%v", lines, len(c.want), err)
			}
		})
	}
}

func TestAlphaOrBetaMayBeZero(t *testing.T) {
	for _, c := range [][4]float64{{0, 0, 0.3, 0.7}, {0, 2, 0, 2}, {2, 0, 2, 0}, {0.5, 3, 0.5, 3}} {
		config := goodConfig()
		config.Alpha, config.Beta = c[0], c[1]
		p, err := New(config)
		if err != nil || p.config.Alpha != c[2] || p.config.Beta != c[3] {
			t.Errorf("alpha %v, beta %v: %v", c[0], c[1], err)
		}
	}
}

// TestConfigurationsOfBeforeKeepTheirBytes: the digest of a configuration is in
// every record.
func TestConfigurationsOfBeforeKeepTheirBytes(t *testing.T) {
	const want = `{"sites":[{"name":"east","lat":0,"lon":10,"capacity":100},{"name":"west","lat":0,"lon":0,"capacity":200}],` +
		`"window":3600000000000,"alpha":0.3,"beta":0.7,"headroom":0,"tie_tolerance":0,"place":"latest","traffic":"owner",` +
		`"limits":{},"cooldown":0,"min_requests":0}`
	for _, policy := range []string{"", TMatch} {
		config := goodConfig()
		config.Policy = policy
		p, err := New(config)
		if err != nil || string(p.Config()) != want {
			t.Errorf("policy %q: %v\n%s", policy, err, p.Config())
		}
	}
	config := goodConfig()
	config.Policy = Optimal
	p, err := New(config)
	const more = `"place":"mean","traffic":"owner","limits":{},"cooldown":0,"min_requests":0,"policy":"optimal",` +
		`"objective":{"overload":100,"per_gb":1,"per_usd":1,"margin":0.02},"back_off":64}`
	if err != nil || !strings.HasSuffix(string(p.Config()), more) {
		t.Errorf("policy optimal: %v\n%s", err, p.Config())
	}
	again, err := Parse(p.Config())
	if err != nil || string(again.Config()) != string(p.Config()) {
		t.Errorf("%v\n%s", err, again.Config())
	}
	config.Objective = Objective{Margin: 0.5}
	if p, err = New(config); err != nil || p.objective != (Objective{Overload: 100, Margin: 0.5}) {
		t.Errorf("an objective with a margin alone is %+v: %v", p.objective, err)
	}
}

func TestAConfigurationComesBackFromItsJSON(t *testing.T) {
	config := goodConfig()
	config.Residency = []Rule{{"a*", []string{"west"}}}
	config.Friends = []Friend{{"a", "b", 0}}
	config.Locations = map[string]control.Location{"b": {Site: "west", State: control.Live}, "a": {Site: "east", State: control.Live, Version: 3}}
	config.Cooldown = 3 * time.Hour
	p, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse(p.Config())
	if err != nil {
		t.Fatal(err)
	}
	if string(again.Config()) != string(p.Config()) || again.Digest() != p.Digest() {
		t.Errorf("got %s, want %s", again.Config(), p.Config())
	}
	for _, bad := range []string{``, `{`, `{"sites":[],"colour":"red"}`, `{"sites":[]}`, `{"sites":{}}`} {
		if _, err := Parse([]byte(bad)); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: got error %v", bad, err)
		}
	}
	var policy decider.Policy = p
	if policy.Kind() != control.Placement || len(policy.Groups()) != 1 || policy.Groups()[0] != "owners" || policy.Width() != time.Hour {
		t.Errorf("kind %v, groups %v, width %v", policy.Kind(), policy.Groups(), policy.Width())
	}
}

func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, s string
		want       bool
	}{
		{"*", "", true},
		{"*", "a/b", true},
		{"eu-*", "eu-", true},
		{"eu-*", "eu", false},
		{"eu-*", "EU-1", false},
		{"*@x.org", "me@x.org", true},
		{"*@x.org", "me@x.orga", false},
		{"a?c", "abc", true},
		{"a?c", "ac", false},
		{"a*b*c", "a-b-b-c", true},
		{"a*b*c", "a-c-b", false},
		{"", "a", false},
		{"é*", "école", true},
		{"[a]", "a", false},
	} {
		if got := matches(c.pattern, c.s); got != c.want {
			t.Errorf("%q matches %q: %v", c.pattern, c.s, got)
		}
	}
	r := NewResidency(goodConfig().Sites, []Rule{{"eu-it*", []string{"west"}}, {"eu-*", []string{"east", "west"}}})
	if a := r.Allowed("eu-it-1"); a[0] || !a[1] {
		t.Errorf("the first rule that matches binds: got %v", a)
	}
	if a := r.Allowed("us"); !a[0] || !a[1] {
		t.Errorf("an owner without a rule may be anywhere: got %v", a)
	}
}
