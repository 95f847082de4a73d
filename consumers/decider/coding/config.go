package coding

import (
	"fmt"
	"math"
	"time"

	"penstock/consumers/decider/coding/threshold"
	"penstock/consumers/decider/settings"
	"penstock/schemas/control"
	"penstock/schemas/window"
)

// Code is one code: n chunks asked for, k needed.
type Code struct {
	N int `json:"n"`
	K int `json:"k"`
}

// Coder is a coder whose requests get codes.
type Coder struct {
	Name string `json:"name"`
	// Members are its stores, as tasks name them; nil: one, of the coder's own name.
	Members []string `json:"members,omitempty"`
	// N and K are those of the layout spread: K is needed of every object, and at most N
	// can be asked for. 0: the layout shared, in which any code can be read.
	N int `json:"n,omitempty"`
	K int `json:"k,omitempty"`
	// Connections it holds to its stores in all; 0: Config.Connections.
	Connections int `json:"connections,omitempty"`
	// Read and Write are the delays of its stores before anything was measured; nil:
	// those of PAPERS §3.2.
	Read  *threshold.Model `json:"read,omitempty"`
	Write *threshold.Model `json:"write,omitempty"`
}

// spread says whether each of its objects lies in N stores, any K of which are enough.
func (c *Coder) spread() bool { return c.K > 0 }

