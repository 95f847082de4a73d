package servers

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"penstock/infra/golden"
	"penstock/pipeline/demo/load"
	"penstock/pipeline/demo/machine"
	"penstock/pipeline/demo/servers/backend"
	"penstock/schemas/control"
	"penstock/schemas/window"
)

// good is a run of which all promises were kept.
func good() *judge {
	r := &Result{
		Phases: day(270 * time.Second), Faults: []Fault{{What: "killed", Server: 0, From: 121}, {What: "slow", Server: 1, From: 102, To: 135}},
		Account: &window.Account{Received: 50_000, Counted: 50_000}, Decisions: 270, Outcomes: map[control.Status]int{control.Done: 30}, Dir: "out",
		Tables: []Table{{At: 12, Epoch: 2, On: 3, Reason: "PenaltyAboveCost"}},
		Usage:  []machine.Usage{{When: "night", Seconds: 32, Ours: 0.1, All: 0.2, Late: 0.1}},
	}
	for i, name := range []string{dispatched, plain} {
		x := SiteResult{Site: name, Due: 14_000, Answered: 13_998, Failed: 2, Excused: 2, Told: []string{"POST /page/3: 502"}, ServerSeconds: 900 + 720*float64(i), Mean: 190, P50: 150, P90: 400, P99: 900, Late: 0.01}
		x.ServerCost, x.Penalties = x.ServerSeconds, 40
		x.Cost = x.ServerCost + x.Penalties
		for range r.Phases {
			x.Phases = append(x.Phases, PhaseResult{Requests: 2000, P50: 150, P99: 900, Late: 0.01, Penalties: 6})
		}
		r.Sites = append(r.Sites, x)
	}
	for i, slow := range slowness {
		r.Servers = append(r.Servers, ServerResult{Number: i + 1, Slowness: slow, Ups: 2, Downs: 2, On: 100, Most: workers, Done: 2000, Answers: 1800, Estimated: 150, Took: 148, Failure: 0.1})
	}
	for i := range 10 {
		r.Curve = append(r.Curve, Point{At: float64(i), On: 2 + i%4, Shares: []float64{0.5, 0.5}, Took: []float64{100, -1}, Means: []float64{150, 160}})
	}
	return &judge{Result: r}
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
	t.Parallel()
	j := good()
	j.run()
	if b := j.broken(); len(b) > 0 || len(j.Checks) != 8 {
		t.Fatalf("%d checks, broken %q", len(j.Checks), b)
	}
	for _, c := range []struct {
		what   string
		change func(*judge)
	}{
		{"requests that failed", func(j *judge) { j.Sites[0].Excused = 1 }},
		{"requests that failed", func(j *judge) { j.Sites[0].Answered-- }},
		{"requests that failed", func(j *judge) {
			j.Sites[0].Failed, j.Sites[0].Excused, j.Sites[0].Answered = workers+1, workers+1, 14_000-workers-1
		}},
		{"most in service at a server at once", func(j *judge) { j.Servers[4].Most = workers + 1 }},
		{"most in service at a server when", func(j *judge) { j.Servers[4].Left = 1 }},
		{"most in service at a server when", func(j *judge) { j.Cut = []string{"table 4: done: after the deadline"} }},
		{"servers were turned", func(j *judge) {
			for i := range j.Servers {
				j.Servers[i].Downs = 0
			}
		}},
		{"the server that was killed", func(j *judge) { j.Servers[0].Ups = 1 }},
		{"mean error", func(j *judge) { j.Servers[2].Failure = 0.3 }},
		{"cost", func(j *judge) { j.Sites[0].Cost = 2000 }},
		{"events", func(j *judge) { j.Account.Counted-- }},
		{"events", func(j *judge) { j.audit = errors.New("a flush is lost") }},
		{"events", func(j *judge) { j.Account = nil }},
	} {
		j := good()
		c.change(j)
		j.run()
		if b := j.broken(); len(b) != 1 || !strings.HasPrefix(b[0], c.what) {
			t.Errorf("%s: broken %q", c.what, b)
		}
	}
}

func TestGoldenResult(t *testing.T) {
	t.Parallel()
	j := good()
	j.Servers[2].Failure = 0.3
	j.run()
	j.Broken = j.broken()
	golden.File(t, "result.golden", j.String()+"\n")
	if err := j.err(); !errors.Is(err, ErrPromise) || errors.Is(err, ErrVoid) {
		t.Error(err)
	}
	j.Void = []string{"late"}
	if err := j.err(); !errors.Is(err, ErrVoid) || !strings.Contains(j.String(), "void") {
		t.Error(err)
	}
	j.Dir = t.TempDir()
	if err := j.write(); err != nil {
		t.Error(err)
	}
}

