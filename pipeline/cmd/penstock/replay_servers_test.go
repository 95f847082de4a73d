package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"penstock/schemas/control"
)

const servedWorld = `
sites:
  - name: us-east
    lat: 37.3719
    lon: -79.8164
    capacity: 20MB/h
    servers: ["http://10.0.0.1:80", "http://10.0.0.2:80", "http://10.0.0.3:80", "http://10.0.0.4:80"]
  - {name: us-west, lat: 37.783, lon: -122.417, capacity: 20MB/h}
entry: {class: [{path: "/**", class: page}]}
servers:
  classes: {page: {t_max: 100ms, penalty: 2}}
  in_service: 4
  switching: {policy: penalty, initial: 1, cooldown: 20s, start_delay: 2s}
bus: {sync: interval}
`

// recordServed writes a recording of six minutes of requests to the servers of a site: in
// the third and fourth they are late by 200 ms each, and the servers busy.
func recordServed(t testing.TB, name string) {
	t.Helper()
	var b strings.Builder
	b.WriteString("time,op,class,to_component,to_site,to_server,bytes,wait_us,service_us,overdue_us,status\n")
	at := time.Date(2026, 3, 1, 10, 55, 0, 0, time.UTC)
	for i := range 6 * 60 * 20 {
		at = at.Add(50 * time.Millisecond)
		minute, service, overdue := i/1200, 20_000, 0
		if minute == 2 || minute == 3 {
			service, overdue = 180_000, 200_000
		}
		fmt.Fprintf(&b, "%d,read,page,web,us-east,10.0.0.%d:80,2000,%d,%d,%d,200\n", at.UnixMicro(), 1+i%4, overdue/2, service, overdue)
	}
	writeFile(t, name, b.String())
}

// TestReplayServers replays requests of recorded servers: more are turned on when the
// penalties cost more than they do, and off again when they don't. Neither partitions nor
// batches nor flushes change a byte.
func TestReplayServers(t *testing.T) {
	t.Parallel()
	dir, base := t.TempDir(), t.TempDir()
	rec, cfg := filepath.Join(dir, "served.csv"), filepath.Join(dir, "servers.yaml")
	recordServed(t, rec)
	writeFile(t, cfg, servedWorld)
	must(t, "replay", rec, "--config", cfg, "--out", base)
	var on []int
	f, err := os.Open(filepath.Join(base, "commands.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		var c control.Command
		if err := json.Unmarshal(s.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		if c.Kind != control.Servers {
			continue
		}
		if c.Scope != "us-east" || len(c.Servers.On)+len(c.Servers.Off) != 4 {
			t.Errorf("%+v", c.Servers)
		}
		on = append(on, len(c.Servers.On))
	}
	if len(on) < 3 || on[0] != 1 || slices.Max(on) < 3 || on[len(on)-1] >= slices.Max(on) {
		t.Errorf("servers that were on, table by table: %v", on)
	}
	if text := must(t, "explain", "servers", "us-east", "--state", filepath.Join(base, "state")); !strings.Contains(text, "10.0.0.4:80") || !strings.Contains(text, "PenaltyAboveCost") {
		t.Errorf("explained:\n%s", text)
	}
	if text := must(t, "status", "--state", filepath.Join(base, "state")); !strings.Contains(text, " on: 10.0.0.1:80") {
		t.Errorf("status:\n%s", text)
	}
	for _, v := range [][]string{{"--partitions", "1", "--batch-rows", "100", "--flush", "50ms"}, {"--partitions", "16", "--flush", "10s"}} {
		t.Run(strings.Join(v, " "), func(t *testing.T) {
			t.Parallel()
			out := t.TempDir()
			must(t, append([]string{"replay", rec, "--config", cfg, "--out", out}, v...)...)
			same(t, base, out, "commands.jsonl", "decisions.jsonl", "matrices/service.parquet")
		})
	}
}
