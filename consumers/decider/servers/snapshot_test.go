package servers_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"penstock/consumers/decider/servers"
	"penstock/schemas/control"
)

// config is two sites, one of two zones.
func config() servers.Config {
	return servers.Config{
		Sites: []servers.Site{
			{Name: "east", Zones: []servers.Zone{
				{Name: "a", Servers: []servers.Server{{Name: "a1"}, {Name: "a2", Off: true}}},
				{Name: "b", Servers: []servers.Server{{Name: "b1"}, {Name: "b2", Off: true}}},
			}},
			{Name: "west", Zones: []servers.Zone{{Name: "w", Servers: []servers.Server{{Name: "w1"}, {Name: "w2"}}}}},
		},
		Policy: servers.Forecast, Slots: 4, Cooldown: 5 * time.Second, StartDelay: 2 * time.Second, Season: time.Minute,
	}
}

// load is what two sites do in window n: east is late in every other half minute.
func load(n int) rows {
	r := rows{}
	for _, s := range []struct{ site, server string }{{"east", "a1"}, {"east", "b1"}, {"west", "w1"}, {"west", "w2"}} {
		late := int64(0)
		if s.site == "east" && n/30%2 == 1 {
			late = 2_000_000
		}
		r.add(s.site, s.server, "dynamic", map[string]int64{"requests": 10, "served": 10, "service_us": 3_000_000, "limited": 10, "overdue_us": late})
		r.add(s.site, s.server, "", map[string]int64{"gauges": 1, "in_service": 3, "queued": late / 500_000, "potential_us": late})
	}
	return r
}

// busy is a policy that has seen a few windows.
func busy(t testing.TB, c servers.Config) *servers.Policy {
	p, err := servers.New(c)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 100 {
		step(t, p, n, load(n), act())
		p.Apply(&control.Outcome{Kind: control.Servers, Scope: "east", Epoch: uint64(n / 20), Status: control.Done, Target: control.SwitchTarget})
	}
	return p
}

