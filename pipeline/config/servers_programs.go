package config

import (
	"fmt"
	"os/exec"
	"strings"
)

// MissingPrograms names the programs of command hooks that can't be run on this machine: not
// found, or not executable. They are no faults of the file, for only the machines of server
// switches need them: Load does not look at them. It reads the file again, to say where each
// stands. A program whose name has a placeholder in it can't be looked for.
func MissingPrograms(file string) (Faults, error) {
	content, err := contentOf(file)
	if err != nil {
		return nil, err
	}
	cfg, d, err := read(file, content)
	if err != nil {
		return nil, err
	}
	var missing Faults
	for i := range cfg.Servers.Switching.Hooks {
		h := &cfg.Servers.Switching.Hooks[i]
		if h.Kind != "command" {
			continue
		}
		for _, c := range []struct {
			field string
			argv  []string
		}{{"on", h.On}, {"off", h.Off}, {"status", h.Status}} {
			if len(c.argv) == 0 || strings.Contains(c.argv[0], "{") {
				continue
			}
			if _, err := exec.LookPath(c.argv[0]); err != nil {
				missing = append(missing, d.at(fmt.Sprintf("servers.switching.hooks[%d].%s", i, c.field), c.argv[0], "a program that can be run where penstock serverswitch runs, which here it can't"))
			}
		}
	}
	return missing, nil
}
