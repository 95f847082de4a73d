package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestOperatorsWordsThatMeanNothing are refused before anything is written.
func TestOperatorsWordsThatMeanNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cfg := configure(t, dir, settings{1, 0.3})
	for want, args := range map[string][]string{
		"name a file, or --from-stores":                       {"locations", "import"},
		"takes the stores of --config":                        {"locations", "import", "--from-stores"},
		"--off has nothing to wait for":                       {"evacuate", "east", "--off", "--wait", "--nats", "nats://127.0.0.1:1"},
		"--wait works on a running Penstock":                  {"evacuate", "east", "--wait", "--state", dir},
		"without one an export is CSV":                        {"--json", "locations", "export", "--state", dir},
		"--timeout is of --wait":                              {"evacuate", "east", "--timeout", "3s", "--state", dir},
		`penstock.yaml has no site "moon"`:                    {"evacuate", "moon", "--config", cfg, "--nats", "nats://127.0.0.1:1"},
		"must be one of \"placement\"":                        {"mode", "everything", "act"},
		"such as 2026-03-01T10:00:00Z":                        {"rollback", "placement", "--to", "yesterday", "--state", dir},
		"explain split SCOPE[@SITE]":                          {"explain", "split", "--state", dir},
		"explain placement OWNER":                             {"explain", "placement", "--state", dir},
		"neither --grpc (spans.grpc) nor --http (spans.http)": {"receive", "--config", cfg, "--nats", "nats://127.0.0.1:1", "--state", dir, "--grpc", "off", "--http", "off"},
		"nothing is left to do":                               {"router", "--config", cfg, "--nats", "nats://127.0.0.1:1", "--state", dir, "--listen", "off"},
		"is in the future":                                    {"rollback", "placement", "--to", "2999-01-01T00:00:00Z", "--state", dir},
	} {
		out, errs, code := command(t, args...)
		if code != 2 || !strings.Contains(errs, want) {
			t.Errorf("%q: exit code %d\n%s%s", args, code, out, errs)
		}
	}
}

// TestSwitchesOfKindsThatNobodyDecides stand, and say that nobody heeds them; a
// rollback of what was never decided is refused.
func TestSwitchesOfKindsThatNobodyDecides(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	must(t, "init", "--state", state)
	for _, c := range []struct {
		args       []string
		code       int
		says, note string
	}{
		{[]string{"mode", "split", "act"}, 0, "split: mode act", "no decider of split has run on this bus"},
		{[]string{"freeze", "servers"}, 0, "servers: frozen", "no decider of servers has run on this bus"},
		{[]string{"thaw", "servers"}, 0, "servers: thawed", "no decider of servers has run on this bus"},
		{[]string{"mode", "placement", "advise"}, 0, "placement: mode advise", ""},
		{[]string{"freeze"}, 0, "all: frozen", ""},
		{[]string{"rollback", "split", "--to", "2020-01-01T00:00:00Z"}, 1, "", "split has decided nothing, and no decider of split has run on this bus: one does where the configuration has components: there"},
		{[]string{"rollback", "placement", "--to", "2020-01-01T00:00:00Z"}, 1, "", "placement has decided nothing yet"},
		{[]string{"evacuate", "coding"}, 0, "", `nothing was decided yet on this bus, so that its sites are not known: "coding"`},
	} {
		out, errs, code := command(t, append(c.args, "--state", state)...)
		if code != c.code || !strings.Contains(out, c.says) || !strings.Contains(errs, c.note) || c.note == "" && errs != "" {
			t.Errorf("%q: exit code %d\n%s%s", c.args, code, out, errs)
		}
	}
	var said struct{ Key, Note string }
	if out := must(t, "--json", "mode", "coding", "act", "--state", state); json.Unmarshal([]byte(out), &said) != nil ||
		said.Key != "mode.coding" || !strings.HasPrefix(said.Note, "no decider of coding has run on this bus") {
		t.Errorf("got %s", out)
	}
	if out := must(t, "status", "--state", state); strings.Contains(out, "rollback") || !strings.Contains(out, "split: nothing decided yet; operator: mode act") {
		t.Errorf("status:\n%s", out)
	}
}
