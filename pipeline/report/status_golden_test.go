package report

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/golden"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// told is a bus to which decisions, outcomes and switches are written.
type told struct {
	t *testing.T
	c *bus.Client
	n int
}

func (x *told) ok(err error) {
	x.t.Helper()
	if err != nil {
		x.t.Fatal(err)
	}
}

func (x *told) set(key string, s control.Switch) uint64 {
	x.t.Helper()
	s.Version, s.At = 1, statusStart
	body, err := control.Encode(s)
	x.ok(err)
	kv, err := x.c.KV(x.t.Context(), subject.OperatorKV)
	x.ok(err)
	rev, err := kv.Put(x.t.Context(), key, body)
	x.ok(err)
	return rev
}

var statusStart = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)

// decide publishes the next hour's decision, made under a revision of the switches.
func (x *told) decide(revision uint64, change func(*control.Decision)) {
	x.t.Helper()
	hash := "sha256:" + strings.Repeat("0", 64)
	start := statusStart.Add(time.Duration(x.n) * time.Hour)
	x.n++
	d := control.Decision{
		Version: 1, Kind: control.Placement, Mode: control.Act, Case: "minimal", Window: control.Window{Start: start, End: start.Add(time.Hour)},
		Operator: control.Operator{Mode: control.Act}, Policy: hash, State: hash,
	}
	change(&d)
	body, err := control.Encode(d)
	x.ok(err)
	_, err = x.c.Publish(x.t.Context(), bus.Msg{
		Subject: subject.Decisions(string(control.Placement)), Data: body,
		Header: map[string][]string{control.HeaderOperator: {strconv.FormatUint(revision, 10)}},
	})
	x.ok(err)
}

func (x *told) answer(owner string, move uint64, s control.Status, reason string) {
	x.t.Helper()
	body, err := control.Encode(control.Outcome{
		Version: 1, Kind: control.Placement, Scope: "west", Owner: owner, Move: move, Status: s, Reason: reason, At: statusStart,
	})
	x.ok(err)
	_, err = x.c.Publish(x.t.Context(), bus.Msg{Subject: subject.Outcomes("placement", "west"), Data: body})
	x.ok(err)
}

// TestStatusGolden prints the status of one bus after another step of trouble.
// Run with -update after a change and read the difference.
func TestStatusGolden(t *testing.T) {
	t.Parallel()
	x := &told{t: t, c: bustest.Client(t, bustest.Start(t, func(o *bus.Options) { o.Partitions = 1 }))}
	var text strings.Builder
	say := func(title string, later time.Duration) *Status {
		t.Helper()
		now := time.Now().Add(later)
		s, err := StatusAt(t.Context(), x.c, now)
		x.ok(err)
		for i := range s.Kinds {
			if !s.Kinds[i].At.IsZero() {
				s.Kinds[i].At = statusStart // the bus has a clock of its own
			}
		}
		for i := range s.Streams {
			s.Streams[i].Bytes = 0
		}
		fmt.Fprintf(&text, "# %s\n", title)
		x.ok(s.Print(&text))
		body, err := json.Marshal(s)
		x.ok(err)
		var back Status
		x.ok(json.Unmarshal(body, &back))
		text.WriteString("\n")
		return s
	}
	act := x.set(control.ModeKey(control.Placement), control.Switch{Mode: control.Act})
	broken := control.Reason{Code: "PromisesBroken", Count: 12, Text: "12 of 20 moves that ended were not done"}
	x.decide(act, func(d *control.Decision) { d.Reasons = []control.Reason{broken} })
	say("Promises are found broken: this window acts still.", 0)
	x.decide(act, func(d *control.Decision) {
		d.Mode = control.Advise
		d.Reasons = []control.Reason{{Code: "PromisesBroken", Text: "advises only since the window ending 2026-03-01T11:00:00Z; " + broken.Text}}
	})
	if s := say("The kind has fallen back.", 0); s.Kinds[0].FellBack == "" {
		t.Error("the fallback is not in the JSON")
	}
	say("Two windows later nothing was decided.", 2*time.Hour+time.Minute)
	x.set(control.ModeKey(control.Placement), control.Switch{Mode: control.Act})
	say("The operator has written the mode again.", 0)
	x.set(control.EvacuateKey("west"), control.Switch{On: true})
	rev := x.set(control.EvacuateKey("east"), control.Switch{On: true})
	say("Two sites are to be emptied.", 0)
	x.decide(rev, func(d *control.Decision) {
		d.Operator.Evacuate = []string{"east", "west"}
		d.Reasons = []control.Reason{
			{Code: "Evacuating", Scope: "east", Count: 3, Evidence: map[string]any{"remaining": 17}},
			{Code: "Evacuating", Scope: "west", Evidence: map[string]any{"remaining": 0}},
			{Code: "BackingOff", Count: 2},
			{Code: "Optimised", Count: 40, Evidence: map[string]any{"total": 12.5, "bound": 12.25, "gap": 0.0204, "exact": false, "method": "branch"}},
		}
	})
	for i := range shownFailing + 2 {
		for m := range 1 + i%3 {
			x.answer(fmt.Sprintf("owner-%02d", i), uint64(m+1), control.Failed, "source-missing")
		}
	}
	x.answer("late", 1, control.Expired, "")
	x.answer("mended", 1, control.Failed, "store")
	x.answer("mended", 2, control.Done, "")
	say("A decision has sent some away, and many moves came to nothing.", 0)

	x.decide(rev, func(d *control.Decision) {
		d.Operator.Evacuate = []string{"east", "west"}
		d.Reasons = []control.Reason{{Code: "Rollback", Count: 3}, {Code: "Frozen", Count: 14}}
	})
	say("A rollback while sites are being emptied.", 0)
	x.set(control.ModeKey(control.Placement), control.Switch{Mode: control.Observe})
	say("The operator has just switched to observe.", 0)

	golden.File(t, "status.golden", text.String())
}
