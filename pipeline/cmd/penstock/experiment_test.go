package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

// TestExperimentSaysWhatIsWrongWithItsOptions: what cannot be run ends with exit
// code 2 before anything is made up.
func TestExperimentSaysWhatIsWrongWithItsOptions(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"no seeds", []string{"placement", "--seeds", "0"}, "--seeds: got 0, expected at least 1"},
		{"a folder without tables", []string{"placement", "--data", t.TempDir()}, "--data: measured data of clouds"},
		{"no folder", []string{"placement", "--data", "nowhere-at-all"}, "nowhere-at-all"},
		{"no draws", []string{"split", "--seeds", "0"}, "--seeds: got 0, expected at least 1"},
		{"no luck", []string{"coding", "--seeds", "0"}, "--seeds: got 0, expected at least 1"},
		{"a file without sizes", []string{"coding", "--sizes", "experiment_test.go"}, "--sizes: recorded sizes: file of sizes: line 1: got"},
		{"a folder without recordings", []string{"split", "--data", t.TempDir()}, "--data: recorded arrivals"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out, err bytes.Buffer
			code := run(context.Background(), append([]string{"experiment"}, c.args...), &out, &err)
			if code != 2 || !strings.Contains(err.String(), c.want) {
				t.Errorf("exit code %d and %q, expected 2 and %q", code, err.String(), c.want)
			}
		})
	}
}
