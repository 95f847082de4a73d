package split

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"penstock/infra/golden"
	"penstock/schemas/window"
)

// played is a result of what good plays.
func played(t *testing.T) *Result {
	t.Helper()
	j, run := good()
	run(nil)
	r := &Result{About: "A broker.", Sites: sites, RTT: 44.2, Slowed: "quotes at east", Seed: 7, Void: []string{}, Broken: []string{}, Dir: t.TempDir(), Duration: 352}
	for _, f := range j.plan.Faults {
		r.Faults = append(r.Faults, Span{f.From.Sub(t0).Seconds(), f.To.Sub(t0).Seconds()})
	}
	for _, rec := range j.records {
		p := PolicyResult{
			Policy: rec.policy, Due: uint64(len(rec.shots)), Answered: len(rec.shots), Commands: len(rec.orders), Reasons: map[string]int64{"LowerDelay": int64(len(rec.orders))},
			Probes: map[string]int64{"quotes": 40}, Calls: map[string]int64{"quotes": 1040, "web": 3520},
			Account: &window.Account{Received: 9000, Counted: 9000}, Curve: rec.curve(j.plan, "quotes", "east"),
		}
		for _, f := range j.plan.Faults {
			p.Faults = append(p.Faults, rec.fault("east", f))
		}
		j.policy(&p)
		r.Policies = append(r.Policies, p)
	}
	r.Usage = []Usage{{"fault 1", 180, 0.12, 0.5}, {"all of it", 352, 0.11, 0.45}}
	r.conclude(j.checks)
	return r
}

func TestGoldenResult(t *testing.T) {
	r := played(t)
	if err := r.err(); err != nil {
		t.Fatal(err)
	}
	dir := r.Dir
	r.Dir = "DIR"
	golden.File(t, "result.golden", r.String()+"\n")
	r.Dir = dir
	if err := r.write(); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(dir, "report.html"))
	if err != nil || strings.Count(string(page), "<img") != 6 || strings.Contains(string(page), "http://") && !strings.Contains(string(page), "www.w3.org") {
		t.Errorf("%d pictures, %v", strings.Count(string(page), "<img"), err)
	}
	body, err := os.ReadFile(filepath.Join(dir, "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	var again Result
	if err := json.Unmarshal(body, &again); err != nil || len(again.Checks) != len(r.Checks) || len(again.Policies[0].Curve) != len(r.Policies[0].Curve) {
		t.Errorf("%+v, %v", again, err)
	}
}

func TestAResultSaysWhatWasNotKept(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*PolicyResult)
		want   string
	}{
		{"a failed request", func(p *PolicyResult) { p.Failed = 1 }, "requests that failed: 1 of 3520, expected none"},
		{"no answer", func(p *PolicyResult) { p.Answered = 0 }, "requests that failed: 0 of 3520"},
		{"too many probes", func(p *PolicyResult) { p.Probes["web"] = 400 }, "probes: 10.7 % of 4120, expected at most 10 % of calls"},
		{"lost rows", func(p *PolicyResult) { p.Account.Received = 3000 }, "rows in the account: 3000, 0 batches lost, expected at least 3520"},
		{"lost batches", func(p *PolicyResult) { p.Account.LostBatches = 2 }, "rows in the account: 9000, 2 batches lost"},
	} {
		r := played(t)
		c.change(&r.Policies[0])
		j := new(judge)
		j.policy(&r.Policies[0])
		r.conclude(j.checks)
		if len(r.Broken) != 1 || !strings.HasPrefix(r.Broken[0], "greedy: "+c.want) || r.err() == nil || !strings.Contains(r.String(), "Not kept: 1 of 3.") {
			t.Errorf("%s: %q", c.name, r.Broken)
		}
	}
}

func TestARunThatTakesTooMuchIsVoid(t *testing.T) {
	s := &show{meter: &meter{}, spans: [][2]int{{1, 2}, {0, 3}}}
	for i, ours := range []int{0, 10, 100, 104} {
		s.meter.marks = append(s.meter.marks, mark{at: t0.Add(time.Duration(100*i) * time.Second), ours: time.Duration(ours*processors) * time.Second})
	}
	r := played(t)
	r.Usage = nil
	s.usage(r)
	if len(r.Void) != 2 || !strings.HasPrefix(r.Void[0], "fault 1 took 90 % of the machine's processors, more than 30 %") || !strings.HasPrefix(r.Void[1], "all of it took 35 %") {
		t.Errorf("%q", r.Void)
	}
	if err := r.err(); err == nil || !strings.Contains(err.Error(), ErrVoid.Error()) || !strings.Contains(r.String(), "The run is void") {
		t.Error(err)
	}
	s.meter.err = os.ErrNotExist
	r = played(t)
	if s.usage(r); len(r.Void) != 1 || !strings.Contains(r.Void[0], "could not be measured") {
		t.Errorf("%q", r.Void)
	}
}
