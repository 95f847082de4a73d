package topology

import (
	"slices"
	"testing"

	"penstock/pipeline/config"
)

// TestPoliciesKnowTheCoders: what they log of their clients is no call to share out, and none
// of a server that the configuration lacks.
func TestPoliciesKnowTheCoders(t *testing.T) {
	cfg := config.Default()
	cfg.Coders = []config.Coder{{Name: "objects"}, {Name: "safe"}}
	if got := splitConfig(&cfg).Coders; !slices.Equal(got, []string{"objects", "safe"}) {
		t.Errorf("split: got %q", got)
	}
	if got := serversConfig(&cfg).Coders; !slices.Equal(got, []string{"objects", "safe"}) {
		t.Errorf("servers: got %q", got)
	}
	cfg.Coders = nil
	if got := splitConfig(&cfg).Coders; got != nil {
		t.Errorf("without coders: %q", got)
	}
}
