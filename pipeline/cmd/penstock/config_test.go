package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestConfigCheckReadsTheLatencyTable: a table that reports could not use is a
// fault of the configuration.
func TestConfigCheckReadsTheLatencyTable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, table := filepath.Join(dir, "penstock.yaml"), filepath.Join(dir, "rtt.csv")
	text := "sites: [{name: a, lat: 1, lon: 2, capacity: 1MB/h}]\nlatency: " + table + "\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for content, want := range map[string]struct {
		code int
		says string
	}{
		"site,region,rtt_ms\na,a,x\n": {2, "rtt_ms"},
		"site,region,rtt_ms\nb,b,1\n": {2, "site"},
		"site,region,rtt_ms\na,a,1\n": {0, "fine"},
		"":                            {2, ""},
	} {
		if err := os.WriteFile(table, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		out, errs, code := command(t, "config", "check", file)
		if code != want.code || !strings.Contains(out+errs, want.says) {
			t.Errorf("%q: exit code %d, %s%s; expected %d and %q", content, code, out, errs, want.code, want.says)
		}
	}
	if err := os.Remove(table); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := command(t, "config", "check", file); code != 2 || !strings.Contains(errs, "rtt.csv") {
		t.Errorf("without the table: exit code %d, %s", code, errs)
	}
}
