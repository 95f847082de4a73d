package splitting

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/goccy/go-yaml"

	"penstock/consumers/decider/split"
	"penstock/infra/examples"
)

// Params say what the experiment of split runs; infra/examples/experiment/split.yaml
// says what each is.
type Params struct {
	Version      int           `yaml:"version"`
	FirstSeed    uint64        `yaml:"first_seed"`
	Time         Time          `yaml:"time"`
	Arrivals     Arrivals      `yaml:"arrivals"`
	Network      Network       `yaml:"network"`
	Policies     []string      `yaml:"policies"`
	Told         float64       `yaml:"told"`
	MSPerUSD     float64       `yaml:"ms_per_usd"`
	Applications []Application `yaml:"applications"`
	Random       Random        `yaml:"random"`
	Faults       []Fault       `yaml:"faults"`
	Natural      Natural       `yaml:"natural"`
	Targets      Targets       `yaml:"targets"`
	Instances    Instances     `yaml:"instances"`
	Recorded     Recorded      `yaml:"recorded"`
}

// Time is simulated time.
type Time struct {
	Warm     time.Duration `yaml:"warm"`
	From     time.Duration `yaml:"from"`
	To       time.Duration `yaml:"to"`
	Length   time.Duration `yaml:"length"`
	Natural  time.Duration `yaml:"natural"`
	Feedback time.Duration `yaml:"feedback"`
	Deadline time.Duration `yaml:"deadline"`
	Queue    int           `yaml:"queue"`
}

// Arrivals is how requests come.
type Arrivals struct {
	Day    time.Duration `yaml:"day"`
	Swing  float64       `yaml:"swing"`
	Bursts struct {
		Every  time.Duration `yaml:"every"`
		Mean   time.Duration `yaml:"mean"`
		Factor float64       `yaml:"factor"`
	} `yaml:"bursts"`
}

// Network is what all links have in common.
type Network struct {
	Within  Way `yaml:"within"`
	Between Way `yaml:"between"`
}

// Way is a kind of link; its round trip is set within a site, and follows from the
// distance between two.
type Way struct {
	RTT    time.Duration `yaml:"rtt,omitempty"`
	Jitter time.Duration `yaml:"jitter"`
	Rate   float64       `yaml:"rate"`
}

// Place is a site.
type Place struct {
	Name   string  `yaml:"name"`
	Lat    float64 `yaml:"lat"`
	Lon    float64 `yaml:"lon"`
	Egress float64 `yaml:"egress"`
}

// Load is what an application gets.
type Load struct {
	Rate  float64 `yaml:"rate"`
	Heavy float64 `yaml:"heavy"`
	Users int     `yaml:"users"`
	Sites []Place `yaml:"sites"`
}

// Application is an application that is written down.
type Application struct {
	Name       string `yaml:"name"`
	Text       string `yaml:"text"`
	Focus      string `yaml:"focus"`
	Storage    string `yaml:"storage"`
	Load       `yaml:",inline"`
	Components []Component `yaml:"components"`
}

// Component is a part of an application; the first is called from outside.
type Component struct {
	Name    string        `yaml:"name"`
	Servers int           `yaml:"servers"` // at each site
	Service time.Duration `yaml:"service"`
	CV      float64       `yaml:"cv"`
	Heavy   float64       `yaml:"heavy,omitempty"`
	Keyed   bool          `yaml:"keyed,omitempty"`
	Calls   []Call        `yaml:"calls,omitempty"`
}

// Call is a call of a component.
type Call struct {
	To         string   `yaml:"to"`
	Light      *float64 `yaml:"light,omitempty"`       // none: 1
	HeavyCalls *float64 `yaml:"heavy_calls,omitempty"` // none: 1
	Times      int      `yaml:"times,omitempty"`       // 0: 1
	Bytes      int64    `yaml:"call"`
	Answer     int64    `yaml:"answer"`
}

// Random is what random applications are drawn from.
type Random struct {
	Name         string     `yaml:"name"`
	Text         string     `yaml:"text"`
	Components   int        `yaml:"components"`
	Reach        int        `yaml:"reach"`
	Second       float64    `yaml:"second"`
	Likely       [2]float64 `yaml:"likely"`
	Busy         [2]float64 `yaml:"busy"`
	Servers      [2]int     `yaml:"servers"`
	CV           [2]float64 `yaml:"cv"`
	HeavyService float64    `yaml:"heavy_service"`
	Bytes        [2]float64 `yaml:"bytes"`
	// Faults are the names of those that it meets; none: all.
	Faults []string `yaml:"faults,omitempty"`
	Load   `yaml:",inline"`
}

