package config

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"penstock/infra/address"
	"penstock/schemas/window"
)

// checker collects the faults of a decoded configuration.
type checker struct {
	at     func(path, got, expected string) Fault
	given  func(path string) bool // whether the file has the field
	faults Faults
}

func (c *checker) need(ok bool, path, got, expected string) {
	if !ok {
		c.faults = append(c.faults, c.at(path, got, expected))
	}
}

func (c *checker) oneOf(path, got string, allowed ...string) {
	c.need(slices.Contains(allowed, got), path, got, "one of: "+strings.Join(allowed, ", "))
}

func (c *checker) between(path string, got, least, most float64) {
	c.need(got >= least && got <= most, path, num(got), fmt.Sprintf("%s to %s", num(least), num(most)))
}

func num(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

// validate checks meaning: what each value may be, and what must fit together.
func validate(cfg *Config, at func(path, got, expected string) Fault, given func(path string) bool) Faults {
	c := &checker{at: at, given: given}
	c.sites(cfg)
	c.placement(&cfg.Placement)
	c.residency(cfg)
	c.tables(&cfg.Stores.Postgres)
	c.components(cfg)
	c.split(cfg)
	c.prices(cfg)
	c.dispatching(cfg)
	c.coding(&cfg.Coding)
	c.coders(cfg)
	c.bus(cfg)
	c.entry(cfg)
	c.redirector(&cfg.Redirector)
	c.router(cfg)
	c.spans(cfg)
	c.need(strings.Trim(cfg.Privacy.UserKey, "….${} ") != "" || cfg.Privacy.UserKey == "", "privacy.user_key", cfg.Privacy.UserKey, "a secret of yours in place of the dots")
	return c.faults
}

func (c *checker) sites(cfg *Config) {
	c.need(len(cfg.Sites) > 0, "sites", "", "at least one site with name, lat, lon and capacity")
	c.need(len(cfg.Sites) <= 1000, "sites", strconv.Itoa(len(cfg.Sites)), "at most 1000 sites")
	width := cfg.Placement.Window.Std()
	if window.CheckWidth(width) != nil {
		width = window.Traffic.Width // Its own fault is named elsewhere.
	}
	names, stores := map[string]bool{}, map[string]bool{}
	for i, s := range cfg.Sites {
		p := fmt.Sprintf("sites[%d]", i)
		c.need(s.Name != "" && len(s.Name) <= 200, p+".name", s.Name, "a name of 1 to 200 bytes")
		c.need(!names[s.Name], p+".name", s.Name, "a name that no other site has")
		names[s.Name] = true
		c.need(s.Capacity.In(width) > 0, p+".capacity", "", "the traffic that the site serves without queueing, such as 117MB/h")
		c.degrees(p+".lat", s.Lat, 90)
		c.degrees(p+".lon", s.Lon, 180)
		if s.URL != "" {
			c.base(p+".url", s.URL)
		}
		c.servers(p+".servers", s.Servers)
		if s.Store != "" {
			c.store(p+".store", s.Store, cfg, stores)
		}
	}
}

// maxObjective bounds the terms of the objective, so that their sums stay exact.
const maxObjective = 1e6

// store checks an address of a store, and that no other site has it.
func (c *checker) store(at, text string, cfg *Config, taken map[string]bool) {
	st, err := checkStore(text)
	text = withoutPassword(text)
	if err != nil {
		c.need(false, at, text, err.Error())
		return
	}
	c.need(!taken[st.Place()], at, text, "a store that no other site has")
	taken[st.Place()] = true
	if st.Kind == "postgres" {
		c.need(len(cfg.Stores.Postgres.Tables) > 0, "stores.postgres.tables", "", "the tables with owners' rows, since "+at+" is a database")
	}
}

func (c *checker) tables(p *Postgres) {
	c.need(p.Schema != "" && len(p.Schema) < 64, "stores.postgres.schema", p.Schema, "a name of 1 to 63 bytes")
	seen := map[string]bool{}
	for i, t := range p.Tables {
		at := fmt.Sprintf("stores.postgres.tables[%d]", i)
		c.need(t.Name != "", at+".name", "", "the name of a table, with its schema if that is not public")
		c.need(t.Owner != "", at+".owner", "", "the column that names the owner")
		c.need(!seen[t.Name], at+".name", t.Name, "a table that is not listed before")
		seen[t.Name] = true
	}
}

// degrees wants a coordinate to be there: the equator is no default.
func (c *checker) degrees(path string, got, most float64) {
	if !c.given(path) {
		c.need(false, path, "", "degrees from "+num(-most)+" to "+num(most))
		return
	}
	c.between(path, got, -most, most)
}

func (c *checker) placement(p *Placement) {
	c.oneOf("placement.policy", p.Policy, Auto, "tmatch", "optimal")
	c.need(window.CheckWidth(p.Window.Std()) == nil, "placement.window", p.Window.String(), "whole seconds, 1s to 24h, that divide a day, such as 10s, 5m or 1h")
	c.between("placement.alpha", p.Alpha, 0, 1e6)
	c.between("placement.beta", p.Beta, 0, 1e6)
	c.need(p.Alpha+p.Beta > 0, "placement.alpha", num(p.Alpha), "alpha and beta not both 0")
	if p.Alpha <= 1e6 && p.Beta <= 1e6 {
		c.need(p.Alpha+p.Beta <= 1e6, "placement.alpha", num(p.Alpha), "alpha + beta at most 1e+06: only their ratio decides")
	}
	c.need(p.Headroom >= 0 && p.Headroom < 1, "placement.headroom", num(p.Headroom), "0 to below 1")
	c.between("placement.tie_tolerance", p.TieTolerance, 0, 1e6)
	c.oneOf("placement.place", p.Place, Auto, "latest", "mean")
	c.oneOf("placement.traffic", p.Traffic, "owner", "requester")
	c.need(p.MinRequests >= 0, "placement.min_requests", strconv.Itoa(p.MinRequests), "0 or more")
	c.need(p.BackOff >= 1 && p.BackOff <= 64, "placement.back_off", strconv.Itoa(p.BackOff), "1 to 64 windows")
	c.need(p.Limits.Moves >= 0, "placement.limits.moves", strconv.Itoa(p.Limits.Moves), "0 (no limit) or more")
	c.need(p.ValidFor() >= time.Second, "placement.ttl", p.TTL.String(), "at least 1s")
	c.need(p.Objective.Overload > 0 && p.Objective.Overload <= maxObjective, "placement.objective.overload", num(p.Objective.Overload), "more than 0, at most "+num(maxObjective))
	c.between("placement.objective.per_gb", p.Objective.PerGB, 0, maxObjective)
	c.between("placement.objective.per_usd", p.Objective.PerUSD, 0, maxObjective)
	c.between("placement.objective.margin", p.Objective.Margin, 0, maxObjective)
}

func (c *checker) residency(cfg *Config) {
	for i, r := range cfg.Residency {
		p := fmt.Sprintf("residency[%d]", i)
		_, err := path.Match(r.Match, "")
		c.need(r.Match != "" && err == nil, p+".match", r.Match, "a pattern such as eu-*")
		c.need(len(r.Sites) > 0, p+".sites", "", "at least one site")
		for j, s := range r.Sites {
			c.need(cfg.Site(s) != nil, fmt.Sprintf("%s.sites[%d]", p, j), s, "the name of a site")
		}
	}
}

func (c *checker) prices(cfg *Config) {
	for _, site := range slices.Sorted(maps.Keys(cfg.Prices.Egress)) {
		p := "prices.egress." + site
		c.need(cfg.Site(site) != nil, p, site, "the name of a site")
		c.need(cfg.Prices.Egress[site] >= 0 && cfg.Prices.Egress[site] <= maxObjective, p, num(cfg.Prices.Egress[site]), "0 to "+num(maxObjective)+" US dollars a GB")
	}
	c.need(cfg.Prices.Requests >= 0, "prices.requests", num(cfg.Prices.Requests), "0 or more US dollars a thousand")
	c.between("prices.store_reads", cfg.Prices.StoreReads, 0, maxObjective)
	c.between("prices.store_writes", cfg.Prices.StoreWrites, 0, maxObjective)
}

func (c *checker) bus(cfg *Config) {
	c.between("bus.partitions", float64(cfg.Bus.Partitions), 1, 25)
	c.between("bus.batch_rows", float64(cfg.Bus.BatchRows), 1, 8192)
	c.need(cfg.Bus.Flush.Std() >= time.Millisecond, "bus.flush", cfg.Bus.Flush.String(), "at least 1ms")
	c.oneOf("bus.sync", cfg.Bus.Sync, "always", "interval")
	c.need(cfg.Bus.IdleTimeout.Std() >= 100*time.Millisecond, "bus.idle_timeout", cfg.Bus.IdleTimeout.String(), "at least 100ms")
	c.between("mover.parallel", float64(cfg.Mover.Parallel), 1, 256)
	if t := cfg.Telemetry; t.Listen != "" {
		c.address("telemetry.listen", t.Listen)
		c.need(address.IsLoopback(address.Host(t.Listen)) || t.TokenFile != "", "telemetry.token_file", "", "a token file, since listen is off loopback")
	}
}

// Notes says what of a valid configuration does nothing yet or deserves a
// second look; it is never an error.
func (c *Config) Notes() []string {
	var notes []string
	notes = append(notes, c.serverNotes()...)
	if !c.Codes() && fmt.Sprint(c.Coding) != fmt.Sprint(defaultCoding()) {
		notes = append(notes, "coding steers nothing: there are no coders")
	}
	if most, each := c.Coding.MaxReadPrice, c.Prices.StoreReads; c.Codes() && most > 0 && most < each {
		notes = append(notes, fmt.Sprintf("coding.max_read_price %s: one read at (1,1) costs more than max_read_price: the cap is 1 (k in the layout spread); prices.store_reads is %s: raise the cap to that at least, or set it to 0 for none", num(most), num(each)))
	}
	if !c.Splits() && fmt.Sprint(c.Split) != fmt.Sprint(Default().Split) {
		notes = append(notes, "split steers nothing: there are no components")
	}
	if in := c.Entry.Internal; in != "" && !address.IsLoopback(address.Host(in)) {
		notes = append(notes, "entry.internal "+in+" is off loopback: whoever reaches it may call every component, in the name of any, and without TLS; only components of the site may")
	}
	return append(notes, c.peerNotes()...)
}
