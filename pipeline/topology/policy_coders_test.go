package topology

import (
	"slices"
	"testing"

	"penstock/pipeline/config"
)

// TestSplitKnowsTheCoders: what they log of their clients is no call to share out.
func TestSplitKnowsTheCoders(t *testing.T) {
	cfg := config.Default()
	cfg.Coders = []config.Coder{{Name: "objects"}, {Name: "safe"}}
	if got := splitConfig(&cfg).Coders; !slices.Equal(got, []string{"objects", "safe"}) {
		t.Errorf("got %q", got)
	}
	cfg.Coders = nil
	if got := splitConfig(&cfg).Coders; got != nil {
		t.Errorf("without coders: %q", got)
	}
}