// TestASiteIsSummedUp by its clients.
func TestASiteIsSummedUp(t *testing.T) {
	t.Parallel()
	s := watched()
	s.world.people[0] = newPeople(s.clock, nil)
	killed := t0.Add(seconds(100))
	s.world.rooms[0] = &room{clock: s.clock, rack: []*rig{{}, {killed: killed}}}
	s.loads[0] = load.Report{Due: 7}
	p := s.world.people[0]
	p.seen.Add(t0.Add(seconds(1)), 2*time.Second, shot{class: backend.Page})            // 1 s late: 1
	p.seen.Add(t0.Add(seconds(2)), 600*time.Millisecond, shot{class: backend.Static})   // 0.2 s late: 0.1
	p.seen.Add(t0.Add(seconds(200)), 300*time.Millisecond, shot{class: backend.Static}) // in time
	for _, f := range []failure{
		{shot: shot{class: backend.Page, write: true}, began: killed.Add(-seconds(1)), ended: killed.Add(seconds(1)), why: "gone"}, // excused; 1
		{shot: shot{class: backend.Page}, began: killed.Add(-seconds(1)), ended: killed.Add(seconds(1)), why: "gone"},              // it could be sent again; 1
		{shot: shot{class: backend.Page, write: true}, began: killed.Add(seconds(5)), ended: killed.Add(seconds(6)), why: "gone"},  // too late; 1
		{shot: shot{class: backend.Static, write: true}, began: t0, ended: killed.Add(-seconds(6)), why: "gone"},                   // too early; 0.2
	} {
		p.fail(f)
	}
	x := s.site(0, 50)
	if x.Failed != 4 || x.Excused != 1 || len(x.Told) != maxExamples || x.Answered != 3 || x.ServerCost != 50 || !equal(x.Penalties, 4.3) || !equal(x.Cost, 54.3) || !equal(x.Late, 2./3) {
		t.Errorf("%+v", x)
	}
	if len(x.Phases) != len(s.phases) || x.Phases[0].Requests != 2 || !equal(x.Phases[0].Penalties, 1.1) {
		t.Errorf("%+v", x.Phases)
	}
}

func equal(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 }

// TestEstimatesAreCompared outside of the time of a fault.
func TestEstimatesAreCompared(t *testing.T) {
	t.Parallel()
	var looks []*look
	for i := range 100 {
		n := float64(i)
		x := serverLook{answers: 10 * n, estimated: n, took: n, failure: 0.1}
		if i <= 20 || i >= 30 && i < 63 {
			x.failure = 9
		}
		looks = append(looks, &look{at: seconds(n), servers: []serverLook{x}})
	}
	faults := []Fault{{What: "slow", From: 30, To: 40}, {What: "killed", From: 50}}
	var r ServerResult
	r.estimates(looks, 0, faults)
	// 201 to 290 before, and from 200 after the last of a slow time, at 42 s, on.
	if want := 90. + (990 - 620); r.Answers != want || !equal(r.Estimated, 100) || !equal(r.Took, 100) || !equal(r.Failure, 0.1) {
		t.Errorf("%+v", r)
	}
	r = ServerResult{}
	faults[0].Server = 1
	if r.estimates(looks, 0, faults); r.Answers != 790 {
		t.Errorf("the fault is another server's: %+v", r)
	}
}

func TestLastStates(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "out")
	if st, err := lastState(name); err != nil || st.PID != 0 {
		t.Error(st, err)
	}
	if err := os.WriteFile(name, []byte("{\"pid\":7,\"most\":3}\nnonsense\n{\"pid\":7,\"most\":5,\"told\":true}\n{\"pid\":7,\"mo"), 0o600); err != nil {
		t.Fatal(err)
	}
	if st, err := lastState(name); err != nil || st.Most != 5 || !st.Told {
		t.Error(st, err)
	}
}

func TestTheDay(t *testing.T) {
	t.Parallel()
	phases := day(100 * time.Second)
	if n := len(phases); phases[n-1].to != 100*time.Second || phases[0].from != 0 {
		t.Errorf("%+v", phases)
	}
	counts := make([]float64, len(phases))
	list := course(phases, 200, rand.New(rand.NewPCG(3, 0)))
	last := time.Duration(-1)
	for at, ok := list.Next(); ok; at, ok = list.Next() {
		if at < last {
			t.Fatal("instants go back")
		}
		last = at
		counts[phaseAt(phases, at)]++
	}
	for i, p := range phases {
		want := 200 * (p.From + p.To) / 2 * (p.to - p.from).Seconds()
		if counts[i] < 0.85*want || counts[i] > 1.15*want {
			t.Errorf("%s: %.0f requests, expected about %.0f", p.Name, counts[i], want)
		}
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for _, d := range []Demo{{Day: time.Second}, {Rate: -1}, {Rate: 1e6}, {Policy: "best"}} {
		d.Dir = t.TempDir()
		if err := d.complete(); !errors.Is(err, ErrOptions) {
			t.Errorf("%+v: %v", d, err)
		}
	}
	d := Demo{Dir: t.TempDir(), Fast: true}
	if err := d.complete(); err != nil || d.Day != 55*time.Second || d.cooldown() != 2*time.Second || d.hold() != 2*time.Second {
		t.Error(d, err)
	}
	if d.Day = 270 * time.Second; d.cooldown() != 6*time.Second || d.hold() != 3*time.Second {
		t.Error(d.cooldown(), d.hold())
	}
	d = Demo{Dir: t.TempDir()}
	if err := os.WriteFile(filepath.Join(d.Dir, "thesis.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.complete(); !errors.Is(err, ErrOptions) {
		t.Error(err)
	}
}
