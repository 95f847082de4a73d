package xds

import (
	"errors"
	"os"
	"strings"
	"testing"

	"penstock/infra/shares"
)

// TestReadBase reads the example, which can be served with splits over a route and
// over localities.
func TestReadBase(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../../infra/examples/router/envoy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	b, err := ReadBase(text)
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Listeners) != 1 || len(b.Routes) != 1 || len(b.Clusters) != 4 || len(b.Endpoints) != 1 {
		t.Errorf("read %d listeners, %d routes, %d clusters, %d endpoints", len(b.Listeners), len(b.Routes), len(b.Clusters), len(b.Endpoints))
	}
	target, err := New(Options{Base: b, Splits: []Split{
		{Link: shares.Link{From: "web", FromSite: "us-east", To: "search"}, RouteConfig: "main", Route: "search", Clusters: map[string]string{"us-east": "search-east", "us-west": "search-west"}},
		{Link: shares.Link{From: "web", FromSite: "us-east", To: "cart"}, Endpoints: "cart", Zones: map[string]string{"us-east": "us-east-1a", "us-west": "us-west-1b"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	row := shares.Row{FromSite: "us-east", To: "search", Ratios: []shares.Ratio{{Site: "us-east", Share: 0.62}, {Site: "us-west", Share: 0.38}}}
	if n, err := target.Put(t.Context(), shares.Table{From: "web", Epoch: 1, Rows: []shares.Row{row}}); n != 1 || err != nil {
		t.Errorf("%d changes, %v", n, err)
	}
}

// TestReadBaseFaults names each, by its place.
func TestReadBaseFaults(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"{":                                 {"configuration"},
		"listener: []":                      {"unknown field \"listener\""},
		"clusters: [{nam: a}, {name: [1]}]": {"clusters[0]", "clusters[1]", "nam"},
		"listeners: [{name: a, filter_chains: [{filters: [{name: x, typed_config: {'@type': type.googleapis.com/nobody.Knows}}]}]}]": {"listeners[0]", "nobody.Knows"},
	} {
		_, err := ReadBase([]byte(text))
		if !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", text, err)
			continue
		}
		for _, part := range want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v does not tell of %s", text, err, part)
			}
		}
	}
}
