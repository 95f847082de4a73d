package doctor

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"penstock/infra/bus/bustest"
	"penstock/pipeline/config"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

const coders = `
coders:
  - {name: objects, site: a, listen: "127.0.0.1:9200", keys_file: keys, stores: [{name: east-1, url: "dir:objects"}]}
  - {name: safe, site: a, listen: "127.0.0.1:9201", keys_file: keys, layout: spread, n: 3, k: 2, stores: [{name: x, url: "dir:x"}, {name: y, url: "dir:y"}, {name: z, url: "dir:z"}]}
`

func TestConfigurationsThatCode(t *testing.T) {
	for name, c := range map[string]struct {
		text, what string
		verdict    Verdict
		says       string
	}{
		"a good one":            {"", "coders", Fine, "2, coded by policy tofec in windows of 10s"},
		"few requests":          {"coding: {k_max: 1, max_requests: 2}", "coder safe", Look, "max_requests 2 lets a read ask 2 of its 3 stores, and none in place of one that is slow"},
		"fewer than it needs":   {"coding: {k_max: 1, max_requests: 1}", "coder safe", Look, "max_requests 1 lets a read ask 2 of its 3 stores"},
		"a low price":           {"coding: {max_read_price: 0.5}", "coder safe", Look, "max_read_price 0.5 is less than the 2 requests that each read needs cost"},
		"a price of nothing":    {"coding: {max_read_price: 1}\nprices: {store_reads: 0}", "coding", Look, "caps nothing"},
		"too few connections":   {"coding: {connections: 4}", "coder objects", Look, "4 connections, and a read may need 6 chunks"},
		"connections of spread": {"coding: {connections: 1}", "coder safe", Look, "1 connections, and a read may need 2 chunks"},
	} {
		t.Run(name, func(t *testing.T) {
			want(t, Run(t.Context(), Options{Config: read(t, sites+coders+c.text)}), "configuration", c.what, c.verdict, c.says)
		})
	}
	for _, f := range Run(t.Context(), Options{Config: read(t, sites+coders)}).Findings {
		if strings.HasPrefix(f.What, "cod") && f.Verdict != Fine {
			t.Errorf("of a good one: %+v", f)
		}
	}
	refused := Options{Config: read(t, sites+coders), Coding: func() error { return fmt.Errorf("k_max is beyond all") }}
	want(t, Run(t.Context(), refused), "configuration", "coders", Broken, "k_max is beyond all serve refuses")
	bare := "sites: [{name: a, lat: 10, lon: 20, capacity: 1MB/h}]\n" + coders
	want(t, Run(t.Context(), Options{Config: read(t, bare)}), "configuration", "placement", Fine, "no site has a store: requests are coded, and no data is moved")
}

func TestACodingThatNobodyFollows(t *testing.T) {
	b := bustest.Start(t, listening)
	x := &steering{t: t, b: b, c: bustest.Client(t, b)}
	looks := func(text string) *Report {
		t.Helper()
		var cfg *config.Config
		if text != "" {
			cfg = read(t, text)
		}
		return onBus(t, b, Options{Config: cfg})
	}
	kind, hash := string(control.Coding), "sha256:"+strings.Repeat("0", 64)
	end := time.Now().UTC().Truncate(time.Second)
	w := control.Window{Start: end.Add(-10 * time.Second), End: end}
	decide := func(epoch uint64, mode control.Mode, samples float64, reasons ...control.Reason) {
		t.Helper()
		x.put(subject.Decisions(kind), control.Decision{
			Version: 1, Kind: control.Coding, Mode: mode, Window: w, Reasons: reasons, Commands: []control.CommandRef{{Scope: "objects", Epoch: epoch}},
			Operator: control.Operator{Mode: mode}, Policy: hash, State: hash,
		})
		codes := control.CodingCodes{K: []float64{1}, N: []float64{2}, RMax: 2}
		x.put(subject.Commands(kind, "objects"), control.Command{
			Version: 1, Kind: control.Coding, Scope: "objects", Epoch: epoch, Window: w, Mode: mode, TTL: "10m",
			Reason: control.Reason{Code: "FirstTable", Evidence: map[string]any{"read_samples": samples, "write_samples": 0.0}},
			Coding: &control.CodingTable{Policy: control.CodingTOFEC, Read: codes, Write: codes},
		})
	}
	answer := func(epoch uint64, status control.Status, reason string) {
		t.Helper()
		x.put(subject.Outcomes(kind, "objects"), control.Outcome{
			Version: 1, Kind: control.Coding, Scope: "objects", Epoch: epoch, Status: status, Reason: reason, By: "coder-1", At: time.Now().UTC(),
		})
	}
	want(t, looks(sites+coders), "decisions", "coding", Look, "nothing was decided yet")
	decide(1, control.Advise, 0)
	answer(1, control.Advised, "")
	r := looks(sites + coders)
	want(t, r, "decisions", "coding", Fine, "decided in mode advise")
	want(t, r, "decisions", "coding of objects", Look, "coder coder-1: epoch 1 advised: it records what is decided and applies nothing penstock mode coding act")
	want(t, r, "decisions", "coding of objects", Look, "its thresholds rest on the delays of the configuration's beginning")
	want(t, looks(sites), "decisions", "coding", Look, "has no coders")
	decide(
		2, control.Act, 900, control.Reason{Code: "UnknownStore", Scope: "mars", Text: "x"}, control.Reason{Code: "BadRow", Count: 3, Text: "without a store"},
		control.Reason{Code: "UnknownCoder", Scope: "venus", Text: "x"}, control.Reason{Code: "FailedTasks", Scope: "objects", Count: 1, Evidence: map[string]any{"store": "east-1", "tasks": 7}},
	)
	answer(2, control.Failed, "the state folder is full")
	r = looks(sites + coders)
	want(t, r, "decisions", "coding of objects", Broken, "coder coder-1: epoch 2 failed: the state folder is full")
	want(t, r, "decisions", "coding of objects", Look, "7 tasks to east-1 failed in the last window")
	want(t, r, "decisions", "coding", Look, `tasks of the store "mars" are left out`)
	want(t, r, "decisions", "coding", Look, `the queue of the coder "venus" is left out`)
	want(t, r, "decisions", "coding", Look, "3 tasks cannot be used without a store")
	for _, f := range find(r, "decisions", "coding of objects") {
		if strings.Contains(f.Text, "thresholds rest") {
			t.Errorf("what was measured is no default: %+v", f)
		}
	}
}
