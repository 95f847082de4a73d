package experiment

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"testing"

	"penstock/pipeline/config"
	"penstock/pipeline/report"
	"penstock/pipeline/topology"
	"penstock/pipeline/whatif"
	"penstock/producers/recording"
	"penstock/producers/workload"
	"penstock/schemas/event"
)

// TestAReplayThroughTheBusSaysTheSame sends a day through the whole loop, rows,
// bus, decider and mover, and finds what playing its windows found: the same
// traffic and cases in every hour, the same moves, the same delays.
func TestAReplayThroughTheBusSaysTheSame(t *testing.T) {
	o := small(t)
	params := o.Params.Models[1].day(*o.Day, 3)
	sites := make([]whatif.Site, len(params.Scale.Sites))
	text := "sites:\n"
	c := o.Params.Cases[3] // the tightest
	for i, s := range params.Scale.Sites {
		sites[i] = whatif.Site{Name: s.Name, Lat: s.Lat, Lon: s.Lon}
		text += fmt.Sprintf("  - {name: %s, lat: %v, lon: %v, capacity: %dB/h}\n", s.Name, s.Lat, s.Lon, c.Capacity[i])
	}
	cfg, err := config.Read("day.yaml", []byte(text+"placement: {policy: tmatch, alpha: 0.3, beta: 0.7}\n"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	replay := topology.Replay{
		Files: []string{record(t, params, dir)}, Config: cfg, Out: filepath.Join(dir, "out"), Disorder: -1,
	}
	rep, err := replay.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}

	frames, _, err := frames(context.Background(), params, whatif.Options{Sites: sites})
	if err != nil {
		t.Fatal(err)
	}
	s := newStage(frames, capacities(sites, c.Capacity), o.Params.Alpha, o.Params.Beta)
	s.keepHours, s.play.Objective = true, nil
	ours, err := s.policy(TMatch, false)
	if err != nil {
		t.Fatal(err)
	}
	if len(rep.Windows) != len(ours.Hours) {
		t.Fatalf("%d hours, the replay has %d", len(ours.Hours), len(rep.Windows))
	}
	for i, w := range rep.Windows {
		h := ours.Hours[i]
		if w.Case != h.Case || w.Moves != h.Moves {
			t.Errorf("%s: %s with %d moves, the replay's is %s with %d", w.Start, h.Case, h.Moves, w.Case, w.Moves)
		}
		for j, site := range sites {
			if w.Traffic[site.Name] != h.Traffic[j] {
				t.Errorf("%s: %s serves %d bytes, in the replay %d", w.Start, site.Name, h.Traffic[j], w.Traffic[site.Name])
			}
		}
	}
	if ours.Relieving == 0 || ours.Over == 0 {
		t.Errorf("%d sites over capacity, %d moves out of them: a day on which nothing happens shows nothing", ours.Over, ours.Relieving)
	}
	if d := math.Abs(float64(rep.Execution.Mean - ours.Execution)); d > 1e-9 {
		t.Errorf("execution delay %v, in the replay %v", ours.Execution, rep.Execution.Mean)
	}
	if rep.Latency.Mean != ours.Latency.Mean || rep.Latency.P99 != ours.Latency.P99 {
		t.Errorf("latency delays %+v, in the replay %+v", ours.Latency, rep.Latency)
	}
	for _, base := range s.baselines() {
		within := 0.0
		if base.Strategy == "volley" {
			// Its ties end at the numbers that owners were given, in the order in which
			// they were first seen: in a replay by rows, here by windows.
			within = 0.05
		}
		want := rep.Baselines[base.Strategy]
		if apart(want.Execution.Mean, base.Execution) > within+1e-9 || apart(want.Latency.Mean, base.Latency.Mean) > within {
			t.Errorf("%s: execution delay %v and latency %v, in the replay %v and %v", base.Strategy, base.Execution, base.Latency.Mean, want.Execution.Mean, want.Latency.Mean)
		}
	}
}

// record writes the day as a recording.
func record(t *testing.T, params workload.Params, dir string) string {
	t.Helper()
	g, err := workload.New(params)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "day.parquet")
	w, err := recording.Create(name, recording.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var r event.Request
	for {
		err := g.Next(&r)
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = w.Write(&r)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return name
}

// apart is by how much two figures differ, as a part of the greater.
func apart(a, b report.Figure) float64 {
	if a == b {
		return 0
	}
	return math.Abs(float64(a-b)) / math.Max(math.Abs(float64(a)), math.Abs(float64(b)))
}