func TestASnapshotIsWholeOrRefused(t *testing.T) {
	t.Parallel()
	p := busy(t, config())
	var b bytes.Buffer
	if err := p.Snapshot(&b); err != nil {
		t.Fatal(err)
	}
	body := b.Bytes()
	try := func(what string, body []byte) {
		q, err := servers.Parse(p.Config())
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Restore(bytes.NewReader(body)); !errors.Is(err, servers.ErrSnapshot) {
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

// After a restart between any two windows the same is decided.
func TestARestartChangesNothing(t *testing.T) {
	t.Parallel()
	one, err := servers.New(config())
	if err != nil {
		t.Fatal(err)
	}
	two, _ := servers.New(config())
	changes := 0
	for n := range 200 {
		a, b := step(t, one, n, load(n), act()), step(t, two, n, load(n), act())
		if x, y := printed(n, a), printed(n, b); x != y {
			t.Fatalf("%s\nafter a restart\n%s", x, y)
		}
		changes += len(a.Commands)
		two = restarted(t, two)
		if one.Digest() != two.Digest() {
			t.Fatalf("window %d: digests differ", n)
		}
	}
	if changes < 10 {
		t.Errorf("%d commands: too little happened", changes)
	}
}

// A snapshot is read under another configuration: what still fits is kept.
func TestASnapshotOfAnEarlierConfiguration(t *testing.T) {
	t.Parallel()
	p := busy(t, config())
	explained := func(q *servers.Policy) *servers.Explanation {
		e, ok := q.Explain("east")
		if !ok {
			t.Fatal("east is not known")
		}
		return e.(*servers.Explanation)
	}
	before := explained(p)
	for name, change := range map[string]func(c *servers.Config){
		"another order": func(c *servers.Config) { c.Sites[0], c.Sites[1] = c.Sites[1], c.Sites[0] },
		"a site less":   func(c *servers.Config) { c.Sites = c.Sites[:1] },
		"a site more": func(c *servers.Config) {
			c.Sites = append(c.Sites, servers.Site{Name: "north", Zones: c.Sites[1].Zones})
		},
		"zones in turn": func(c *servers.Config) { z := c.Sites[0].Zones; z[0], z[1] = z[1], z[0] },
		"a server more": func(c *servers.Config) {
			z := &c.Sites[0].Zones[1]
			z.Servers = append(z.Servers, servers.Server{Name: "b3"})
		},
		"a server less":   func(c *servers.Config) { z := &c.Sites[0].Zones[1]; z.Servers = z.Servers[:1] },
		"a zone less":     func(c *servers.Config) { c.Sites[0].Zones = c.Sites[0].Zones[:1] },
		"another width":   func(c *servers.Config) { c.Window = 10 * time.Second },
		"no forecast":     func(c *servers.Config) { c.Policy = servers.Penalty },
		"another hold":    func(c *servers.Config) { c.Hold = 1 },
		"another season":  func(c *servers.Config) { c.Season = time.Hour },
		"servers as they": func(c *servers.Config) { c.Policy = servers.None },
	} {
		t.Run(name, func(t *testing.T) {
			c := config()
			change(&c)
			q, err := servers.New(c)
			if err != nil {
				t.Fatal(err)
			}
			moved(t, p, q)
			if v := explained(q); v.Epoch != before.Epoch || v.Table == nil {
				t.Errorf("east is forgotten: %+v", v)
			}
			for n := 100; n < 130; n++ {
				step(t, q, n, load(n), act())
				q = restarted(t, q)
			}
		})
	}
}

func TestConfigurationsWithFaults(t *testing.T) {
	t.Parallel()
	with := func(change func(c *servers.Config)) servers.Config {
		c := config()
		change(&c)
		return c
	}
	for _, c := range []struct {
		config servers.Config
		want   string
	}{
		{servers.Config{}, `sites: got "0", expected 1 to 1024`},
		{with(func(c *servers.Config) { c.Policy = "best" }), `policy: got "best", expected none, penalty or forecast`},
		{with(func(c *servers.Config) { c.Window = 1500 * time.Millisecond }), `window: got "1.5s", expected a multiple of 1s`},
		{with(func(c *servers.Config) { c.Penalty = -1 }), `penalty: got "-1", expected above 0`},
		{with(func(c *servers.Config) { c.Slots = -1 }), `slots: got "-1", expected 1 to 1,048,576`},
		{with(func(c *servers.Config) { c.ServerCost = -1 }), `server_cost: got "-1", expected above 0`},
		{with(func(c *servers.Config) { c.Least = -1 }), `least: got "-1", expected at least 1`},
		{with(func(c *servers.Config) { c.Least, c.Most = 3, 2 }), `most: got "2", expected least or more, 0: all`},
		{with(func(c *servers.Config) { c.WeightChange = 1 }), `weight_change: got "1", expected below 1`},
		{with(func(c *servers.Config) { c.TTL = time.Second }), `ttl: got "1s", expected at least two windows`},
		{with(func(c *servers.Config) { c.Classes = []servers.Class{{Name: "a"}, {Name: "a"}} }), `classes[1].name: got "a", expected a name of its own`},
		{with(func(c *servers.Config) { c.Classes = []servers.Class{{Name: "a", Limit: -1}} }), `classes[0].limit: got "-1ns", expected above 0`},
		{with(func(c *servers.Config) { c.Sites[1].Name = "east" }), `sites[1].name: got "east", expected a name of its own`},
		{with(func(c *servers.Config) { c.Sites[0].Zones = nil }), `sites[0].zones: got "0", expected 1 to 256`},
		{with(func(c *servers.Config) { c.Sites[0].Zones[1].Name = "a" }), `sites[0].zones[1].name: got "a", expected a name of its own`},
		{with(func(c *servers.Config) { c.Sites[0].Zones[1].Servers = nil }), `sites[0].zones[1].servers: got "0", expected at least one`},
		{with(func(c *servers.Config) { c.Sites[0].Zones[1].Servers[0].Name = "a1" }), `sites[0].zones[1].servers[0].name: got "a1", expected a name of its own`},
		{with(func(c *servers.Config) { c.Sites[1].Zones[0].Servers = []servers.Server{{Name: "w", Off: true}} }), `sites[1].zones: got "no server that is on", expected at least one`},
		{with(func(c *servers.Config) { c.Sites[1].Least = 3 }), `least: got "3", expected 1 to the number of servers`},
		{with(func(c *servers.Config) { c.Hysteresis = 1 }), `hysteresis: got "1", expected above 0, below 1`},
		{with(func(c *servers.Config) { c.Sites[0].Zones[0].Servers[0].Cost = -1 }), `servers[0].cost: got "-1", expected above 0`},
	} {
		_, err := servers.New(c.config)
		if !errors.Is(err, servers.ErrConfig) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v\nexpected %s", err, c.want)
		}
	}
	if _, err := servers.Parse([]byte(`{"sites":[],"polcy":"none"}`)); !errors.Is(err, servers.ErrConfig) {
		t.Errorf("an unknown field: %v", err)
	}
}

// In any mode but act, and with a freeze or a gap, tables and servers stay as if nothing had
// moved.
func TestWithoutActNothingMoves(t *testing.T) {
	t.Parallel()
	for i, op := range []control.Operator{{Mode: control.Observe}, {Mode: control.Advise}, {Mode: control.Act, Frozen: true}} {
		p, err := servers.New(config())
		if err != nil {
			t.Fatal(err)
		}
		advice := 0
		for n := range 90 {
			advice += len(step(t, p, n, load(n), op).Commands)
		}
		e, _ := p.Explain("east")
		v := e.(*servers.Explanation)
		if v.Table != nil || v.Epoch != 0 {
			t.Errorf("%+v: a table is in force: %+v", op, v)
		}
		for _, z := range v.Zones {
			if z.Servers[0].State != "on" || z.Servers[1].State != "off" {
				t.Errorf("%+v: servers have moved: %+v", op, z.Servers)
			}
		}
		if most := [...]int{0, 12, 90}[i]; advice > most {
			t.Errorf("%+v: %d pieces of advice", op, advice)
		}
	}
}

// A server's name leads to its site.
func TestExplainByTheNameOfAServer(t *testing.T) {
	t.Parallel()
	p := busy(t, config())
	for name, want := range map[string]string{"east": "east", "b2": "east", "w1": "west", "c": ""} {
		e, ok := p.Explain(name)
		if ok != (want != "") || ok && e.(*servers.Explanation).Site != want {
			t.Errorf("%s: %+v", name, e)
		}
	}
	if got := fmt.Sprint(p.Sites()); got != "[east west]" {
		t.Errorf("sites %s", got)
	}
}

// Whatever stands in a sealed snapshot, it is refused or can be decided with.
func FuzzRestore(f *testing.F) {
	const magic = "penstock/servers/1\n"
	add := func(p *servers.Policy) {
		var b bytes.Buffer
		if err := p.Snapshot(&b); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes()[len(magic) : b.Len()-sha256.Size])
	}
	add(busy(f, config()))
	first, err := servers.New(config())
	if err != nil {
		f.Fatal(err)
	}
	add(first)
	f.Fuzz(func(t *testing.T, body []byte) {
		whole := append([]byte(magic), body...)
		sum := sha256.Sum256(whole)
		q, err := servers.New(config())
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Restore(bytes.NewReader(append(whole, sum[:]...))); err != nil {
			if !errors.Is(err, servers.ErrSnapshot) {
				t.Fatal(err)
			}
			return
		}
		for n := 100; n < 112; n++ {
			step(t, q, n, load(n), act())
		}
		q.Explain("east")
		restarted(t, q)
	})
}

func BenchmarkDecide(b *testing.B) {
	p := busy(b, config())
	tables := load(0)
	b.ReportAllocs()
	for n := 100; b.Loop(); n++ {
		step(b, p, n, tables, act())
		p.Digest()
	}
}
