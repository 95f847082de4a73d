package topology

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"penstock/consumers/executor/serverswitch"
)

// TestServerSwitchFolder: a server switch is refused a state folder that another one has,
// also while one of them would only stand by.
func TestServerSwitchFolder(t *testing.T) {
	t.Parallel()
	cfg := parse(t, `
sites:
  - {name: a, lat: 1, lon: 2, capacity: 1MB/h, url: "http://a.example/", servers: ["http://127.0.0.1:1"]}
servers:
  classes: {other: {t_max: 1s, penalty: 1}}
  switching: {policy: penalty, hooks: [{kind: command, on: ["true"], off: ["true"]}]}
privacy: {user_key: "a key of tests"}
`)
	folder := t.TempDir()
	other, err := serverswitch.Claim(t.Context(), nil, folder)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // it waits for nobody
	s := ServerSwitch{Alone: Alone{Config: cfg, Name: "b", State: folder, NATS: "nats://127.0.0.1:1", Logger: zerolog.Nop()}}
	if err := s.Run(ctx); !errors.Is(err, serverswitch.ErrInUse) || !strings.Contains(err.Error(), folder) || !strings.Contains(err.Error(), "--state") {
		t.Errorf("a second one in the folder: %v", err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Run(ctx); errors.Is(err, serverswitch.ErrInUse) {
		t.Errorf("once the folder is free: %v", err)
	}
}
