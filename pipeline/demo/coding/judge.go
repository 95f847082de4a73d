package coding

import (
	"fmt"
	"math"
	"slices"
)

// What is promised (issue: make coding-demo).
const (
	// leastGain is of the mean delay at a light load, against (1,1): 2.5, or less if the
	// simulation of that very load gives less, of which nearGain must show.
	leastGain, nearGain = 2.5, 0.85
	// errorsLess is how many standard errors of what was measured a gain may be less.
	errorsLess = 2
	// leastRate is how much of the quotient of what (1,1) and (12,6) carry must show at a
	// heavy load. The rest is for a load below the capacity, and for objects that (12,6) has
	// overwritten: until its backlog ends they lie in six chunks, and are read by (6,6).
	leastRate = 0.65
	// mostOver is how much longer than under (1,1) a read may take at a heavy load.
	mostOver = 1.25
	// mostOff is by how much what was learned may be off.
	mostOff = 0.15
	// lightest and heaviest are the loads (per cent) up to which and from which on they are
	// light and heavy.
	lightest, heaviest = 10, 80
	// mostLate is how late a sleeper may wake up on average (ms), for each unit of scale.
	// A read goes through three processes, and each of its chunks through two.
	mostLate = 0.5
)

// Accounted is how the promise of the account begins. No clock decides whether it is kept:
// on a machine that is too busy events are late for their windows, and accounted for.
const Accounted = "events: all that was sent is accounted for"

// Check is one promise and what was found.
type Check struct {
	What string `json:"what"`
	Want string `json:"want"`
	Got  string `json:"got"`
	Kept bool   `json:"kept"`
}

// judge compares what was seen with what is promised. It is pure.
type judge struct {
	*Result
	demo  *Demo
	audit error
	gains []float64 // by phase: the simulation's, of (1,1) over tofec
}

func (j *judge) add(kept bool, what, want, format string, args ...any) {
	j.Checks = append(j.Checks, Check{What: what, Want: want, Got: fmt.Sprintf(format, args...), Kept: kept})
}

// run makes all checks.
func (j *judge) run() {
	for i, p := range j.Phases {
		switch {
		case p.Slower:
		case p.Percent <= lightest:
			j.light(i)
		case p.Percent >= heaviest:
			j.heavy(i)
		}
	}
	for i := range j.Arms {
		j.arm(&j.Arms[i])
	}
	for i := range j.Learned {
		j.learned(&j.Learned[i])
	}
	if n := len(j.Learned); n > 1 {
		a, b := &j.Learned[n-2], &j.Learned[n-1]
		lower := len(b.K) > 0 && len(a.K) == len(b.K) && b.Epoch > a.Epoch && b.K[0] < a.K[0]
		j.add(lower, "thresholds once each request to the stores takes longer", "lower, of a later table", "%s; before it %s", thresholds(b.K), thresholds(a.K))
	}
	j.account()
}

// light compares with the code that carries most, where hardly anything waits.
func (j *judge) light(i int) {
	ours, basic := &j.Arms[0].Phases[i], &j.Arms[1].Phases[i]
	gain := basic.Mean / max(ours.Mean, 1e-3)
	chance := errorsLess * math.Hypot(ours.chance(), basic.chance())
	least := min(leastGain, nearGain*j.gains[i])
	j.add(ours.Reads > 0 && gain >= least*(1-chance), ours.Phase+": mean delay of reads, (1,1) over tofec", fmt.Sprintf("at least %.2f, by chance %.2f less", least, least*chance),
		"%.2f: %.0f ms over %.0f ms; the simulation of this load gives %.2f", gain, basic.Mean, ours.Mean, j.gains[i])
}

// chance is the standard error of the mean, as a share of it.
func (x *PhaseResult) chance() float64 {
	return x.SD / max(x.Mean, 1e-3) / math.Sqrt(float64(max(x.Reads, 1)))
}

