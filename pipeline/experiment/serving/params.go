package serving

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"penstock/consumers/executor/dispatcher/pool"
	"penstock/infra/examples"
	"penstock/pipeline/experiment/serving/loads"
)

// Params say what the experiment of servers runs; infra/examples/experiment/servers.yaml
// says what each is.
type Params struct {
	Version     int            `yaml:"version"`
	FirstSeed   uint64         `yaml:"first_seed"`
	HeldOutSeed uint64         `yaml:"held_out_seed"`
	System      System         `yaml:"system"`
	Stations    loads.Stations `yaml:"stations"`
	Pages       []loads.Page   `yaml:"pages"`
	ServerCost  float64        `yaml:"server_cost"`
	Switching   Switching      `yaml:"switching"`
	Policies    []Policy       `yaml:"policies"`
	Scenarios   []Scenario     `yaml:"scenarios"`
	Recorded    []Recorded     `yaml:"recorded"`
	Targets     Targets        `yaml:"targets"`
}

type duration = time.Duration

// System is what all scenarios have in common.
type System struct {
	Zones     int       `yaml:"zones"`
	Speeds    []float64 `yaml:"speeds"`
	Databases int       `yaml:"databases"`
	InService int       `yaml:"in_service"`
	// Carried is the share of what the bottlenecks could do that servers carry.
	Carried    float64  `yaml:"carried"`
	Ramp       duration `yaml:"ramp"`
	Hop        duration `yaml:"hop"`
	FirstLevel string   `yaml:"first_level"`
}

// The rules of the first level.
const (
	ByLoad    = "load"
	ByPenalty = "penalty"
)

// Switching is the rule that turns servers on and off.
type Switching struct {
	Period      duration `yaml:"period"`
	StartDelay  duration `yaml:"start_delay"`
	Cooldown    duration `yaml:"cooldown"`
	Hold        int      `yaml:"hold"`
	Least       int      `yaml:"least"`
	Critical    float64  `yaml:"critical"`
	Hysteresis  float64  `yaml:"hysteresis"`
	Utilisation float64  `yaml:"utilisation"`
}

// Policy is one of the second-level switch, with its options (see pool.Options).
type Policy struct {
	Name      string   `yaml:"name"`
	Policy    string   `yaml:"policy,omitempty"` // of package pool; none: that of the name
	FreeFirst bool     `yaml:"free_first,omitempty"`
	Near      float64  `yaml:"near,omitempty"`
	Elapsed   bool     `yaml:"elapsed,omitempty"`
	Abreast   bool     `yaml:"abreast,omitempty"`
	Trial     duration `yaml:"trial,omitempty"`
}

// of is the policy in package pool.
func (p *Policy) of() pool.Policy { return pool.Policy(cmp.Or(p.Policy, p.Name)) }

// Scenario is a load, and what happens to servers under it.
type Scenario struct {
	Name string `yaml:"name"`
	Text string `yaml:"text"`
	// Overloaded has more to do for a time than its servers carry.
	Overloaded bool `yaml:"overloaded,omitempty"`
	// HeldOut was not looked at while the policy auto was built.
	HeldOut bool      `yaml:"held_out,omitempty"`
	Length  duration  `yaml:"length"`
	Speeds  []float64 `yaml:"speeds,omitempty"` // those of the system without
	// Course are seconds and per cents of the capacity.
	Course [][2]float64  `yaml:"course"`
	Bursts *loads.Bursts `yaml:"bursts,omitempty"`
	Slow   *Slow         `yaml:"slow,omitempty"`
	Mix    *loads.Mix    `yaml:"mix,omitempty"`
}

// Slow makes the first servers of the first zone slower for a time.
type Slow struct {
	Servers int      `yaml:"servers"`
	Factor  float64  `yaml:"factor"`
	From    duration `yaml:"from"`
	To      duration `yaml:"to"`
}

// Recorded is a scenario whose arrivals and sizes were recorded; it is held out.
type Recorded struct {
	Name       string   `yaml:"name"` // azure… or nasa…
	Overloaded bool     `yaml:"overloaded,omitempty"`
	Length     duration `yaml:"length"`
	Load       float64  `yaml:"load"` // per cent, mean of the recording
	// Pages are those of the recording's kinds; none: drawn by their shares.
	Pages []string `yaml:"pages,omitempty"`
}

// Targets are what issue 7 asks for.
type Targets struct {
	Overloaded int     `yaml:"overloaded"`
	Worse      float64 `yaml:"worse"`
	Auto       float64 `yaml:"auto"`
}

// Default returns the parameters that the project comes with.
func Default() (Params, error) { return Decode(examples.ServersExperiment) }

// Decode reads parameters and checks them; unknown fields are faults. The error wraps
// ErrParams.
func Decode(data []byte) (Params, error) {
	var p Params
	if err := yaml.NewDecoder(bytes.NewReader(data), yaml.Strict()).Decode(&p); err != nil {
		return p, fmt.Errorf("%w: %w", ErrParams, err)
	}
	return p, p.check()
}

// page is the index of the page of that name; -1 if there is none.
func (p *Params) page(name string) int {
	return slices.IndexFunc(p.Pages, func(x loads.Page) bool { return x.Name == name })
}

// kind is which recording it is.
func (r *Recorded) kind() string {
	if strings.HasPrefix(r.Name, azure) {
		return azure
	}
	return nasa
}

// The recordings.
const (
	azure = "azure"
	nasa  = "nasa"
)

// names of the policies, in order.
func (p *Params) names() []string {
	out := make([]string, len(p.Policies))
	for i := range p.Policies {
		out[i] = p.Policies[i].Name
	}
	return out
}
