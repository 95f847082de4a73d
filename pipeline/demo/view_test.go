package demo

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"penstock/infra/golden"
	"penstock/pipeline/demo/load"
	"penstock/schemas/control"
	"penstock/schemas/window"
)

func TestGoldenView(t *testing.T) {
	ms := time.Millisecond
	scenes := []*scene{
		{since: "00:00", crowd: "eu-west", decision: "nothing yet", sites: []siteScene{{name: "eu-west"}, {name: "us-east"}, {name: "ap-northeast"}}},
		{
			since: "00:27", crowd: "us-east", moves: 96, answered: 3812, hop: 0.62, written: 1120, failed: 0,
			decision: "91 moves, in the window to 12:00:25 UTC", reasons: reasons([]control.Reason{{Code: "Cooldown", Count: 3}, {Code: "NoImprovement", Owner: "a"}, {Code: "NoImprovement", Count: 40}}),
			sites: []siteScene{
				{name: "eu-west", owners: 144, people: 30, rate: 61.3, p50: 2 * ms, p99: 124 * ms},
				{name: "us-east", owners: 126, people: 240, rate: 74.7, p50: 123 * ms, p99: 1248 * ms},
				{name: "ap-northeast", owners: 30, people: 30, rate: 14, p50: 2300 * time.Microsecond, p99: 228 * ms},
			},
		},
	}
	var b strings.Builder
	for _, c := range scenes {
		for _, line := range c.picture() {
			if n := utf8.RuneCountInString(line); n > 80 {
				t.Errorf("%d columns: %s", n, line)
			}
			b.WriteString(line + "\n")
		}
		b.WriteString(c.line() + "\n")
	}
	golden.File(t, "view.golden", b.String())
}

func TestGoldenResult(t *testing.T) {
	good := &Result{
		Phases: []Phase{
			{"before", []Delay{{"all", 300, 2.4, 118, 0.02}, {Nearest.String(), 260, 2, 90, 0.01}, {Looked.String(), 0, 0, 0, 0}, {Stale.String(), 40, 2, 124, 0}}},
			{"just moved to us-east", []Delay{{"all", 100, 123, 250, 0.9}}},
		},
		Trips: []TripResult{{"eu-west", "us-east", true, 6.25, 2}, {"us-east", "ap-northeast", true, 4, 1}},
		Load:  load.Report{Due: 412, Sent: 412, MaxLag: 12 * time.Millisecond}, Answers: 412, Hops: [2]int{300, 112}, Stale: [2]int{20, 21},
		Moves: 210, Moved: 1_234_567, Others: map[string]int{}, Account: window.Account{Received: 413, Counted: 413},
		Books: Books{Owners: 300, Sent: 120, Acknowledged: 120, Found: 120}, Dir: "penstock-out/live-demo",
	}
	bad := *good
	bad.Trips = []TripResult{{From: "eu-west", To: "us-east"}}
	bad.Others = map[string]int{"refused": 2, "failed": 1}
	bad.Broken = []string{"something"}
	golden.File(t, "result.golden", good.String()+"\n\n"+bad.String()+"\n")
}

func TestReasonsOfADecision(t *testing.T) {
	if got := reasons(nil); got != "no reasons" {
		t.Error(got)
	}
	if got := reasons([]control.Reason{{Code: "D"}, {Code: "C"}, {Code: "B"}, {Code: "A", Count: 2}}); got != "A 2, B 1, C 1" {
		t.Error(got)
	}
}