// heavy compares with the code that is fastest without a queue, and with the one that
// carries most.
func (j *judge) heavy(i int) {
	ours, basic, wide := &j.Arms[0].Phases[i], &j.Arms[1].Phases[i], &j.Arms[2].Phases[i]
	j.add(ours.Refused == 0, ours.Phase+": requests that tofec refused", "none", "%d", ours.Refused)
	j.add(wide.Refused > 0, ours.Phase+": requests that (12,6) refused", "some", "%d", wide.Refused)
	rate, least := ours.Served/max(wide.Served, 1e-3), leastRate*j.demo.capacity(1, 1)/j.demo.capacity(12, 6)*float64(j.Phases[i].Percent)/100
	j.add(rate >= least, ours.Phase+": answers a second, tofec over (12,6)", fmt.Sprintf("at least %.2f", least),
		"%.2f: %.1f over %.1f; by the model %.2f", rate, ours.Served, wide.Served, least/leastRate)
	over := ours.Mean / max(basic.Mean, 1e-3)
	j.add(over <= mostOver, ours.Phase+": mean delay of reads, tofec over (1,1)", fmt.Sprintf("at most %.2f", mostOver), "%.2f: %.0f ms over %.0f ms", over, ours.Mean, basic.Mean)
}

// arm checks what must hold of each coder.
func (j *judge) arm(a *ArmResult) {
	j.add(a.Wrong == 0, a.Policy+": reads of other bytes, or of an older version, than was written", "none", "%d of %d answers", a.Wrong, a.Answered)
	got := fmt.Sprintf("%d of %d", a.Failed, a.Due)
	if len(a.Told) > 0 {
		got += ", such as: " + a.Told[0]
	}
	j.add(a.Failed == 0 && a.Answered > 0 && a.Answered+a.Refused == int(a.Due), a.Policy+": requests that failed, but for those refused", "none", "%s", got)
	l := &a.Left
	j.add(l.Unintended == 0 && l.Deletes == l.Repeats, a.Policy+": objects not in their intended coding, and blobs to delete, at the end", "none", "%d and %d", l.Unintended, l.Deletes-l.Repeats)
	j.add(l.Connections == 0 && a.Under == 0, a.Policy+": connections in use, and requests at the store, at the end", "none", "%d and %d; %d of %d were cancelled on the way", l.Connections, a.Under, a.Gone, a.Asked)
}

// learned compares delays.
func (j *judge) learned(l *Learned) {
	j.add(l.Epoch > 0 && max(l.Delay, l.Usage) <= mostOff, "delays that were learned, "+l.When, fmt.Sprintf("within %.0f %% of the true ones for each code", 100*mostOff),
		"%.1f %%, use of connections %.1f %%: %.1f + %.0f·MB ms and %.1f + %.0f·MB ms, true %.1f + %.0f·MB ms and %.1f + %.0f·MB ms", 100*l.Delay, 100*l.Usage,
		l.Found.Delta, l.Found.DeltaPerMB, l.Found.Psi, l.Found.PsiPerMB, l.True.Delta, l.True.DeltaPerMB, l.True.Psi, l.True.PsiPerMB)
}

// account checks that every event is accounted for, and, as a promise of its own, that
// none is outside the windows.
func (j *judge) account() {
	a := j.Account
	if a == nil {
		return
	}
	answers := 0
	for i := range j.Arms {
		answers += j.Arms[i].Answered
	}
	whole := j.audit == nil && a.Holds() && a.LostBatches == 0 && a.Received > 2*int64(answers)
	got := fmt.Sprintf("%d received, %d counted, %d late, %d duplicate, %d malformed, %d quarantined, %d batches lost", a.Received, a.Counted, a.Late, a.Duplicate, a.Malformed, a.Quarantined, a.LostBatches)
	if j.audit != nil {
		got += ": " + j.audit.Error()
	}
	j.add(whole, Accounted+", a row at least for each answer and its chunks", fmt.Sprintf("more than %d", 2*answers), "%s", got)
	outside := a.Late + a.Duplicate + a.Malformed + a.Quarantined
	j.add(outside == 0, "events that are accounted for, and in no window", "none", "%d", outside)
	j.add(j.Commands > 0 && j.Outcomes["done"]+j.Outcomes["already-applied"] > 0, "tables that were decided and brought into force", "at least one", "%d decided by %d windows; outcomes: %s", j.Commands, j.Decisions, outcomes(j.Result))
}

// outcomes are how many there were, by status.
func outcomes(r *Result) string {
	var names []string
	for s, n := range r.Outcomes {
		names = append(names, fmt.Sprintf("%s %d", s, n))
	}
	slices.Sort(names)
	return fmt.Sprint(names)
}
