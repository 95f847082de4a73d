package testserver

import (
	"path/filepath"
	"testing"
)

// HAProxy starts Debian's HAProxy with a configuration, which settings returns
// for the address to listen on and the folder of its files. Where it can't be
// had the test fails.
func HAProxy(t testing.TB, settings func(address, folder string) string) *Program {
	t.Helper()
	return startProgram(t, "haproxy", "haproxy", func(address, folder string) (string, []string, error) {
		conf := filepath.Join(folder, "haproxy.cfg")
		return "KILL", []string{"-db", "-f", conf}, writeFile(conf, settings(address, folder))
	})
}