// members are its stores.
func (c *Coder) members() []string {
	if len(c.Members) == 0 {
		return []string{c.Name}
	}
	return c.Members
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
	// Coders in the order of commands; 1 to 1024.
	Coders []Coder `json:"coders"`
	// Window is the width of a window, a multiple of 10 s; defaults to 10 s.
	Window time.Duration `json:"window"`
	// History is how many windows a fit rests on, at most 360; defaults to 30.
	History int `json:"history"`
	// MinSamples is the least number of ended tasks in History for a fit; defaults to
	// 200.
	MinSamples int64 `json:"min_samples"`
	// Connections of a coder to its stores; defaults to 16.
	Connections int `json:"connections"`
	// KMax is the most chunks needed in the layout shared, 1 to 32; defaults to 6.
	KMax int `json:"k_max"`
	// RMax is the most n/k in the layout shared, 1 to 128; defaults to 2.
	RMax float64 `json:"r_max"`
	// MaxRequests is the most requests to stores for one read or write, KMax to 128;
	// defaults to 12. One of the layout spread needs K in any case.
	MaxRequests int `json:"max_requests"`
	// MaxReadPrice is the most US dollars that a million reads may cost; 0: no cap. One
	// request each, or K, is always allowed.
	MaxReadPrice float64 `json:"max_read_price,omitempty"`
	Price        Price   `json:"price"`
	// SizeMB is the size of a request (MB, 10⁶ B) before any was seen; defaults to 3.
	SizeMB float64 `json:"size_mb"`
	// Code is that of static, replicate and hedge; defaults to (1,1), (2,1) and (2,1).
	// The layout spread has K of its own and takes the code's n/k.
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

// withDefaults returns the configuration with defaults in place of zeros.
func (c Config) withDefaults() Config {
	if c.Policy == "" {
		c.Policy = control.CodingTOFEC
	}
	settings.OrElse(&c.Window, window.Storage.Width)
	settings.OrElse(&c.History, 30)
	settings.OrElse(&c.MinSamples, 200)
	settings.OrElse(&c.Connections, 16)
	settings.OrElse(&c.KMax, 6)
	settings.OrElse(&c.RMax, 2)
	settings.OrElse(&c.MaxRequests, 12)
	settings.OrElse(&c.Price.Read, 0.4)
	settings.OrElse(&c.Price.Write, 5)
	settings.OrElse(&c.SizeMB, 3)
	if c.Code == (Code{}) {
		c.Code = Code{N: 1, K: 1}
		if c.Policy == control.CodingReplicate || c.Policy == control.CodingHedge {
			c.Code.N = 2
		}
	}
	settings.OrElse(&c.HedgeQuantile, 0.95)
	settings.OrElse(&c.Change, 0.25)
	settings.OrElse(&c.TTL, 10*time.Minute)
	return c
}

// Validate reports every fault, each with its field; the error wraps ErrConfig.
func (c Config) Validate() error {
	c = c.withDefaults()
	f := new(settings.Faults)
	known := false
	for _, p := range control.CodingPolicies {
		known = known || p == c.Policy
	}
	f.Need(known, "policy", c.Policy, "tofec, greedy, static, replicate or hedge")
	f.Need(c.Window > 0 && c.Window%window.Storage.Width == 0, "window", c.Window, "a multiple of 10s")
	f.Need(c.History >= 1 && c.History <= 360, "history", c.History, "1 to 360 windows")
	f.Need(c.MinSamples >= 1, "min_samples", c.MinSamples, "at least 1")
	f.Need(c.Connections >= 1 && c.Connections <= 65_536, "connections", c.Connections, "1 to 65,536")
	f.Need(c.KMax >= 1 && c.KMax <= control.MaxCodingK, "k_max", c.KMax, "1 to 32")
	f.Need(c.RMax >= 1 && c.RMax <= control.MaxCodingN, "r_max", c.RMax, "1 to 128")
	f.Need(c.MaxRequests >= c.KMax && c.MaxRequests <= control.MaxCodingN, "max_requests", c.MaxRequests, "k_max to 128")
	f.Need(c.MaxReadPrice >= 0 && !math.IsInf(c.MaxReadPrice, 1), "max_read_price", c.MaxReadPrice, "0 or more US dollars")
	f.Need(!math.IsNaN(c.Price.Read) && !math.IsInf(c.Price.Read, 1), "price.read", c.Price.Read, "US dollars")
	f.Need(!math.IsNaN(c.Price.Write) && !math.IsInf(c.Price.Write, 1), "price.write", c.Price.Write, "US dollars")
	f.Need(c.SizeMB > 0 && c.SizeMB <= 1e6, "size_mb", c.SizeMB, "above 0 MB, at most 1e6")
	f.Need(c.Code.K >= 1 && c.Code.K <= c.KMax && c.Code.N >= c.Code.K && c.Code.N <= c.MaxRequests, "code", c.Code, "1 ≤ k ≤ k_max and k ≤ n ≤ max_requests")
	f.Need(c.Policy != control.CodingReplicate || c.Code.K == 1, "code.k", c.Code.K, "1, of whole copies")
	f.Need(c.HedgeQuantile > 0 && c.HedgeQuantile < 1, "hedge_quantile", c.HedgeQuantile, "above 0, below 1")
	f.Need(c.Change < 1, "change", c.Change, "below 1")
	f.Need(c.TTL >= 2*c.Window, "ttl", c.TTL, "at least two windows")
	c.checkCoders(f)
	return f.Err(ErrConfig)
}

func (c *Config) checkCoders(f *settings.Faults) {
	names, stores := map[string]bool{}, map[string]bool{}
	f.Need(len(c.Coders) > 0 && len(c.Coders) <= 1024, "coders", len(c.Coders), "1 to 1024")
	for i := range c.Coders {
		x, at := &c.Coders[i], fmt.Sprintf("coders[%d]", i)
		f.Need(x.Name != "" && len(x.Name) <= control.MaxID && !names[x.Name], at+".name", x.Name, "a name of its own of 1 to 1024 bytes")
		names[x.Name] = true
		for j, m := range x.members() {
			f.Need(m != "" && len(m) <= control.MaxID && !stores[m], fmt.Sprintf("%s.members[%d]", at, j), m, "a name of its own of 1 to 1024 bytes")
			stores[m] = true
		}
		f.Need(x.N == 0 && x.K == 0 || x.K >= 1 && x.K <= x.N && x.K <= control.MaxCodingK && x.N <= control.MaxCodingN, at+".n", Code{x.N, x.K}, "1 ≤ k ≤ 32 and k ≤ n ≤ 128, or neither")
		f.Need(x.Connections >= 0 && x.Connections <= 65_536, at+".connections", x.Connections, "0 to 65,536")
		for op, m := range [ops]*threshold.Model{read: x.Read, write: x.Write} {
			if m != nil {
				err := m.Validate()
				f.Need(err == nil, at+"."+opNames[op], err, "a fixed and an exponential part, 0 or more")
			}
		}
	}
}

// prior is the model of a coder's stores before anything was measured.
func (c *Config) prior(x *Coder, op int) threshold.Model {
	switch {
	case op == read && x.Read != nil:
		return *x.Read
	case op == write && x.Write != nil:
		return *x.Write
	case op == read:
		return threshold.DefaultRead
	}
	return threshold.DefaultWrite
}

// limits are those of codes for requests of a size, and whether the price binds.
func (c *Config) limits(x *Coder, op int, size float64) (l threshold.Limits, priced bool) {
	l = threshold.Limits{Connections: c.Connections, SizeMB: size, KMax: c.KMax, NMax: c.MaxRequests, RMax: c.RMax}
	if x.Connections > 0 {
		l.Connections = x.Connections
	}
	least := 1
	if x.spread() {
		least = x.K
		l.KMin, l.KMax = x.K, x.K
		l.NMax = max(x.K, min(x.N, c.MaxRequests))
		l.RMax = float64(x.N) / float64(x.K)
	}
	if op == read && c.MaxReadPrice > 0 && c.Price.Read > 0 {
		if n := max(least, int(math.Min(control.MaxCodingN, c.MaxReadPrice/c.Price.Read))); n < l.NMax {
			l.NMax, priced = n, true
			l.KMax = min(l.KMax, n)
		}
	}
	return l, priced
}
