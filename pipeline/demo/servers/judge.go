package servers

import (
	"fmt"
	"math"
	"time"
)

// What is promised (issue: make servers-demo).
const (
	// mostOff is by how much the estimates of a server's requests may be off on average,
	// as a share of what they took; of one with at least fewestAnswers. What a request takes
	// is drawn, and a machine with other things to do adds to it.
	mostOff, fewestAnswers = 0.25, 100
	// learning is how many answers of a server its estimates are learned from before they
	// are judged, and learned anew from after it was slow: each entry point learns from its own.
	learning = 200
	// graceOfKill is how exactly the instant of a kill is known.
	graceOfKill = 500 * time.Millisecond
	// afterFault is how long requests that began in a fault may go on after it.
	afterFault = 3 * time.Second
	// mostLate is how late a sleeper may wake up on average, ms: a server that takes tens
	// of ms is one that sleeps.
	mostLate = 5.0
)

// Check is one promise and what was found.
type Check struct {
	What string `json:"what"`
	Want string `json:"want"`
	Got  string `json:"got"`
	Kept bool   `json:"kept"`
	// Timed: a machine that is busy with other things can break it.
	Timed bool `json:"timed,omitempty"`
}

// judge compares what was seen with what is promised. It is pure.
type judge struct {
	*Result
	audit error
}

func (j *judge) add(kept bool, what, want, format string, args ...any) *Check {
	j.Checks = append(j.Checks, Check{What: what, Want: want, Got: fmt.Sprintf(format, args...), Kept: kept})
	return &j.Checks[len(j.Checks)-1]
}

// run makes all checks.
func (j *judge) run() {
	ours, theirs := &j.Sites[0], &j.Sites[1]
	got := fmt.Sprintf("%d of %d, of them %d there", ours.Failed, ours.Due, ours.Excused)
	if len(ours.Told) > 0 {
		got += ", such as: " + ours.Told[0]
	}
	j.add(ours.Answered > 0 && ours.Failed == ours.Excused && ours.Excused <= workers && ours.Answered+ours.Failed == int(ours.Due),
		"requests that failed", fmt.Sprintf("none but those in service at the killed server that may not be sent twice, at most %d", workers), "%s", got)
	most, waited, left := 0, int64(0), 0
	for _, s := range j.Servers {
		most, waited, left = max(most, s.Most), waited+s.Waited, max(left, s.Left)
	}
	j.add(most > 0 && most <= workers, "most in service at a server at once, as servers counted", fmt.Sprintf("1 to %d", workers), "%d; %d requests waited inside a server", most, waited)
	j.add(left == 0 && len(j.Cut) == 0, "most in service at a server when it was told to end", "none", "%d%s", left, j.cut())
	j.switched()
	j.estimates()
	j.add(ours.Cost < theirs.Cost, "cost, servers and penalties together, against all servers on", fmt.Sprintf("below %.1f", theirs.Cost),
		"%.1f: %.1f + %.1f, against %.1f + %.1f", ours.Cost, ours.ServerCost, ours.Penalties, theirs.ServerCost, theirs.Penalties).Timed = true
	j.account()
}

// cut says what the switch cut off.
func (j *judge) cut() string {
	if len(j.Cut) == 0 {
		return ""
	}
	return "; " + j.Cut[0]
}

// switched checks that servers went on and off.
func (j *judge) switched() {
	ups, downs := 0, 0
	for _, s := range j.Servers {
		ups, downs = ups+s.Ups, downs+s.Downs
	}
	least, most := math.MaxInt, 0
	for _, p := range j.Curve {
		least, most = min(least, p.On), max(most, p.On)
	}
	if len(j.Curve) == 0 {
		least = 0
	}
	j.add(ups > initial && downs > 0, "servers were turned on and off by the hook", fmt.Sprintf("more than %d times, and some", initial), "%d and %d times; %d to %d were on; %d tables", ups, downs, least, most, len(j.Tables)).Timed = true
	restarted := false
	for _, f := range j.Faults {
		restarted = restarted || f.What == "killed" && j.Servers[f.Server].Ups > 1
	}
	j.add(restarted, "the server that was killed", "started again by the server switch", "%s", map[bool]string{true: "it was", false: "it was not"}[restarted]).Timed = true
}

// estimates compares them with what came.
func (j *judge) estimates() {
	worst, of, answers := 0.0, 0, 0.0
	for _, s := range j.Servers {
		if s.Answers < fewestAnswers || s.Took <= 0 {
			continue
		}
		answers += s.Answers
		if s.Failure >= worst {
			worst, of = s.Failure, s.Number
		}
	}
	j.add(of > 0 && worst <= mostOff, "mean error of the estimates of service times, of the server where it is greatest", fmt.Sprintf("at most %.0f %%", 100*mostOff),
		"%.1f %% at server %d; %.0f requests", 100*worst, of, answers).Timed = true
}

// account checks that every event is accounted for.
func (j *judge) account() {
	a := j.Account
	if a == nil {
		j.add(false, "events", "an account", "none")
		return
	}
	least := 0
	for _, s := range j.Sites {
		least += s.Answered
	}
	fault := ""
	if j.audit != nil {
		fault = "; " + j.audit.Error()
	}
	j.add(j.audit == nil && a.Received == a.Counted+a.Late+a.Duplicate+a.Malformed+a.Quarantined && a.LostBatches == 0 && a.Received >= int64(least),
		"events", fmt.Sprintf("at least %d, each accounted for", least), "%d received, %d counted, %d late, %d batches lost%s", a.Received, a.Counted, a.Late, a.LostBatches, fault)
}
