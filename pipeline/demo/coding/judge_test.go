package coding

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"penstock/consumers/decider/coding/threshold"
	"penstock/infra/golden"
	"penstock/pipeline/demo/machine"
	"penstock/schemas/control"
	"penstock/schemas/window"
)

// good is a run of which all promises were kept.
func good(t *testing.T) *judge {
	t.Helper()
	d := &Demo{Scale: 2, Writes: 0.05}
	r := &Result{
		Phases:  []Phase{{Name: "light", Percent: 5}, {Name: "heavy", Percent: 85}, {Name: "slower", Percent: 40, Slower: true}},
		Account: &window.Account{Received: 50_000, Counted: 50_000}, Commands: 3, Decisions: 9,
		Outcomes: map[control.Status]int{control.Done: 3, control.Advised: 6}, Dir: "out",
	}
	for i, p := range policies {
		a := ArmResult{Policy: p.text, Due: 3000, Answered: 3000, Asked: 9000, Gone: 12}
		for k, mean := range [][]float64{{88, 300, 200}, {256, 290, 260}, {90, 5600, 5600}}[i] {
			a.Phases = append(a.Phases, PhaseResult{Phase: r.Phases[k].Name, Reads: 200, Served: 54, Mean: mean, SD: mean / 2, K: 3, Asked: 3, USD: 1.2})
		}
		if i == 2 {
			a.Answered, a.Refused = 2000, 1000
			a.Phases[1].Refused, a.Phases[1].Served = 700, 18
		}
		r.Arms = append(r.Arms, a)
	}
	read, _ := d.truth(false)
	slow, _ := d.truth(true)
	r.Learned = []Learned{
		{When: "before", Epoch: 2, True: read, Found: read, K: []float64{1, 0.5}, TrueK: []float64{1, 0.5}},
		{When: "at the end", Epoch: 3, True: slow, Found: slow, K: []float64{0.4, 0.2}, TrueK: []float64{0.4, 0.2}},
	}
	r.Usage = []machine.Usage{{When: "light", Seconds: 10, Ours: 0.1, All: 0.2, Late: 0.1}}
	return &judge{Result: r, demo: d, gains: []float64{2.9, 0, 0}}
}

func (j *judge) broken() (out []string) {
	for _, c := range j.Checks {
		if !c.Kept {
			out = append(out, c.What)
		}
	}
	return out
}

// TestEachPromiseCanBeBroken, and alone.
func TestEachPromiseCanBeBroken(t *testing.T) {
	j := good(t)
	j.run()
	if b := j.broken(); len(b) > 0 || len(j.Checks) != 23 {
		t.Fatalf("%d checks, broken %q", len(j.Checks), b)
	}
	for what, change := range map[string]func(*judge){
		"light: mean delay":                   func(j *judge) { j.Arms[0].Phases[0].Mean = 130 },
		"heavy: requests that tofec refused":  func(j *judge) { j.Arms[0].Phases[1].Refused = 1 },
		"heavy: requests that (12,6) refused": func(j *judge) { j.Arms[2].Phases[1].Refused = 0 },
		"heavy: answers a second":             func(j *judge) { j.Arms[2].Phases[1].Served = 30 },
		"heavy: mean delay":                   func(j *judge) { j.Arms[0].Phases[1].Mean = 400 },
		"(1,1): reads of other bytes":         func(j *judge) { j.Arms[1].Wrong = 1 },
		"(12,6): requests that failed":        func(j *judge) { j.Arms[2].Failed = 1 },
		"tofec: requests that failed":         func(j *judge) { j.Arms[0].Answered-- },
		"tofec: objects not":                  func(j *judge) { j.Arms[0].Left.Unintended = 1 },
		"(12,6): objects not":                 func(j *judge) { j.Arms[2].Left.Deletes = 1 },
		"tofec: connections in use":           func(j *judge) { j.Arms[0].Left.Connections = 1 },
		"(1,1): connections in use":           func(j *judge) { j.Arms[1].Under = 1 },
		"delays that were learned, before":    func(j *judge) { j.Learned[0].Usage = 0.2 },
		"delays that were learned, at the":    func(j *judge) { j.Learned[1].Delay = 0.2 },
		"thresholds once":                     func(j *judge) { j.Learned[1].K = []float64{1.5, 1} },
		"events that are":                     func(j *judge) { j.Account.Late, j.Account.Counted = 1, j.Account.Counted-1 },
		Accounted:                             func(j *judge) { j.audit = errors.New("a flush is lost") },
		Accounted + ", a":                     func(j *judge) { j.Account.Received, j.Account.Counted = 100, 100 },
		Accounted + ", a row":                 func(j *judge) { j.Account.Counted-- },
		Accounted + ", a row at":              func(j *judge) { j.Account.LostBatches = 1 },
		"tables":                              func(j *judge) { j.Outcomes = map[control.Status]int{control.Advised: 1} },
	} {
		j := good(t)
		change(j)
		j.run()
		if b := j.broken(); len(b) != 1 || !strings.HasPrefix(b[0], what) {
			t.Errorf("%s: broken %q", what, b)
		}
	}
	// What chance makes of few reads is no failure.
	j = good(t)
	j.Arms[0].Phases[0].Mean, j.Arms[0].Phases[0].Reads = 110, 20
	j.run()
	if b := j.broken(); len(b) > 0 {
		t.Errorf("broken %q", b)
	}
}

