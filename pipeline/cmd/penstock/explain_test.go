package main

import (
	"encoding/json"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet/file"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"
	"github.com/rs/zerolog"

	"penstock/consumers/executor/locations"
	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/objectstore"
	"penstock/pipeline/config"
	"penstock/pipeline/topology"
	"penstock/schemas/control"
	"penstock/schemas/sphere"
	"penstock/schemas/subject"
)

// matrix reads a matrix as rows of named values: text, int64 and float64.
func matrix(t *testing.T, out, rollup string) []map[string]any {
	t.Helper()
	f, err := file.OpenParquetFile(filepath.Join(out, "matrices", rollup+".parquet"), false)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fr, err := pqarrow.NewFileReader(f, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	table, err := fr.ReadTable(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer table.Release()
	rows := make([]map[string]any, table.NumRows())
	for c := range int(table.NumCols()) {
		n := 0
		for _, chunk := range table.Column(c).Data().Chunks() {
			for i := range chunk.Len() {
				if rows[n] == nil {
					rows[n] = map[string]any{}
				}
				if chunk.IsValid(i) {
					rows[n][table.Schema().Field(c).Name] = value(chunk, i)
				}
				n++
			}
		}
	}
	return rows
}

func value(a arrow.Array, i int) any {
	switch x := a.(type) {
	case *array.String:
		return x.Value(i)
	case *array.Int64:
		return x.Value(i)
	case *array.Timestamp:
		return int64(x.Value(i))
	case *array.Float32:
		return float64(x.Value(i))
	}
	return nil
}

// TestExplainFollowsFromTheMatrices explains owners of a replay and works the
// same numbers out anew from matrices/*.parquet, as DESIGN §4.1 says them.
func TestExplainFollowsFromTheMatrices(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	must(t, accessLog(t, out)...)
	cfg, err := config.Load(example("world.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	places := map[string]sphere.Vector{}
	latest := map[string]int64{}
	for _, r := range matrix(t, out, "places") {
		user, at := r["user"].(string), r["time"].(int64)
		if was, ok := latest[user]; !ok || at > was {
			latest[user] = at
			places[user] = sphere.FromDegrees(r["lat"].(float64), r["lon"].(float64))
		}
	}
	social := map[string]map[string]int64{}
	for _, r := range matrix(t, out, "interactions") {
		owner, user := r["owner"].(string), r["user"].(string)
		if social[owner] == nil {
			social[owner] = map[string]int64{}
		}
		social[owner][user] += r["requests"].(int64)
	}
	traffic, last := map[string]int64{}, int64(0)
	for _, r := range matrix(t, out, "traffic") {
		if start := r["window_start"].(int64); start > last {
			last = start
			clear(traffic)
		}
		traffic[r["owner"].(string)] += r["bytes"].(int64)
	}
	checked, located := 0, int64(0)
	for owner := range social {
		e := explained(t, out, owner)
		sw := make([]float64, len(cfg.Sites))
		n := int64(0)
		for user, level := range social[owner] {
			v, ok := places[user]
			if user == owner || !ok {
				continue
			}
			n++
			for i, s := range cfg.Sites {
				sw[i] += float64(level) * sphere.Distance(v, sphere.FromDegrees(s.Lat, s.Lon))
			}
		}
		nsw := normalised(sw)
		for i, s := range e.Sites {
			near(t, owner+" SW at "+s.Site, s.SW, sw[i], 1e-6*math.Max(1, sw[i]))
			near(t, owner+" NSW at "+s.Site, s.NSW, nsw[i], 2e-9)
			// Nobody who asks for pages owns pages: the owner has no place.
			near(t, owner+" E at "+s.Site, s.Weight, cfg.Placement.Beta*nsw[i], 2e-9)
			if s.Capacity != cfg.Sites[i].Capacity.In(cfg.Placement.Window.Std()) {
				t.Errorf("capacity of %s is %d", s.Site, s.Capacity)
			}
		}
		if e.Located != n {
			t.Errorf("%s: %d located users, expected %d", owner, e.Located, n)
		}
		if e.Traffic != traffic[owner] {
			t.Errorf("%s: traffic %d, expected %d", owner, e.Traffic, traffic[owner])
		}
		checked++
		located += n
		if checked == 12 {
			break
		}
	}
	if checked < 12 || located == 0 {
		t.Errorf("%d owners checked, %d located users", checked, located)
	}
	text := must(t, "explain", "blog", "--state", filepath.Join(out, "state"))
	for _, want := range []string{"blog: data is at ", "L-match", "E = α·NDW + β·NSW", "The lower E, the better", "NDW: how far", "MB"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if _, errs, code := command(t, "explain", "nobody", "--state", filepath.Join(out, "state")); code != 1 || !strings.Contains(errs, "unknown owner") {
		t.Errorf("exit code %d, %s", code, errs)
	}
}

func explained(t *testing.T, out, owner string) topology.Explained {
	t.Helper()
	var e topology.Explained
	text := must(t, "--json", "explain", owner, "--state", filepath.Join(out, "state"))
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		t.Fatal(err)
	}
	return e
}

func normalised(v []float64) []float64 {
	least, most := math.Inf(1), math.Inf(-1)
	for _, x := range v {
		least, most = math.Min(least, x), math.Max(most, x)
	}
	out := make([]float64, len(v))
	for i, x := range v {
		if most > least {
			out[i] = (x - least) / (most - least)
		}
	}
	return out
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance {
		t.Errorf("%s: %v, expected %v", what, got, want)
	}
}

func TestOperatorVerbsOnAFinishedReplay(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	must(t, accessLog(t, out, "--until", "2015-05-17T16:00:00Z")...)
	state := filepath.Join(out, "state")
	if text := must(t, "audit", "--state", state); !strings.Contains(text, "every event is accounted for") {
		t.Errorf("audit:\n%s", text)
	}
	// Nothing will be decided here any more, and no verb says that it will.
	ended := "the replay in " + state + " has ended: no window will be decided there any more"
	for _, verb := range [][]string{{"freeze", "placement"}, {"mode", "placement", "advise"}, {"thaw"}} {
		if text := must(t, append(verb, "--state", state)...); !strings.Contains(text, ended) || strings.Contains(text, "next window") {
			t.Errorf("%s: %s", verb, text)
		}
	}
	refused(t, 1, []string{"rollback", "placement", "--to", "2015-05-17T12:00:00Z", "--state", state}, ended, "rollback works on a running Penstock")
	refused(t, 2, []string{"evacuate", "moon", "--state", state}, `there is no site "moon"; the last decision knew `, "eu-west")
	refused(t, 2, []string{"rollback", "placement", "--to", "2199-01-01T00:00:00Z", "--state", state}, "2199-01-01T00:00:00Z is in the future")
	text := must(t, "status", "--state", state)
	for _, want := range []string{"placement: mode act", "operator: mode advise", "FROZEN", "EVENTS", "owners: watermark 2015-"} {
		if !strings.Contains(text, want) || strings.Contains(text, "rollback") {
			t.Errorf("status lacks %q:\n%s", want, text)
		}
	}
	must(t, "thaw", "placement", "--state", state)
	if text := must(t, "status", "--state", state); strings.Contains(text, "FROZEN") {
		t.Errorf("still frozen:\n%s", text)
	}
	if _, errs, code := command(t, "status", "--state", t.TempDir()); code != 1 || !strings.Contains(errs, "no bus under") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if _, _, code := command(t, "mode", "placement", "hurry", "--state", state); code != 2 {
		t.Errorf("exit code %d for a mode that isn't", code)
	}
}

// TestExplainAndVerifyOfADamagedReplay: a command and an outcome that nobody can
// read hide nothing else, and a retired copy that no mover will delete is found.
func TestExplainAndVerifyOfADamagedReplay(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	must(t, accessLog(t, out, "--until", "2015-05-17T16:00:00Z")...)
	state := filepath.Join(out, "state")
	whole := must(t, "explain", "blog", "--state", state)
	b, err := bus.Open(t.Context(), bus.Options{Dir: filepath.Join(state, "bus"), Purpose: bus.Replay, Logger: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	c := bustest.Client(t, b)
	told, err := c.Last(t.Context(), subject.CommandsStream, subject.CommandsOf(string(control.Placement)))
	if err != nil {
		t.Fatal(err)
	}
	outcome, err := c.Last(t.Context(), subject.OutcomesStream, subject.OutcomesOf(string(control.Placement)))
	if err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{told.Subject, outcome.Subject} {
		if _, err := c.Publish(t.Context(), bus.Msg{Subject: to, Data: []byte("{")}); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	said := "\n2 commands or outcomes on the bus cannot be read; they are left out\n"
	if text := must(t, "explain", "blog", "--state", state); text != whole+said {
		t.Errorf("of a damaged bus:\n%s\nand before:\n%s", text, whole)
	}

	verify := []string{"locations", "verify", "--replay", "--config", example("world.yaml"), "--state", state}
	if text := must(t, append([]string{"--json"}, verify...)...); !strings.Contains(text, `"problems":[]`) || !strings.Contains(text, `"live":`) {
		t.Errorf("verified:\n%s", text)
	}
	cfg, err := config.Load(example("world.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	stores, err := topology.ReplayStores(cfg, state)
	if err != nil {
		t.Fatal(err)
	}
	away := objectstore.Mark{State: objectstore.Retired, Version: 1, Site: explained(t, out, "blog").Site}
	for site, st := range stores {
		if site != away.Site {
			if err := st.Mark(t.Context(), "blog", objectstore.Mark{State: objectstore.Absent}, away); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	text, _, code := command(t, verify...)
	if code != 1 || !strings.Contains(text, ": "+string(locations.Unjournalled)+": ") {
		t.Errorf("exit code %d with a copy that no mover knows of:\n%s", code, text)
	}
}
