package main

import (
	"bytes"
	"os"
	"os/exec"
	"testing"
)

// process is this command as a process of its own, which kills itself at the
// nth time that it comes to a point ("point:n"), or never ("").
func process(t testing.TB, kill string, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), exe, args...)
	c.Env = append(os.Environ(), "PENSTOCK_RUN=1", "PENSTOCK_KILL="+kill)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%v\n%s", args, out.String())
		}
	})
	return c
}

func writeFile(t testing.TB, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
