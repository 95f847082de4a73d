package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"penstock/consumers/panes"
	"penstock/infra/bus/bustest"
	"penstock/schemas/control"
	"penstock/schemas/subject"
	"penstock/schemas/window"
)

// coded writes the record of window n of coding, and a table of a coder if there is one.
func (x *steered) coded(n int, epoch uint64, code string, reasons ...control.Reason) {
	x.t.Helper()
	hash := "sha256:" + strings.Repeat("0", 64)
	x.put(subject.Decisions(string(control.Coding)), control.Decision{
		Version: 1, Kind: control.Coding, Mode: control.Act, Window: splitWindow(n), Reasons: append([]control.Reason{}, reasons...), Commands: []control.CommandRef{},
		Operator: control.Operator{Mode: control.Act}, Policy: hash, State: hash,
	})
	if code == "" {
		return
	}
	h := float64(epoch)
	x.put(subject.Commands(string(control.Coding), "objects"), control.Command{
		Version: 1, Kind: control.Coding, Scope: "objects", Epoch: epoch, Window: splitWindow(n), Mode: control.Act, TTL: "10m",
		Reason: control.Reason{Code: code, Evidence: map[string]any{"most_requests_per_read": 4 + h, "most_usd_per_million_reads": rounded(0.4 * (4 + h))}},
		Coding: &control.CodingTable{Policy: control.CodingTOFEC, Read: control.CodingCodes{K: []float64{h}, N: []float64{control.MaxBacklog, h}, RMax: 2}, Write: control.CodingCodes{K: []float64{}, N: []float64{}, RMax: 1, HedgeUS: 1500}},
	})
}

// fitted is the reason of a fit.
func fitted(store, op string, delta float64) control.Reason {
	return control.Reason{Code: "Fitted", Scope: "objects", Text: op + "s: 300 ended and 20 cancelled tasks", Evidence: map[string]any{
		"store": store, "op": op, "delta_ms": delta, "delta_ms_per_mb": 12.0, "psi_ms": 10.0, "psi_ms_per_mb": 20.0,
	}}
}

// stored is a closed window of the group fast: rows of store, op, n, k, outcome and how
// many, and a queue.
func stored(n int, waiting int64, rows ...[6]any) *panes.Window {
	t := window.NewTable(window.Storage)
	w := splitWindow(n)
	for _, r := range rows {
		t.Append(w.Start.UnixMicro(), []string{r[0].(string), r[1].(string), r[2].(string), r[3].(string), "20", r[4].(string)},
			[]int64{int64(r[5].(int)), 1, 1, 1, 1, 0, 0, 0, 0}, window.Bins{})
	}
	if waiting > 0 {
		t.Append(w.Start.UnixMicro(), []string{"objects", "", "", "", "", ""}, []int64{0, 0, window.NullInt, 0, window.NullInt, 0, 10, 10 * waiting, 2 * waiting}, window.Bins{})
	}
	t.Sort()
	return &panes.Window{Start: w.Start.UnixMicro(), End: w.End.UnixMicro(), Tables: map[string]*window.Table{window.Storage.Name: t}}
}

