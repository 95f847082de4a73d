package control

import (
	"fmt"
	"maps"
	"slices"
)

// Limits of a servers table, so that a command stays within a message.
const (
	MaxServers = 4096 // of a site, on and off
	MaxZones   = 256
	// MaxZoneWeight is the greatest weight of a zone. A weight counts to ZoneWeightUnit:
	// weights that add up to less are none.
	MaxZoneWeight  = 1e9
	ZoneWeightUnit = 1e-9
)

// SwitchTarget is the Target of the outcomes of those that turn machines on and off.
// They alone tell whether a server is on: dispatchers answer a table of servers too,
// with another target, once they give requests by it.
const SwitchTarget = "serverswitch"

// ServersTable is the payload of servers: which servers of a site are to be on, and how
// its zones share the site's requests (the command's scope is the site). It is the whole
// state of the site and replaces the table before it.
type ServersTable struct {
	// On are to be on and get requests. At least one is.
	On []string `json:"on"`
	// Off get no new request; once what they have in service is done, they are turned
	// off. A server that stands in neither list is none of the table's concern.
	Off []string `json:"off"`
	// ZoneWeights are relative: a zone gets its weight over the sum of all. A zone with 0,
	// or without a weight, gets none.
	ZoneWeights map[string]float64 `json:"zone_weights"`
}

func (t *ServersTable) canonical() *ServersTable {
	out := *t
	if out.On == nil {
		out.On = []string{}
	}
	if out.Off == nil {
		out.Off = []string{}
	}
	if out.ZoneWeights == nil {
		out.ZoneWeights = map[string]float64{}
	}
	return &out
}

// servers checks a table. One without a server that is on, or whose weights are all
// zero, would leave a site without a place for its requests (P31, P33).
func (c *checker) servers(t *ServersTable) {
	if len(t.On)+len(t.Off) > MaxServers || len(t.ZoneWeights) > MaxZones {
		c.fail("servers", fmt.Sprintf("%d servers and %d zones", len(t.On)+len(t.Off), len(t.ZoneWeights)), fmt.Sprintf("at most %d and %d", MaxServers, MaxZones))
		return
	}
	if len(t.On) == 0 {
		c.fail("servers.on", "no server", "at least one")
	}
	if t.Off == nil {
		c.fail("servers.off", "", "a list")
	}
	seen := make(map[string]bool, len(t.On)+len(t.Off))
	for _, list := range []struct {
		field string
		names []string
	}{{"servers.on", t.On}, {"servers.off", t.Off}} {
		for i, name := range list.names {
			field := fmt.Sprintf("%s[%d]", list.field, i)
			c.id(field, name)
			if seen[name] {
				c.fail(field, name, "each server once, on or off")
			}
			seen[name] = true
		}
	}
	var sum float64
	for _, zone := range slices.Sorted(maps.Keys(t.ZoneWeights)) {
		field, w := fmt.Sprintf("servers.zone_weights[%.80s]", zone), t.ZoneWeights[zone]
		c.id(field, zone)
		if !(w >= 0 && w <= MaxZoneWeight) {
			c.fail(field, fmt.Sprint(w), "0 to 1e9")
		}
		sum += w
	}
	if !(sum >= ZoneWeightUnit) {
		c.fail("servers.zone_weights", fmt.Sprint("a sum of ", sum), "a sum of more than 0")
	}
}

// failed checks the servers of an outcome that are not as the table wants them.
func (c *checker) failed(kind Kind, status Status, names []string) {
	switch {
	case len(names) == 0:
		return
	case kind != Servers || status != Failed:
		c.fail("failed", fmt.Sprint(len(names), " servers"), "none but in a failed outcome of kind servers")
		return
	case len(names) > MaxServers:
		c.fail("failed", fmt.Sprint(len(names), " servers"), fmt.Sprintf("at most %d", MaxServers))
		return
	}
	seen := make(map[string]bool, len(names))
	for i, name := range names {
		field := fmt.Sprintf("failed[%d]", i)
		c.id(field, name)
		if seen[name] {
			c.fail(field, name, "each server once")
		}
		seen[name] = true
	}
}
