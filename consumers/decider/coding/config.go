package coding

import (
	"errors"
	"fmt"
	"math"
	"time"

	"penstock/consumers/decider/coding/threshold"
	"penstock/schemas/control"
	"penstock/schemas/window"
)

// Code is one code: n chunks asked for, k needed.
type Code struct {
	N int `json:"n"`
	K int `json:"k"`
}

// Store is a store whose requests are coded.
type Store struct {
	Name string `json:"name"`
	// Connections a coder holds to it; 0: Config.Connections.
	Connections int `json:"connections,omitempty"`
	// Read and Write are its delays before anything was measured; nil: those of PAPERS
	// §3.2.
	Read  *threshold.Model `json:"read,omitempty"`
	Write *threshold.Model `json:"write,omitempty"`
}

// Price is what the store's owner asks, in US dollars for a million requests.
type Price struct {
	Read  float64 `json:"read"`  // defaults to 0.40; below 0: nothing
	Write float64 `json:"write"` // defaults to 5; below 0: nothing
}

// Config is what the policy is told. The zero value of a field is its default unless
// the field says otherwise.
type Config struct {
	Policy control.CodingPolicy `json:"policy"` // defaults to tofec
	// Stores in the order of commands; 1 to 1024.
	Stores []Store `json:"stores"`
	// Window is the width of a window, a multiple of 10 s; defaults to 10 s.
	Window time.Duration `json:"window"`
	// History is how many windows a fit rests on, at most 360; defaults to 30.
	History int `json:"history"`
	// MinSamples is the least number of ended tasks in History for a fit; defaults to
	// 200.
	MinSamples int64 `json:"min_samples"`
	// Connections of a coder to a store; defaults to 16.
	Connections int `json:"connections"`
	// KMax is the most chunks needed, 1 to 32; defaults to 6.
	KMax int `json:"k_max"`
	// RMax is the most n/k, 1 to 128; defaults to 2.
	RMax float64 `json:"r_max"`
	// MaxRequests is the most requests to a store for one read or write, KMax to 128;
	// defaults to 12.
	MaxRequests int `json:"max_requests"`
	// MaxReadPrice is the most US dollars that a million reads may cost; 0: no cap. One
	// request each is always allowed.
	MaxReadPrice float64 `json:"max_read_price,omitempty"`
	Price        Price   `json:"price"`
	// SizeMB is the size of a request (MB, 10⁶ B) before any was seen; defaults to 3.
	SizeMB float64 `json:"size_mb"`
	// Code is that of static, replicate and hedge; defaults to (1,1), (2,1) and (2,1).
	Code Code `json:"code"`
	// HedgeQuantile is the share of requests that is done before a hedge asks for more,
	// above 0 and below 1; defaults to 0.95.
	HedgeQuantile float64 `json:"hedge_quantile"`
	// Uncorrected takes the paper's thresholds as they are, for comparison.
	Uncorrected bool `json:"uncorrected,omitempty"`
	// Change is by how much a threshold must have changed for another table; defaults
	// to 0.25: thresholds span three decades, and half of one is a mean delay of a few
	// per cent. Below 0: any change.
	Change float64 `json:"change"`
	// TTL is how long a table is good for; one is sent again after half of it.
	// Defaults to 10 min.
	TTL time.Duration `json:"ttl"`
}

func orElse[T int | int64 | float64 | time.Duration](v *T, d T) {
	if *v == 0 {
		*v = d
	}
}

// withDefaults returns the configuration with defaults in place of zeros.
func (c Config) withDefaults() Config {
	if c.Policy == "" {
		c.Policy = control.CodingTOFEC
	}
	orElse(&c.Window, window.Storage.Width)
	orElse(&c.History, 30)
	orElse(&c.MinSamples, 200)
	orElse(&c.Connections, 16)
	orElse(&c.KMax, 6)
	orElse(&c.RMax, 2)
	orElse(&c.MaxRequests, 12)
	orElse(&c.Price.Read, 0.4)
	orElse(&c.Price.Write, 5)
	orElse(&c.SizeMB, 3)
	if c.Code == (Code{}) {
		c.Code = Code{N: 1, K: 1}
		if c.Policy == control.CodingReplicate || c.Policy == control.CodingHedge {
			c.Code.N = 2
		}
	}
	orElse(&c.HedgeQuantile, 0.95)
	orElse(&c.Change, 0.25)
	orElse(&c.TTL, 10*time.Minute)
	return c
}

// faults collects what is wrong with a configuration.
type faults struct{ list []error }

func (f *faults) need(ok bool, field string, got any, expected string) {
	if !ok {
		f.list = append(f.list, fmt.Errorf("%s: got %.60q, expected %s", field, fmt.Sprint(got), expected))
	}
}

