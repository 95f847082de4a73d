package main

import (
	"strings"
	"testing"
)

// TestOperatorsWordsThatMeanNothing are refused before anything is written.
func TestOperatorsWordsThatMeanNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cfg := configure(t, dir, settings{1, 0.3})
	for want, args := range map[string][]string{
		"name a file, or --from-stores":      {"locations", "import"},
		"takes the stores of --config":       {"locations", "import", "--from-stores"},
		"--off has nothing to wait for":      {"evacuate", "east", "--off", "--wait", "--nats", "nats://127.0.0.1:1"},
		"--wait works on a running Penstock": {"evacuate", "east", "--wait", "--state", dir},
		"without one an export is CSV":       {"--json", "locations", "export", "--state", dir},
		"--timeout is of --wait":             {"evacuate", "east", "--timeout", "3s", "--state", dir},
		`penstock.yaml has no site "moon"`:   {"evacuate", "moon", "--config", cfg, "--nats", "nats://127.0.0.1:1"},
		"must be one of \"placement\"":       {"mode", "everything", "act"},
		"is in the future":                   {"rollback", "placement", "--to", "2999-01-01T00:00:00Z", "--state", dir},
	} {
		out, errs, code := command(t, args...)
		if code != 2 || !strings.Contains(errs, want) {
			t.Errorf("%q: exit code %d\n%s%s", args, code, out, errs)
		}
	}
}