func TestGoldenResult(t *testing.T) {
	j := good(t)
	j.Arms[0].Wrong = 2
	j.run()
	j.Void, j.Broken = nil, j.broken()
	golden.File(t, "result.golden", j.String()+"\n")
	if err := j.err(); !errors.Is(err, ErrPromise) || errors.Is(err, ErrVoid) {
		t.Error(err)
	}
	j.Void = []string{"late"}
	if err := j.err(); !errors.Is(err, ErrVoid) || !strings.Contains(j.String(), "void") {
		t.Error(err)
	}
	j.Dir = t.TempDir()
	for i := range j.Arms {
		j.Arms[i].Curve = []Point{{At: 0, K: 6, N: 12}, {At: 1, K: 5, N: 11}}
	}
	if err := j.write(); err != nil {
		t.Error(err)
	}
}

// TestWhatWasLearned is compared with the truth at both times.
func TestWhatWasLearned(t *testing.T) {
	s := &show{Demo: &Demo{Scale: 2}}
	s.phases = s.timetable()
	s.start = t0
	of := func(m threshold.Model) control.CodingDelay {
		return control.CodingDelay{Delta: m.Delta, DeltaPerMB: m.DeltaPerMB, Psi: m.Psi, PsiPerMB: m.PsiPerMB}
	}
	read, _ := s.truth(false)
	slow, _ := s.truth(true)
	half := read
	half.Psi *= 1.5
	var commands []*control.Command
	for i, x := range []struct {
		m  threshold.Model
		at int
	}{{half, 20}, {read, 100}, {half, 230}, {slow, 260}} {
		c := &control.Command{Epoch: uint64(i + 1), Coding: &control.CodingTable{Model: control.CodingModel{Read: of(x.m)}}}
		c.Window.End = t0.Add(seconds(x.at))
		commands = append(commands, c)
	}
	got := s.learned(commands)
	if len(got) != 2 || got[0].Epoch != 2 || got[1].Epoch != 4 || got[0].Delay > 1e-9 || got[1].Usage > 1e-9 || len(got[0].TrueK) != kMax-1 || got[1].TrueK[0] >= got[0].TrueK[0] {
		t.Errorf("%+v", got)
	}
	got = s.learned(commands[:1])
	if got[0].Epoch != 1 || got[0].Delay < 0.05 || got[0].Usage < 0.02 {
		t.Errorf("another model: %+v", got[0])
	}
	if got = s.learned(nil); got[0].Epoch != 0 || got[0].Delay < 1 {
		t.Errorf("no command: %+v", got)
	}
	s.phases = s.phases[:2]
	if got = s.learned(commands); len(got) != 1 {
		t.Errorf("stores that stay: %+v", got)
	}
}

func TestOptions(t *testing.T) {
	for _, d := range []Demo{{Scale: 0.1}, {Writes: 0.9}} {
		d.Dir = t.TempDir()
		if err := d.complete(); !errors.Is(err, ErrOptions) {
			t.Errorf("%+v: %v", d, err)
		}
	}
	d := Demo{Dir: t.TempDir()}
	if err := d.complete(); err != nil || fmt.Sprint(d.Scale, d.Writes) != "2 0.05" {
		t.Error(d.Scale, d.Writes, err)
	}
}
