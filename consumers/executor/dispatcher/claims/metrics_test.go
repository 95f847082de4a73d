package claims

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"penstock/infra/bus/bustest"
)

// TestMetrics: the places of a server are claimed, held by others or free, and together as
// many as it has.
func TestMetrics(t *testing.T) {
	t.Parallel()
	s := newSite(t, 4)
	c := newClaims(Options{Site: "the site", Name: "a"}, nil)
	if err := c.SetServers(s.servers); err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	if err := registry.Register(newCollector(c)); err != nil {
		t.Fatal(err)
	}
	hold := func(want string) {
		t.Helper()
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "penstock_claims_places", "penstock_claims_limit", "penstock_claims_dispatchers"); err != nil {
			t.Error(err)
		}
	}
	const kinds = `# HELP penstock_claims_dispatchers Entry points that share the servers, this one included.
# TYPE penstock_claims_dispatchers gauge
penstock_claims_dispatchers{site="the site"} 1
# HELP penstock_claims_limit Most requests that this entry point may have in service at the server.
# TYPE penstock_claims_limit gauge
`
	hold(kinds + "penstock_claims_limit{server=\"s0\",site=\"the site\"} 0\n")
	c.core.limits["s0"] = 2
	b := book{Dispatchers: []row{
		{Name: "a", Instance: c.core.self.Instance, Servers: map[string]Figures{"s0": {Claim: 2}}},
		{Name: "b", Servers: map[string]Figures{"s0": {Claim: 1}}},
	}}
	c.written = c.core.shared(&b)
	hold(kinds + `penstock_claims_limit{server="s0",site="the site"} 2
# HELP penstock_claims_places Places of the server by the last round: claimed by this entry point, held by others, free.
# TYPE penstock_claims_places gauge
penstock_claims_places{of="claimed",server="s0",site="the site"} 2
penstock_claims_places{of="free",server="s0",site="the site"} 1
penstock_claims_places{of="held",server="s0",site="the site"} 1
`)
}

// TestMetricsOfARound: what a round has written is shown.
func TestMetricsOfARound(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	registry := prometheus.NewRegistry()
	s := newSite(t, 4)
	w := s.start(bustest.Client(t, b), "a", func(o *Options) { o.Registerer = registry })
	s.await("all places", func() bool { return w.limit["s0"] == 4 })
	n := 0
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "penstock_claims_places" {
			for _, m := range f.GetMetric() {
				n += int(m.GetGauge().GetValue())
			}
		}
	}
	if n != 4 {
		t.Errorf("%d places are shown, expected 4", n)
	}
}
