package doctor

import (
	"fmt"
	"slices"

	"penstock/pipeline/config"
	"penstock/pipeline/report"
	"penstock/schemas/sphere"
)

// configuration looks at what a valid file may still have wrong.
func (x *examination) configuration() {
	c := x.Config
	x.fine("configuration", "file", "%d sites, policy %s", len(c.Sites), c.Placement.Policy)
	for _, note := range c.Notes() {
		x.add("configuration", "file", Look, note, "")
	}
	if x.Serve && c.Privacy.UserKey == "" {
		x.add("configuration", "privacy.user_key", Broken, "not set: serve refuses to start", "users must be named by a key of your own")
	}
	for i, s := range c.Sites {
		if s.Lat == 0 && s.Lon == 0 {
			x.add("configuration", "site "+s.Name, Look, "lies at 0°, 0°, in the Gulf of Guinea", "give it the coordinates of its data centre")
		}
		for _, other := range c.Sites[:i] {
			if sphere.Distance(sphere.FromDegrees(s.Lat, s.Lon), sphere.FromDegrees(other.Lat, other.Lon)) < 1 {
				x.add("configuration", "site "+s.Name, Look, "is where site "+other.Name+" is",
					"their owners are told apart by capacity and configuration order only")
			}
		}
	}
	if c.Placement.Headroom == 0 && !x.tablesOnly() && c.Placement.Policy != "tmatch" {
		x.add("configuration", "placement.headroom", Look, "0: policy optimal fills sites to their last byte, and the next window's rise is over at once",
			"a headroom such as 0.05 keeps room for the rise from one window to the next")
	}
	x.residency()
}

// tablesOnly reports whether there is nothing that data could be moved between, and
// calls to split or requests to code: serve runs no mover then.
func (x *examination) tablesOnly() bool {
	c := x.Config
	return c != nil && c.Tables() && !slices.ContainsFunc(c.Sites, func(s config.Site) bool { return s.Store != "" })
}

// residency looks for rules that can't take effect, or that leave one site.
func (x *examination) residency() {
	for i, r := range x.Config.Residency {
		at := fmt.Sprintf("residency[%d]", i)
		if slices.ContainsFunc(x.Config.Residency[:i], func(p config.Residency) bool { return p.Match == "*" || p.Match == r.Match }) {
			x.add("configuration", at, Look, fmt.Sprintf("%q is never reached: a rule before it matches the same owners", r.Match), "the first rule that matches counts")
		}
		if len(r.Sites) == 1 {
			x.add("configuration", at, Look, fmt.Sprintf("owners that match %q can be at %s only", r.Match, r.Sites[0]),
				"they can't be moved when it is over capacity or evacuated")
		}
	}
}

// capacities looks at capacities beside each other.
func (x *examination) capacities() {
	c := x.Config
	window := c.Placement.Window.Std()
	least, most := 0, 0
	var total int64
	for i, s := range c.Sites {
		n := s.Capacity.In(window)
		total += n
		if n < c.Sites[least].Capacity.In(window) {
			least = i
		}
		if n > c.Sites[most].Capacity.In(window) {
			most = i
		}
	}
	lo, hi := c.Sites[least], c.Sites[most]
	small, large := lo.Capacity.In(window), hi.Capacity.In(window)
	if small == large {
		x.fine("capacity", "configured", "%s a window in all, %s each", report.Bytes(total), report.Bytes(small))
	} else {
		x.fine("capacity", "configured", "%s a window in all, from %s (%s) to %s (%s)", report.Bytes(total), report.Bytes(small), lo.Name, report.Bytes(large), hi.Name)
	}
	if large > 1000*max(small, 1) {
		x.add("capacity", "site "+lo.Name, Look, fmt.Sprintf("takes less than a thousandth of %s", hi.Name), "is its unit right? B, KB, MB, GB, TB per s, m, h or d")
	}
	if rest := total - large; len(c.Sites) > 1 && rest < large {
		x.add("capacity", "site "+hi.Name, Look, "the other sites together can't take its load", "it can't be evacuated when it is full")
	}
	policy := c.Placement.Policy
	if policy == config.Auto {
		policy = "optimal" // That of serve.
	}
	if c.Placement.CooldownOf(policy) == 0 {
		x.add("configuration", "placement.cooldown", Look, "0: an owner may be moved again in the next window",
			"some windows, such as "+config.Duration(3*window).String()+", keep noisy load from moving owners back and forth")
	}
}
