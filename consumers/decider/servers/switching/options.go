package switching

import (
	"fmt"
	"math"
	"slices"
	"time"

	"penstock/consumers/decider/settings"
)

// Server is a server that can be turned on and off.
type Server struct {
	// Zone is its place in the site's zones, from 0.
	Zone int
	// Slots is the most requests in service at it (M of the paper).
	Slots int
	// Cost while it is on or starting, per second; 0: Options.Cost.
	Cost float64
}

// Options are those of a site's rule. The zero value of a field is its default unless the
// field says otherwise.
type Options struct {
	// Servers in config order, 1 to 4096; their zones are numbered without a gap.
	Servers []Server
	// Fixed: servers are never turned on or off, but in place of failed ones; only the
	// weights of zones are decided.
	Fixed bool
	// Forecast turns servers on before a peak.
	Forecast bool
	// Cost of a server, in cost units per second; defaults to 1.
	Cost float64
	// Critical potential penalty, in cost units; defaults to what a server costs in ten
	// seconds.
	Critical float64
	// Hysteresis is h of PAPERS §2.5, above 0 and below 1; defaults to 0.2.
	Hysteresis float64
	// Utilisation of the servers that would be left, above 0 and at most 1, up to which one
	// may be turned off; defaults to 0.7.
	Utilisation float64
	// Hold is how many periods the figures are means of, and for how many one must have
	// been idle, at most 3600; defaults to 3.
	Hold int
	// Period between two steps; defaults to 1 s.
	Period time.Duration
	// Cooldown after a change; defaults to 1 min. Below 0: none.
	Cooldown time.Duration
	// StartDelay is how long a server takes to start; defaults to 10 s. Below 0: none.
	StartDelay time.Duration
	// Least and Most servers that run; Least defaults to 1, Most to all.
	Least, Most int
	// MostUp is how many may be turned on at once; defaults to 4.
	MostUp int
	// Retry is after how long a server that failed is tried again; defaults to 10 min.
	Retry time.Duration
	// MinSamples is how many requests must have ended in Hold periods to decide by, where
	// queues are not known; defaults to 10.
	MinSamples int64
	// WeightStep is the most by which a zone's share of the weights changes in a period;
	// defaults to 0.1.
	WeightStep float64
	// Season is how long a day is, for Forecast; defaults to 24 h. A week has seven.
	Season time.Duration
}

// withDefaults returns the options with defaults in place of zeros.
func (o Options) withDefaults() Options {
	settings.OrElse(&o.Cost, 1)
	settings.OrElse(&o.Critical, 10*o.Cost)
	settings.OrElse(&o.Hysteresis, 0.2)
	settings.OrElse(&o.Utilisation, 0.7)
	settings.OrElse(&o.Hold, 3)
	settings.OrElse(&o.Period, time.Second)
	settings.OrElse(&o.Cooldown, time.Minute)
	settings.OrElse(&o.StartDelay, 10*time.Second)
	settings.OrElse(&o.Least, 1)
	settings.OrElse(&o.Most, len(o.Servers))
	settings.OrElse(&o.MostUp, 4)
	settings.OrElse(&o.Retry, 10*time.Minute)
	settings.OrElse(&o.MinSamples, 10)
	settings.OrElse(&o.WeightStep, 0.1)
	settings.OrElse(&o.Season, 24*time.Hour)
	o.Servers = slices.Clone(o.Servers)
	for i := range o.Servers {
		settings.OrElse(&o.Servers[i].Cost, o.Cost)
	}
	return o
}

// Validate reports every fault, each with its field; the error wraps ErrOptions.
func (o Options) Validate() error {
	o = o.withDefaults()
	f := new(settings.Faults)
	n := len(o.Servers)
	f.Need(n >= 1 && n <= 4096, "servers", n, "1 to 4096")
	f.Need(finite(o.Cost) && o.Cost > 0, "cost", o.Cost, "above 0")
	f.Need(finite(o.Critical) && o.Critical > 0, "critical", o.Critical, "above 0")
	f.Need(o.Hysteresis > 0 && o.Hysteresis < 1, "hysteresis", o.Hysteresis, "above 0, below 1")
	f.Need(o.Utilisation > 0 && o.Utilisation <= 1, "utilisation", o.Utilisation, "above 0, at most 1")
	f.Need(o.Hold >= 1 && o.Hold <= 3600, "hold", o.Hold, "1 to 3600 periods")
	f.Need(o.Period >= time.Millisecond && o.Period <= 24*time.Hour, "period", o.Period, "1 ms to a day")
	f.Need(o.Cooldown <= 7*24*time.Hour, "cooldown", o.Cooldown, "at most a week")
	f.Need(o.StartDelay <= 24*time.Hour, "start_delay", o.StartDelay, "at most a day")
	f.Need(o.Least >= 1 && o.Least <= max(1, n), "least", o.Least, "1 to the number of servers")
	f.Need(o.Most >= o.Least && o.Most <= max(1, n), "most", o.Most, "least to the number of servers")
	f.Need(o.MostUp >= 1, "most_up", o.MostUp, "at least 1")
	f.Need(o.Retry > 0, "retry", o.Retry, "above 0")
	f.Need(o.MinSamples >= 1, "min_samples", o.MinSamples, "at least 1")
	f.Need(o.WeightStep > 0 && o.WeightStep <= 1, "weight_step", o.WeightStep, "above 0, at most 1")
	f.Need(o.Season >= 4*o.Period && o.Season <= 366*24*time.Hour, "season", o.Season, "four periods to a year")
	zones := map[int]bool{}
	for i, s := range o.Servers {
		at := fmt.Sprintf("servers[%d]", i)
		f.Need(s.Slots >= 1 && s.Slots <= 1<<20, at+".slots", s.Slots, "1 to 1,048,576")
		f.Need(finite(s.Cost) && s.Cost > 0, at+".cost", s.Cost, "above 0")
		zones[s.Zone] = true
	}
	for z := range len(zones) {
		f.Need(zones[z], "servers", fmt.Sprint("no server of zone ", z), "zones numbered from 0 without a gap")
	}
	return f.Err(ErrOptions)
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
