package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"penstock/pipeline/config"
)

// TestMissingPrograms: a hook's program that isn't there, or can't be run, is named with its
// line and field; one that is there, and one whose name depends on the server, are not.
func TestMissingPrograms(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "penstock.yaml")
	text := `sites:
  - {name: us-east, lat: 37.4, lon: -79.8, capacity: 1TB/h, url: "http://127.0.0.1:1", servers: ["http://127.0.0.1:2"]}
entry: {class: [{path: "/**", class: page}]}
servers:
  classes: {page: {t_max: 100ms, penalty: 2}}
  switching:
    policy: penalty
    hooks:
      - kind: command
        on: [no-such-program-anywhere, start]
        off: [` + plain + `]
        status: [sh, -c, "true"]
      - {kind: command, on: ["/srv/{server}/start"], off: [sh]}
privacy: {user_key: "only for this test"}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Load(file); err != nil {
		t.Fatal(err)
	}
	missing, err := config.MissingPrograms(file)
	if err != nil {
		t.Fatal(err)
	}
	const rest = ", expected a program that can be run where penstock serverswitch runs, which here it can't"
	got := missing.Error()
	for i, want := range []string{
		file + `:10: servers.switching.hooks[0].on: got "no-such-program-anywhere"` + rest,
		file + `:11: servers.switching.hooks[0].off: got `,
	} {
		if line := strings.Split(got+"\n", "\n")[i]; !strings.HasPrefix(line, want) {
			t.Errorf("got %q, expected %q", line, want)
		}
	}
	if len(missing) != 2 {
		t.Errorf("%v", missing)
	}
}