// Fault is one of PAPERS §4.3, or another.
type Fault struct {
	Name     string        `yaml:"name"`
	Text     string        `yaml:"text"`
	Servers  float64       `yaml:"servers,omitempty"`
	Latency  time.Duration `yaml:"latency,omitempty"`
	Heavy    float64       `yaml:"heavy,omitempty"`
	Between  time.Duration `yaml:"between,omitempty"`
	Within   time.Duration `yaml:"within,omitempty"`
	Arrivals float64       `yaml:"arrivals,omitempty"`
	Natural  bool          `yaml:"natural,omitempty"`
	// Targets says that the paper's figure is set beside ours.
	Targets bool `yaml:"targets,omitempty"`
}

// Natural is what replicas do by themselves.
type Natural struct {
	Bad     time.Duration `yaml:"bad"`
	Good    time.Duration `yaml:"good"`
	Latency time.Duration `yaml:"latency"`
	Slow    float64       `yaml:"slow"`
}

// Targets are the paper's figures.
type Targets struct {
	Faults  float64 `yaml:"faults"`
	Natural float64 `yaml:"natural"`
}

// Instances are random ones for greedy and the optimum.
type Instances struct {
	Count int    `yaml:"count"`
	Seed  uint64 `yaml:"seed"`
}

// Recorded is what is run with recorded arrivals.
type Recorded struct {
	Applications []string `yaml:"applications"`
	Faults       []string `yaml:"faults"`
}

// Default returns the parameters that the project comes with.
func Default() (Params, error) { return Decode(examples.SplitExperiment) }

// Decode reads parameters and checks them; unknown fields are faults. The error
// wraps ErrParams.
func Decode(data []byte) (Params, error) {
	var p Params
	if err := yaml.NewDecoder(bytes.NewReader(data), yaml.Strict()).Decode(&p); err != nil {
		return p, fmt.Errorf("%w: %w", ErrParams, err)
	}
	return p, p.check()
}

// check names every fault.
func (p *Params) check() error {
	var all []error
	need := func(ok bool, format string, args ...any) {
		if !ok {
			all = append(all, fmt.Errorf(format, args...))
		}
	}
	t := &p.Time
	need(p.Version == 1, "version: got %d, expected 1", p.Version)
	need(0 <= t.Warm && t.Warm <= t.From && t.From < t.To && t.To <= t.Length && t.Warm < t.Natural,
		"time: got warm %v, from %v, to %v, length %v, natural %v, expected them in this order", t.Warm, t.From, t.To, t.Length, t.Natural)
	need(t.Feedback > 0 && t.Feedback < 10*time.Second, "time.feedback: got %v, expected less than a window of 10 s", t.Feedback)
	need(t.Deadline > 0 && t.Queue > 0, "time: got a deadline of %v and queues of %d, expected more than 0", t.Deadline, t.Queue)
	need(p.Arrivals.Swing >= 0 && p.Arrivals.Swing < 1 && p.Arrivals.Day > 0, "arrivals: got a swing of %v in %v, expected 0 to 1", p.Arrivals.Swing, p.Arrivals.Day)
	need(p.Told > 0, "told: got %v, expected more than 0", p.Told)
	need(len(p.Policies) > 0 && p.Policies[0] == split.Greedy, "policies: got %q, expected greedy first, by which others are judged", p.Policies)
	for _, name := range p.Policies {
		need(slices.Contains(split.Policies, name), "policies: got %q, expected one of %q", name, split.Policies)
	}
	r := &p.Random
	need(r.Components >= 2 && r.Reach >= 1 && r.Servers[0] >= 1 && r.Servers[1] >= r.Servers[0] && r.Busy[0] > 0 && r.Busy[1] < 1 && r.Bytes[0] >= 1,
		"random: got %d components, a reach of %d, servers %v, loads %v, bytes %v", r.Components, r.Reach, r.Servers, r.Busy, r.Bytes)
	need(slices.ContainsFunc(p.Faults, func(f Fault) bool { return f.Name == calm }), "faults: got none of name %q, expected one, that others are compared with", calm)
	for i, f := range p.Faults {
		need(f.Name != "" && !slices.ContainsFunc(p.Faults[:i], func(x Fault) bool { return x.Name == f.Name }), "faults: got %q, expected a name of its own", f.Name)
	}
	need(p.Natural.Bad > 0 && p.Natural.Good > 0, "natural: got %v and %v, expected more than 0", p.Natural.Bad, p.Natural.Good)
	need(p.Instances.Count > 0, "instances.count: got %d, expected at least 1", p.Instances.Count)
	for _, a := range p.Recorded.Applications {
		need(slices.ContainsFunc(p.Applications, func(x Application) bool { return x.Name == a }), "recorded.applications: got %q, expected the name of one", a)
	}
	for _, f := range p.Recorded.Faults {
		need(slices.ContainsFunc(p.Faults, func(x Fault) bool { return x.Name == f }), "recorded.faults: got %q, expected the name of one", f)
	}
	for i := range p.Applications {
		_, err := p.Applications[i].build(&p.Network)
		need(err == nil, "applications: %w", err)
	}
	if len(all) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrParams, errors.Join(all...))
}
