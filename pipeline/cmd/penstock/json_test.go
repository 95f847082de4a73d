package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
)

// TestVerbsSpeakJSON runs verbs with --json, and finds the same in it as a person
// reads.
func TestVerbsSpeakJSON(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	decoded := func(code int, into any, args ...string) {
		t.Helper()
		out, errs, got := command(t, append([]string{"--json"}, args...)...)
		d := json.NewDecoder(strings.NewReader(out))
		d.DisallowUnknownFields()
		if err := d.Decode(into); err != nil || got != code || d.More() {
			t.Fatalf("%q: %v, exit code %d\n%s%s", args, err, got, out, errs)
		}
	}
	type initialised struct {
		Fine        bool                                     `json:"fine"`
		Replicas    int                                      `json:"replicas"`
		Partitions  int                                      `json:"partitions"`
		Window      string                                   `json:"window"`
		Differences []struct{ Of, Field, Have, Want string } `json:"differences"`
	}
	var made, same, differs initialised
	b := bustest.Start(t, func(o *bus.Options) { o.Partitions, o.Listen = 3, "127.0.0.1:0" })
	decoded(0, &made, "init", "--nats", b.URL(), "--partitions", "3")
	decoded(0, &same, "init", "--check", "--nats", b.URL(), "--partitions", "3")
	for _, s := range []initialised{made, same} {
		if !s.Fine || s.Replicas != 1 || s.Partitions != 3 || s.Window != "1h" || s.Differences == nil || len(s.Differences) > 0 {
			t.Errorf("init: %+v", s)
		}
	}
	decoded(1, &differs, "init", "--check", "--state", filepath.Join(dir, "none"))
	if differs.Fine || len(differs.Differences) == 0 || differs.Differences[0].Of == "" || differs.Differences[0].Want == "" {
		t.Errorf("init --check: %+v", differs)
	}

	type checked struct {
		File   string   `json:"file"`
		Fine   bool     `json:"fine"`
		Sites  int      `json:"sites"`
		Notes  []string `json:"notes"`
		Faults []struct {
			Line                      int
			Path, Got, Expected, Text string
		} `json:"faults"`
	}
	good, bad, slow := filepath.Join(dir, "good.yaml"), filepath.Join(dir, "bad.yaml"), filepath.Join(dir, "slow.yaml")
	const site = "sites: [{name: a, lat: 1, lon: 2, capacity: 1MB/h}]\n"
	writeFile(t, good, site)
	writeFile(t, bad, site+"placement: {window: 50m}\nnothing: 1\n")
	writeFile(t, slow, site+"latency: "+filepath.Join(dir, "gone.csv")+"\n")
	var fine, faulty, late checked
	decoded(0, &fine, "config", "check", good)
	if !fine.Fine || fine.File != good || fine.Sites != 1 || fine.Faults == nil || fine.Notes == nil || len(fine.Faults) > 0 {
		t.Errorf("config check: %+v", fine)
	}
	decoded(2, &faulty, "config", "check", bad)
	if faulty.Fine || len(faulty.Faults) != 2 || faulty.Faults[0].Line != 2 || faulty.Faults[0].Path != "placement.window" || faulty.Faults[0].Got != "50m" {
		t.Errorf("config check: %+v", faulty)
	}
	decoded(2, &late, "config", "check", slow)
	if late.Fine || len(late.Faults) != 1 || late.Faults[0].Path != "latency" || !strings.Contains(late.Faults[0].Text, "gone.csv") {
		t.Errorf("config check: %+v", late)
	}

	var schemas []struct{ Name, ID string }
	decoded(0, &schemas, "schema")
	if lines := strings.Count(must(t, "schema"), "\n"); len(schemas) != lines || schemas[0].ID != "urn:penstock:"+schemas[0].Name+":1" {
		t.Errorf("schema: %+v, %d lines", schemas, lines)
	}
}