// TestWhatAReportSaysOfCoding: codes are counted by requests, models are the last, and
// tables that were only sent again are no change.
func TestWhatAReportSaysOfCoding(t *testing.T) {
	t.Parallel()
	x := &steered{t, bustest.Client(t, bustest.Start(t))}
	x.coded(0, 1, "FirstTable", fitted("b", "read", 25), fitted("a", "read", 30), control.Reason{Code: "Untold", Scope: "objects", Evidence: map[string]any{"store": "a", "op": "read"}})
	x.coded(1, 2, "ModelChanged", fitted("a", "read", 20), fitted("a", "write", 40))
	x.coded(2, 3, "Renewed")
	x.coded(3, 0, "", control.Reason{Code: "NoChange", Count: 2}, fitted("mars", "read", 1))
	of := CodingsOf{Config: "sha256:x", Policy: "tofec", USDPerMillionReads: 0.4, Coders: []CodingsOfCoder{{Name: "objects", Stores: []string{"a", "b"}}, {Name: "idle", Stores: []string{"c"}}}}
	s, err := ReadCodings(t.Context(), x.c, of)
	if err != nil {
		t.Fatal(err)
	}
	s.Watch(stored(0, 3, [6]any{"a", "read", "12", "6", "done", 60}, [6]any{"a", "read", "12", "6", "cancelled", 60}, [6]any{"b", "write", "1", "1", "failed", 2}))
	s.Watch(stored(1, 0, [6]any{"a", "read", "2", "1", "done", 20}, [6]any{"b", "read", "3", "2", "done", 60}, [6]any{"a", "write", "", "", "done", 9}, [6]any{"elsewhere", "read", "1", "1", "done", 9}))
	s.Watch(&panes.Window{}) // without tasks
	r := &Report{Kind: KindReplay, Baselines: map[string]Baseline{}}
	s.Fill(r)
	c := r.Coding
	if c.Windows != 4 || c.Tables != 3 || c.Changes != 2 || c.Reasons["Fitted"] != 5 || c.Reasons["NoChange"] != 2 || len(c.Coders) != 2 {
		t.Errorf("%+v", c)
	}
	objects := &c.Coders[0]
	if objects.Tables != 3 || objects.Changes != 2 || objects.Table.Read.K[0] != 2 || !objects.Since.Equal(splitWindow(1).End) {
		t.Errorf("tables %+v", objects)
	}
	// mars was a store of another configuration: what its record said stands.
	if got := fmt.Sprintf("%v", objects.Models); len(objects.Models) != 4 || objects.Models[0].Model.Delta != 20 || objects.Models[0].Fits != 2 || objects.Models[0].Untold || objects.Models[2].Model.Delta != 25 {
		t.Errorf("models %s", got)
	}
	if got, want := fmt.Sprint(objects.Read), "{200 60 0 40 [{2 1 0.25} {3 2 0.5} {12 6 0.25}] [{1 0.25} {2 0.5} {6 0.25}] 0.75}"; got != want {
		t.Errorf("reads %s, expected %s", got, want)
	}
	if objects.Write.Failed != 2 || objects.Write.Requests != 2 || objects.Price != (ReadPrice{5, 2, 7, 2.8}) || objects.Backlog == nil || objects.Backlog.Mean != 3 || objects.Backlog.Most != 6 {
		t.Errorf("%+v, backlog %+v", objects, objects.Backlog)
	}
	if p := objects.Series; len(p) != 2 || p[0].Read != (MeanCode{10, 12, 6}) || p[0].Backlog != 3 || p[1].Read != (MeanCode{30, 2.666667, 1.666667}) || p[1].Backlog.Known() {
		t.Errorf("series %+v", objects.Series)
	}
	idle := &c.Coders[1]
	if idle.Price.AsWere.Known() || len(idle.Series) != 0 || idle.Table != nil {
		t.Errorf("a coder without tasks: %+v", idle)
	}
	pictures, err := c.plots()
	if err != nil || len(pictures) != 1 || pictures[0].Title != "objects: codes" {
		t.Errorf("plots %+v, %v", pictures, err)
	}
	var text strings.Builder
	if err := r.Summary(&text); err != nil || !strings.Contains(text.String(), "coding   4 windows decided by policy tofec, 3 tables, 2 of them new\n"+
		"  objects: 40 reads, 2 writes; 5.00 requests to stores a read, $2.00 a million reads, at most $2.8\n"+
		"    a read: Δ 20 + 12/MB, Ψ 10 + 20/MB ms, reads: 300 ended and 20 cancelled tasks\n") {
		t.Errorf("%v\n%s", err, &text)
	}
	page, err := r.HTML()
	if err != nil || !strings.Contains(string(page), "k by backlog below [2]; n below [∞ 2]; n/k at most 2. For writes: k by backlog below []; n below []; n/k at most 1; the chunks beyond k after 1.5ms.") {
		t.Errorf("the page: %v", err)
	}
	var again Report
	body, err := json.Marshal(r)
	if err == nil {
		err = json.Unmarshal(body, &again)
	}
	if err != nil || again.Coding == nil || len(again.Coding.Coders) != 2 {
		t.Errorf("%v\n%s", err, body)
	}
	x.put(subject.Commands(string(control.Coding), "objects"), "no table")
	if _, err := ReadCodings(t.Context(), x.c, of); !errors.Is(err, control.ErrUndecodable) {
		t.Errorf("a table that cannot be read: %v", err)
	}
}

// TestStatusOfCoding: the last table, with its thresholds and the coder that has it.
func TestStatusOfCoding(t *testing.T) {
	t.Parallel()
	x := &steered{t, bustest.Client(t, bustest.Start(t))}
	x.coded(0, 1, "FirstTable")
	x.put(subject.Outcomes(string(control.Coding), "objects"), control.Outcome{
		Version: 1, Kind: control.Coding, Scope: "objects", Epoch: 1, Status: control.Done, By: "coder-1", At: splitWindow(0).End,
	})
	s, err := NewStatus(t.Context(), x.c)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := s.Print(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"coding: mode act, last decided window ", "  objects: epoch 1, FirstTable, ",
		"    tofec, reads: k by backlog below [1]; n below [∞ 1]; n/k at most 2\n    writes: k by backlog below []; n below []; n/k at most 1; the chunks beyond k after 1.5ms\n    coder coder-1: epoch 1 done\n",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is missing in\n%s", want, &text)
		}
	}
	got, err := TableOf(t.Context(), x.c, control.Coding, "objects")
	if err != nil || got.Coding == nil || got.Rows != nil || len(got.Routers) != 1 {
		t.Errorf("table %+v, %v", got, err)
	}
}
