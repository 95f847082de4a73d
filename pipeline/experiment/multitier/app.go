package multitier

import (
	"fmt"
	"math"
	"time"
)

// App is the application: components at sites, and the network between them.
type App struct {
	Sites      []Site
	Components []Component
	// Entry is the call of a request from outside.
	Entry Call
	// RTT is the round trip by from site and to site.
	RTT [][]time.Duration
	// Jitter is the mean of what one way takes more, and Rate what it carries a
	// second in bits, inside a site and between two.
	Within, Between Way
}

// Site is a site.
type Site struct {
	Name string
	// Egress is US dollars for a GB that leaves it for another site.
	Egress float64
}

// Way is what all links of a kind have in common.
type Way struct {
	Jitter time.Duration
	Rate   float64
}

// Component is a part of the application, the same at all its sites.
type Component struct {
	Name string
	// Servers by site; 0: it does not run there.
	Servers []int
	// Service is the mean of a call of a light transaction, CV its variation, and
	// Heavy by how much longer one of a heavy transaction takes.
	Service time.Duration
	CV      float64
	Heavy   float64
	// Keyed calls of a user go to one site as long as shares allow: state by user.
	Keyed bool
	Calls []Call
}

// Call is a call that a component makes, after its own service.
type Call struct {
	To int
	// Light and Heavy are the probability that it is made, by the transaction.
	Light, Heavy float64
	Times        int // in a row
	// Bytes there, and Answer back.
	Bytes, Answer int64
}

// Check returns what is wrong with the application; the error wraps ErrApp.
func (a *App) Check() error {
	fault := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{ErrApp}, args...)...)
	}
	if len(a.Sites) == 0 || len(a.Sites) > 256 || len(a.Components) == 0 || a.Entry.To < 0 || a.Entry.To >= len(a.Components) {
		return fault("%d sites, %d components, entry %d", len(a.Sites), len(a.Components), a.Entry.To)
	}
	if len(a.RTT) != len(a.Sites) || !(a.Within.Rate > 0) || !(a.Between.Rate > 0) {
		return fault("%d rows of round trips, rates of %v and %v", len(a.RTT), a.Within.Rate, a.Between.Rate)
	}
	for i := range a.Components {
		c := &a.Components[i]
		if len(c.Servers) != len(a.Sites) || c.Service < time.Microsecond || !(c.CV >= 0) || !(c.Heavy > 0) {
			return fault("component %s: servers at %d sites, service %v, variation %v, heavy %v", c.Name, len(c.Servers), c.Service, c.CV, c.Heavy)
		}
		for _, k := range c.Calls {
			if k.To <= i && k.To >= 0 || k.To < 0 || k.To >= len(a.Components) || k.Times < 1 {
				return fault("component %s: calls number %d, %d times; expected a later component, at least once", c.Name, k.To, k.Times)
			}
		}
	}
	return nil
}

// PerRequest is how many calls each component gets for a request from outside,
// on average.
func (a *App) PerRequest(heavy float64) []float64 {
	out := make([]float64, len(a.Components))
	out[a.Entry.To] = 1
	for i := range a.Components {
		for _, k := range a.Components[i].Calls {
			out[k.To] += out[i] * float64(k.Times) * ((1-heavy)*k.Light + heavy*k.Heavy)
		}
	}
	return out
}

// Takes is how many calls a second a replica's servers take of the mix.
func (a *App) Takes(component, site int, heavy float64) float64 {
	c := &a.Components[component]
	return float64(c.Servers[site]) / (c.Service.Seconds() * (1 - heavy + heavy*c.Heavy))
}

// normal is a log-normal distribution by its logarithm's.
type normal struct{ mu, sigma float64 }

// logNormal has mean 1.
func logNormal(cv float64) normal {
	s := math.Log(1 + cv*cv)
	return normal{mu: -s / 2, sigma: math.Sqrt(s)}
}
