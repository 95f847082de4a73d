package control_test

import (
	"strings"
	"testing"

	"penstock/schemas/control"
)

// A table without a server that is off still says so: its lists are empty, never null,
// and zones are in the order of their names.
func TestServersListsAreAlwaysThere(t *testing.T) {
	c := command()
	c.Kind, c.Placement, c.Scope = control.Servers, nil, "us-east"
	c.Servers = &control.ServersTable{On: []string{"web-2", "web-1"}, ZoneWeights: map[string]float64{"b": 0.25, "a": 0.75}}
	body, err := control.Encode(c)
	if err != nil {
		t.Fatal(err)
	}
	if want := `"servers":{"on":["web-2","web-1"],"off":[],"zone_weights":{"a":0.75,"b":0.25}}`; !strings.Contains(string(body), want) {
		t.Errorf("got %s, expected %s", body, want)
	}
	if c.Servers.Off != nil {
		t.Error("the message itself was changed")
	}
	m, err := control.DecodeCommandOf(control.Servers, body)
	if err != nil || m.Servers == nil || m.Servers.Off == nil {
		t.Errorf("%+v, %v", m, err)
	}
}

// Limits that no message of the corpus is large enough for.
func TestServersTableIsBounded(t *testing.T) {
	names := func(n int) (out []string) {
		for i := range n {
			out = append(out, strings.Repeat("s", 1+i%1000)+string(rune('a'+i/1000)))
		}
		return out
	}
	weights := map[string]float64{}
	for _, z := range names(control.MaxZones + 1) {
		weights[z] = 1
	}
	for _, c := range []struct {
		what  string
		table control.ServersTable
		fault string
	}{
		{"as many as there may be", control.ServersTable{On: names(control.MaxServers), ZoneWeights: map[string]float64{"a": 1e9}}, ""},
		{"one server more", control.ServersTable{On: names(control.MaxServers + 1), ZoneWeights: map[string]float64{"a": 1}}, "4097 servers and 1 zones"},
		{"one zone more", control.ServersTable{On: names(1), ZoneWeights: weights}, "1 servers and 257 zones"},
		{"a weight above the greatest", control.ServersTable{On: names(1), ZoneWeights: map[string]float64{"a": 1.1e9}}, "expected 0 to 1e9"},
		{"a weight that counts for nothing", control.ServersTable{On: names(1), ZoneWeights: map[string]float64{"a": 1e-10}}, "a sum of more than 0"},
	} {
		m := command()
		m.Kind, m.Placement, m.Scope, m.Servers = control.Servers, nil, "us-east", &c.table
		body, err := control.Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := control.DecodeCommand(body); (err == nil) != (c.fault == "") || err != nil && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%s: got %v, expected %q", c.what, err, c.fault)
		}
	}
}
