// Package config reads and checks the one YAML file (DESIGN §5).
//
// Reading returns all faults at once, each with file, line, field path, what was
// there and what was expected; unknown fields are faults. A file with faults
// gives no configuration: nothing is half applied. Defaults are those of
// [Default], which `penstock config default` prints with comments.
package config

import (
	"time"
)

// Auto leaves a choice to the verb or to the policy.
const Auto = "auto"

// Config is the whole file.
type Config struct {
	// Sites are the clouds or data centres, in the order that breaks ties.
	Sites []Site `yaml:"sites"`
	// Placement steers in which site each owner's data lives.
	Placement Placement `yaml:"placement"`
	// Residency binds owners to sites by pattern; the first rule that matches
	// an owner counts. Without a match all sites are allowed.
	Residency []Residency `yaml:"residency"`
	// Components are the parts of the service whose calls are split over sites; none:
	// nothing is.
	Components []Component `yaml:"components"`
	// Split, Servers and Coding steer the other three kinds.
	Split   Split   `yaml:"split"`
	Servers Servers `yaml:"servers"`
	Coding  Coding  `yaml:"coding"`
	// Coders are the fronts of coded object storage; none: nothing is coded.
	Coders []Coder `yaml:"coders"`
	// Prices are what traffic costs.
	Prices Prices `yaml:"prices"`
	// Latency is a file of measured round trips between sites and regions
	// (columns site, region, rtt_ms, and lat, lon of a region that is no site);
	// empty goes by the formula of the distance. Reports use it.
	Latency string `yaml:"latency"`
	// Stores says what the addresses of stores leave open.
	Stores Stores `yaml:"stores"`
	// Bus holds what changes speed and memory but no result.
	Bus Bus `yaml:"bus"`
	// Mover bounds what moving data takes from the sites.
	Mover Mover `yaml:"mover"`
	// Entry is what the entry points have in common, Redirector the service that
	// tells where owners are.
	Entry      Entry      `yaml:"entry"`
	Redirector Redirector `yaml:"redirector"`
	// Router puts split tables to those who carry calls without our entry points.
	Router Router `yaml:"router"`
	// Spans is what receivers of spans have in common.
	Spans Spans `yaml:"spans"`
	// Privacy says how users are named.
	Privacy Privacy `yaml:"privacy"`
	// Telemetry is the endpoint for metrics and health.
	Telemetry Telemetry `yaml:"telemetry"`
}

// Site is one cloud or data centre.
type Site struct {
	Name string  `yaml:"name"`
	Lat  float64 `yaml:"lat"` // degrees, −90 to 90
	Lon  float64 `yaml:"lon"` // degrees, −180 to 180
	// Capacity is the traffic that the site serves without queueing, both
	// ways, such as 117MB/h; at least 1 B a placement window.
	Capacity Rate `yaml:"capacity"`
	// URL is where the site's entry point answers; optional.
	URL string `yaml:"url"`
	// Servers are the addresses of the service at this site, for its entry point.
	Servers []string `yaml:"servers"`
	// Store is where the site's data lives: see [ParseStore].
	Store string `yaml:"store"`
}

// Placement is the kind of DESIGN §4.1.
type Placement struct {
	// Policy is tmatch, the paper's; optimal; or auto, which is tmatch in a replay
	// and optimal in serve.
	Policy string `yaml:"policy"`
	// Window is the unit of time: whole seconds, 1s to 24h, that divide a day. It is
	// fixed when the streams are made, as the number of partitions is.
	Window Duration `yaml:"window"`
	// Alpha weighs the owner's own distance, Beta the social weight. Not
	// negative, and not both 0.
	Alpha float64 `yaml:"alpha"`
	Beta  float64 `yaml:"beta"`
	// Headroom is the part of each capacity that is left free, 0 to below 1.
	Headroom float64 `yaml:"headroom"`
	// TieTolerance is how far two weights may differ and still tie.
	TieTolerance float64 `yaml:"tie_tolerance"`
	// Place of a user is the latest one seen, the mean, or auto: latest for
	// tmatch, mean for optimal.
	Place string `yaml:"place"`
	// Traffic of an owner is the bytes asked of its data (owner), or those
	// that it asked for as a user (requester).
	Traffic string `yaml:"traffic"`
	// DeleteAfter is how long a copy that moved away is kept, in wall time. A
	// replay keeps none past its end.
	DeleteAfter Duration `yaml:"delete_after"`
	// Cooldown is how long an owner that moved stays, in event time: see
	// [Placement.CooldownOf].
	Cooldown AutoDuration `yaml:"cooldown"`
	// BackOff is for how many windows at most an owner is left alone whose moves
	// fail, 1 to 64: it is 1, 2, 4 and so on after each failure in a row.
	BackOff int `yaml:"back_off"`
	// MinRequests is the least number of requests in a window for a decision.
	MinRequests int `yaml:"min_requests"`
	// Limits bound what one window may move.
	Limits Limits `yaml:"limits"`
	// Objective is what policy optimal makes least, besides the owners' weights.
	Objective Objective `yaml:"objective"`
	// TTL is how long a command is valid after it was sent: see
	// [Placement.ValidFor].
	TTL AutoDuration `yaml:"ttl"`
}

// leastTTL is the least of ttl: auto, so that data has time to be copied where
// windows are short.
const leastTTL = 10 * time.Minute

