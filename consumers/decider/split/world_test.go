package split_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"penstock/consumers/decider"
	"penstock/consumers/decider/split"
	"penstock/schemas/control"
	"penstock/schemas/window"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// call is what a window sees of one link.
type call struct {
	from, fromSite, to, toSite string
	requests, errors           int64
	service, network           float64 // µs, means
	unsampled                  bool
}

// tableOf makes the delay rollup of a window.
func tableOf(n int, width time.Duration, calls []call) map[string]*window.Table {
	t := window.NewTable(window.Delay)
	start := epoch.Add(time.Duration(n) * width).UnixMicro()
	for _, c := range calls {
		if c.requests == 0 {
			continue
		}
		samples := c.requests
		if c.unsampled {
			samples = 0
		}
		var s, w window.Bins
		if samples > 0 {
			s.Add(int64(c.service), samples)
			w.Add(int64(c.network), samples)
		}
		t.Append(start, []string{c.from, c.fromSite, c.to, c.toSite}, []int64{
			c.requests, c.errors, int64(math.Round(c.service * float64(samples))), 0, int64(math.Round(c.network * float64(samples))), 0,
		}, s, w)
	}
	t.Sort()
	if t.Len() == 0 {
		return map[string]*window.Table{}
	}
	return map[string]*window.Table{window.Delay.Name: t}
}

func windowOf(n int, width time.Duration) control.Window {
	start := epoch.Add(time.Duration(n) * width)
	return control.Window{Start: start, End: start.Add(width)}
}

// world is an application: what calls cost, where they go, and what a window sees
// of it.
type world struct {
	t        testing.TB
	policy   *split.Policy
	width    time.Duration
	sites    []string
	rate     func(n int, site string) float64 // calls a second from outside
	edges    [][2]string
	service  func(n int, component, site string, load float64) float64 // µs
	network  func(n int, from, a, to, b string) float64                // µs
	delay    int                                                       // windows until a table is in force
	n        int
	force    map[string]map[string]float64 // from|site|to → site → share
	pending  []pendingTable
	probing  map[string]map[string]float64
	noise    *rand.Rand
	commands []control.Command
	last     decider.Output
	latency  float64 // mean over requests of the last window, µs
}

type pendingTable struct {
	at      int
	command control.Command
}

func newWorld(t testing.TB, c split.Config) *world {
	p, err := split.New(c)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, policy: p, width: p.Width(), force: map[string]map[string]float64{}, probing: map[string]map[string]float64{}}
	for _, s := range c.Sites {
		w.sites = append(w.sites, s.Name)
	}
	return w
}

func rowKey(from, site, to string) string { return from + "|" + site + "|" + to }

// shares of a row in force: without a table all calls stay at their site.
func (w *world) shares(from, site, to string) map[string]float64 {
	if s := w.force[rowKey(from, site, to)]; s != nil {
		return s
	}
	return map[string]float64{site: 1}
}

// step runs one window: traffic by the tables in force, then the decision.
func (w *world) step(op control.Operator) decider.Output {
	var keep []pendingTable
	for _, p := range w.pending {
		if p.at > w.n {
			keep = append(keep, p)
			continue
		}
		w.apply(p.command)
	}
	w.pending = keep
	calls := w.traffic()
	in := decider.Input{Window: windowOf(w.n, w.width), Tables: tableOf(w.n, w.width, calls), Operator: op}
	w.last = w.policy.Decide(in)
	for _, c := range w.last.Commands {
		w.commands = append(w.commands, c)
		check(w.t, c)
		if in.Acts() {
			w.pending = append(w.pending, pendingTable{w.n + 1 + w.delay, c})
		}
	}
	w.n++
	return w.last
}

func (w *world) apply(c control.Command) {
	from := c.Scope
	if from == "entry" {
		from = ""
	}
	for _, r := range c.Split.Table {
		shares := map[string]float64{}
		for _, x := range r.Ratios {
			shares[x.Site] = x.Share
		}
		w.force[rowKey(from, r.FromSite, r.To)] = shares
		delete(w.probing, rowKey(from, r.FromSite, r.To))
	}
	for _, p := range c.Split.Probes {
		k := rowKey(from, p.FromSite, p.To)
		if w.probing[k] == nil {
			w.probing[k] = map[string]float64{}
		}
		w.probing[k][p.Site] = p.Share
	}
}

// check is what every command must hold.
func check(t testing.TB, c control.Command) {
	t.Helper()
	c.Version, c.Kind, c.Epoch, c.Mode, c.TTL, c.Window = 1, control.Split, 1, control.Act, "10m0s", windowOf(0, 10*time.Second)
	body, err := control.Encode(c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := control.DecodeCommand(body); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	for _, r := range c.Split.Table {
		parts := 0
		for _, x := range r.Ratios {
			parts += int(math.Round(x.Share * 10_000))
		}
		if parts != 10_000 {
			t.Fatalf("%+v: %d parts", r, parts)
		}
	}
}

// traffic spreads a window's calls over the graph. Edges are listed callers first.
func (w *world) traffic() []call {
	seconds := w.width.Seconds()
	load := map[[2]string]float64{}
	type flow struct {
		edge [2]string
		a, b string
		x    float64
	}
	var flows []flow
	for _, e := range w.edges {
		for _, a := range w.sites {
			x := load[[2]string{e[0], a}]
			if e[0] == "" {
				x = w.rate(w.n, a)
			}
			if x <= 0 {
				continue
			}
			shares, probes := w.shares(e[0], a, e[1]), w.probing[rowKey(e[0], a, e[1])]
			for _, b := range w.sites {
				y := x*shares[b] + x*probes[b]
				if y > 0 {
					load[[2]string{e[1], b}] += y
					flows = append(flows, flow{e, a, b, y})
				}
			}
		}
	}
	var out []call
	var sum, entering float64
	for _, f := range flows {
		n := int64(math.Round(f.x * seconds))
		if w.noise != nil {
			n = int64(math.Round(f.x * seconds * (0.9 + 0.2*w.noise.Float64())))
		}
		c := call{
			from: f.edge[0], fromSite: f.a, to: f.edge[1], toSite: f.b, requests: n,
			service: w.service(w.n, f.edge[1], f.b, load[[2]string{f.edge[1], f.b}]), network: w.network(w.n, f.edge[0], f.a, f.edge[1], f.b),
		}
		if w.noise != nil {
			c.service *= 0.9 + 0.2*w.noise.Float64()
			c.network *= 0.9 + 0.2*w.noise.Float64()
		}
		sum += f.x * (c.service + c.network)
		if f.edge[0] == "" {
			entering += f.x
		}
		out = append(out, c)
	}
	if entering > 0 {
		w.latency = sum / entering
	}
	return out
}

func act() control.Operator { return control.Operator{Mode: control.Act} }

func sitesOf(names ...string) []split.Site {
	var out []split.Site
	for i, n := range names {
		out = append(out, split.Site{Name: n, Lon: float64(10 * i)})
	}
	return out
}

// near is the network of an application on two sites: 1 ms within one, 20 between.
func near(_ int, _, a, _, b string) float64 {
	if a == b {
		return 1000
	}
	return 20_000
}

func shop(t testing.TB, c split.Config) *world {
	w := newWorld(t, c)
	w.edges = [][2]string{{"", "web"}, {"web", "cart"}, {"web", "search"}, {"cart", "db"}}
	w.rate = func(int, string) float64 { return 50 }
	w.service = func(_ int, component, _ string, _ float64) float64 { return 5000 }
	w.network = near
	return w
}

func (w *world) share(from, site, to, at string) float64 { return w.shares(from, site, to)[at] }