// Validate reports every fault, each with its field; the error wraps ErrConfig.
func (c Config) Validate() error {
	c = c.withDefaults()
	f := new(faults)
	known := false
	for _, p := range control.CodingPolicies {
		known = known || p == c.Policy
	}
	f.need(known, "policy", c.Policy, "tofec, greedy, static, replicate or hedge")
	f.need(c.Window > 0 && c.Window%window.Storage.Width == 0, "window", c.Window, "a multiple of 10s")
	f.need(c.History >= 1 && c.History <= 360, "history", c.History, "1 to 360 windows")
	f.need(c.MinSamples >= 1, "min_samples", c.MinSamples, "at least 1")
	f.need(c.Connections >= 1 && c.Connections <= 65_536, "connections", c.Connections, "1 to 65,536")
	f.need(c.KMax >= 1 && c.KMax <= control.MaxCodingK, "k_max", c.KMax, "1 to 32")
	f.need(c.RMax >= 1 && c.RMax <= control.MaxCodingN, "r_max", c.RMax, "1 to 128")
	f.need(c.MaxRequests >= c.KMax && c.MaxRequests <= control.MaxCodingN, "max_requests", c.MaxRequests, "k_max to 128")
	f.need(c.MaxReadPrice >= 0 && !math.IsInf(c.MaxReadPrice, 1), "max_read_price", c.MaxReadPrice, "0 or more US dollars")
	f.need(!math.IsNaN(c.Price.Read) && !math.IsInf(c.Price.Read, 1), "price.read", c.Price.Read, "US dollars")
	f.need(!math.IsNaN(c.Price.Write) && !math.IsInf(c.Price.Write, 1), "price.write", c.Price.Write, "US dollars")
	f.need(c.SizeMB > 0 && c.SizeMB <= 1e6, "size_mb", c.SizeMB, "above 0 MB, at most 1e6")
	f.need(c.Code.K >= 1 && c.Code.K <= c.KMax && c.Code.N >= c.Code.K && c.Code.N <= c.MaxRequests, "code", c.Code, "1 ≤ k ≤ k_max and k ≤ n ≤ max_requests")
	f.need(c.Policy != control.CodingReplicate || c.Code.K == 1, "code.k", c.Code.K, "1, of whole copies")
	f.need(c.HedgeQuantile > 0 && c.HedgeQuantile < 1, "hedge_quantile", c.HedgeQuantile, "above 0, below 1")
	f.need(c.Change < 1, "change", c.Change, "below 1")
	f.need(c.TTL >= 2*c.Window, "ttl", c.TTL, "at least two windows")
	c.checkStores(f)
	if len(f.list) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrConfig, errors.Join(f.list...))
}

func (c *Config) checkStores(f *faults) {
	names := map[string]bool{}
	f.need(len(c.Stores) > 0 && len(c.Stores) <= 1024, "stores", len(c.Stores), "1 to 1024")
	for i, s := range c.Stores {
		at := fmt.Sprintf("stores[%d]", i)
		f.need(s.Name != "" && len(s.Name) <= control.MaxID && !names[s.Name], at+".name", s.Name, "a name of its own of 1 to 1024 bytes")
		f.need(s.Connections >= 0 && s.Connections <= 65_536, at+".connections", s.Connections, "0 to 65,536")
		for name, m := range map[string]*threshold.Model{"read": s.Read, "write": s.Write} {
			if m != nil {
				err := m.Validate()
				f.need(err == nil, at+"."+name, err, "a fixed and an exponential part, 0 or more")
			}
		}
		names[s.Name] = true
	}
}

// prior is the model of a store before anything was measured.
func (c *Config) prior(s *Store, op int) threshold.Model {
	switch {
	case op == read && s.Read != nil:
		return *s.Read
	case op == write && s.Write != nil:
		return *s.Write
	case op == read:
		return threshold.DefaultRead
	}
	return threshold.DefaultWrite
}

// limits are those of codes for requests of a size, and whether the price binds.
func (c *Config) limits(s *Store, op int, size float64) (l threshold.Limits, priced bool) {
	l = threshold.Limits{Connections: c.Connections, SizeMB: size, KMax: c.KMax, NMax: c.MaxRequests, RMax: c.RMax}
	if s.Connections > 0 {
		l.Connections = s.Connections
	}
	if op == read && c.MaxReadPrice > 0 && c.Price.Read > 0 {
		if n := max(1, int(math.Min(control.MaxCodingN, c.MaxReadPrice/c.Price.Read))); n < l.NMax {
			l.NMax, priced = n, true
			l.KMax = min(l.KMax, n)
		}
	}
	return l, priced
}
