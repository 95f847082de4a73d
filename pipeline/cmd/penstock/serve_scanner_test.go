package main

import (
	"strings"
	"testing"

	"penstock/infra/objectstore"
)

// TestEvacuateAfterAScanner empties a site at which somebody has asked for an owner
// that does not exist: nothing of it is there, so that it keeps no site from being
// empty.
func TestEvacuateAfterAScanner(t *testing.T) {
	t.Parallel()
	const owners = 6
	at := serveCrowd(t, owners)
	cfg, s, w, homes, op := at.config, at.server, at.crowd, at.homes, at.op
	if err := homes["east"].Delete(t.Context(), ownerName(4), objectstore.Mark{}); err != nil {
		t.Fatal(err)
	}
	op("mode", "placement", "act")
	w.decision(w.send("east"))
	empty := start(t, "evacuate", "east", "--wait", "--config", cfg, "--nats", s.bus)
	eventually(t, "the evacuation to be under way", func() bool { return strings.Contains(empty.out.String(), "remaining") })
	w.decision(w.send("east"))
	w.outcomes(owners)
	w.located()
	w.decision(w.send("east"))
	if code := empty.code(); code != 0 {
		t.Errorf("exit code %d: %s%s", code, empty.out.String(), empty.errs.String())
	}
	for _, want := range []string{"east: 0 remaining, 1 more were asked for and have no data there\n", "east is empty;"} {
		if !strings.Contains(empty.out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, empty.out.String())
		}
	}
}
