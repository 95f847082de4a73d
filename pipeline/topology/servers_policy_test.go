package topology

import (
	"testing"

	"penstock/consumers/executor/dispatcher/pool"
	"penstock/pipeline/config"
)

// TestConfigurationKnowsTheServerPolicies: what a configuration takes is what there is, as
// the two stand where neither can see the other.
func TestConfigurationKnowsTheServerPolicies(t *testing.T) {
	t.Parallel()
	there := pool.Policies()
	if len(config.ServerPolicies) != len(there) {
		t.Fatalf("a configuration takes %q, there are %q", config.ServerPolicies, there)
	}
	for i, name := range config.ServerPolicies {
		if name != string(there[i]) {
			t.Errorf("policy %d is %q in a configuration, and %q in the pool", i, name, there[i])
		}
	}
}