// ValidFor is how long a command is valid. Auto is 24 windows, and 10 minutes.
func (p *Placement) ValidFor() time.Duration {
	if !p.TTL.Auto {
		return p.TTL.Std()
	}
	return max(24*p.Window.Std(), leastTTL)
}

// CooldownOf is the cooldown under a policy (tmatch or optimal). Auto is none for
// tmatch, as the paper has none, and three windows for optimal, which weighs each
// window anew: without one it would follow noisy load back and forth.
func (p *Placement) CooldownOf(policy string) time.Duration {
	switch {
	case !p.Cooldown.Auto:
		return p.Cooldown.Std()
	case policy == "optimal":
		return 3 * p.Window.Std()
	}
	return 0
}

// Limits of one window; 0 is unlimited.
type Limits struct {
	Moves int  `yaml:"moves"`
	Bytes Size `yaml:"bytes"`
}

// Objective holds what else counts for policy optimal, in weights: 1 is the
// difference between an owner's best site and its worst where all terms agree.
type Objective struct {
	// Overload is the weight of one mean owner's traffic beyond a capacity; more
	// than 0.
	Overload float64 `yaml:"overload"`
	PerGB    float64 `yaml:"per_gb"`  // of moving 1 GB
	PerUSD   float64 `yaml:"per_usd"` // of a US dollar of egress
	// Margin is by how much another site must be better.
	Margin float64 `yaml:"margin"`
}

// Residency allows owners that match a pattern (* and ?) some sites only.
type Residency struct {
	Match string   `yaml:"match"`
	Sites []string `yaml:"sites"`
}

// Stores says what the addresses of stores leave open.
type Stores struct {
	Postgres Postgres `yaml:"postgres"`
}

// Postgres says where in a database an owner's data is.
type Postgres struct {
	// Schema holds Penstock's own tables.
	Schema string `yaml:"schema"`
	// Tables hold the owners' rows, each with the column that names the owner.
	Tables []Table `yaml:"tables"`
}

// Table is a table with owners' rows.
type Table struct {
	Name  string `yaml:"name"`
	Owner string `yaml:"owner"`
}

// Prices in US dollars: egress a GB by site, requests a thousand; requests of a coder to
// its stores a million, those that read and those that write.
type Prices struct {
	Egress      map[string]float64 `yaml:"egress"`
	Requests    float64            `yaml:"requests"`
	StoreReads  float64            `yaml:"store_reads"`
	StoreWrites float64            `yaml:"store_writes"`
}

// Bus is what changes no result.
type Bus struct {
	// Partitions of EVENTS, 1 to 25; fixed when the streams are made.
	Partitions int `yaml:"partitions"`
	// BatchRows is the most rows of a batch, 1 to 8192.
	BatchRows int `yaml:"batch_rows"`
	// Flush is how often an aggregator of the fast group flushes.
	Flush Duration `yaml:"flush"`
	// Sync is always (a stored message is on disk) or interval.
	Sync string `yaml:"sync"`
	// IdleTimeout is after how long a silent run holds nothing open, in
	// serve.
	IdleTimeout Duration `yaml:"idle_timeout"`
}

// Mover bounds moving.
type Mover struct {
	Parallel  int  `yaml:"parallel"`  // moves at a time
	Bandwidth Rate `yaml:"bandwidth"` // 0 is unlimited
}

// Privacy says how users are named.
type Privacy struct {
	// UserKey keys the hash of client addresses. A replay without one uses its
	// run's id; serve refuses to start without one.
	UserKey string `yaml:"user_key"`
}

// Telemetry is the endpoint for metrics and health.
type Telemetry struct {
	// Listen is an address; empty is none. Off loopback it needs a token.
	Listen string `yaml:"listen"`
	// TokenFile holds the bearer token.
	TokenFile string `yaml:"token_file"`
}

// Default returns the defaults. It has no sites: those are the reader's own.
func Default() Config {
	return Config{
		Placement: Placement{
			Policy: Auto, Window: Duration(time.Hour), Alpha: 0.3, Beta: 0.7,
			Objective: Objective{Overload: 100, PerGB: 1, PerUSD: 1, Margin: 0.02},
			Place:     Auto, Traffic: "owner", DeleteAfter: Duration(24 * time.Hour), Cooldown: AutoDuration{Auto: true},
			Limits: Limits{Moves: 10_000, Bytes: 10_000_000_000}, TTL: AutoDuration{Auto: true}, BackOff: 64,
		},
		Split:   defaultSplit(),
		Servers: defaultServers(),
		Coding:  defaultCoding(),
		Prices:  Prices{StoreReads: 0.4, StoreWrites: 5},
		Bus:     Bus{Partitions: 8, BatchRows: 8192, Flush: Duration(time.Second), Sync: "always", IdleTimeout: Duration(3 * time.Second)},
		Stores:  Stores{Postgres: Postgres{Schema: "penstock"}},
		Mover:   Mover{Parallel: 4},
		Entry:   defaultEntry(), Redirector: defaultRedirector(), Router: defaultRouter(), Spans: defaultSpans(),
		Telemetry: Telemetry{Listen: "127.0.0.1:9464"},
	}
}

// Site returns the site of that name, nil if there is none.
func (c *Config) Site(name string) *Site {
	for i := range c.Sites {
		if c.Sites[i].Name == name {
			return &c.Sites[i]
		}
	}
	return nil
}
