package pool

import (
	"fmt"
	"time"

	"penstock/consumers/executor/dispatcher/perceptron"
)

// Options of a pool. The zero values are the defaults, but for Classes.
type Options struct {
	// Abreast divides the service times that A2 adds up by the server's M, since so
	// many are served side by side. The paper doesn't.
	Abreast bool
	// Policy that places requests. Defaults to A1.
	Policy Policy
	// Classes of requests, at least one. Limits are at most 1e9 s, penalties 1e15.
	Classes []Class
	// CostDecay is a of icbs in 1/s: how fast the prospect of a penalty fades with the
	// time until the deadline. Defaults to 1 over the mean limit of the classes.
	CostDecay float64
	// Elapsed counts how long the requests in service run already: estimates of a
	// server where they run longer than estimated are multiplied by its Slowdown. It is
	// no part of the papers; without it a policy is what its source says.
	Elapsed bool
	// FreeFirst considers only servers with a free slot while there are any. It
	// matters to A3, whose score, to the letter, prefers a server with requests
	// waiting to an idle one. It is no part of the paper.
	FreeFirst bool
	// Near has A3 consider only servers where the request is expected to end within
	// 1 + Near times the time of the soonest. 0: all servers. It matters since A3's
	// score, to the letter, sees neither service times nor how long a queue is. It is
	// no part of the paper.
	Near float64
	// Perceptron are the options of the servers' estimates.
	Perceptron perceptron.Options
	// Queue is the most requests that wait at one server. Defaults to 1,000.
	Queue int
	// Ramp is how long a new server has less than its fair share. Defaults to
	// 10 s; negative: no ramp.
	Ramp time.Duration
	// Seed of the drawn policies (p2c, peak-ewma, prequal): what is drawn for a
	// decision goes by it and the decision's number. Times of trials go by it as well.
	Seed uint64
	// Trial is after how long without a request a server that the policy does not choose
	// has one all the same, so that it is noticed when one that was slow is fast again:
	// see trial.go for which, and for what it costs. It matters to the policies that go by
	// estimates (A1, A2, A3, icbs, auto). 0 or less: never. It is no part of the papers.
	Trial time.Duration
}

// complete fills in what was left out, or says what can't work.
func (o *Options) complete() error {
	if o.Policy == "" {
		o.Policy = A1
	}
	if makers[o.Policy] == nil {
		return fmt.Errorf("%w: Policy: got %q, expected one of %v", ErrOption, o.Policy, Policies())
	}
	if len(o.Classes) == 0 {
		return fmt.Errorf("%w: Classes: got none, expected at least one", ErrOption)
	}
	limits := 0.0
	for i, c := range o.Classes {
		if !finite(c.Limit) || c.Limit > longest {
			return fmt.Errorf("%w: Classes[%d].Limit: got %v, expected 0 to %g s", ErrOption, i, c.Limit, float64(longest))
		}
		if !finite(c.Penalty) || c.Penalty > mostPenalty {
			return fmt.Errorf("%w: Classes[%d].Penalty: got %v, expected 0 to %g per s", ErrOption, i, c.Penalty, float64(mostPenalty))
		}
		limits += c.Limit
	}
	if !finite(o.CostDecay) {
		return fmt.Errorf("%w: CostDecay: got %v, expected 0 or more per s", ErrOption, o.CostDecay)
	}
	if o.CostDecay == 0 && limits > 0 {
		o.CostDecay = float64(len(o.Classes)) / limits
	}
	if !finite(o.Near) {
		return fmt.Errorf("%w: Near: got %v, expected 0 or more", ErrOption, o.Near)
	}
	if o.Queue < 0 {
		return fmt.Errorf("%w: Queue: got %d, expected 0 or more", ErrOption, o.Queue)
	}
	if o.Queue == 0 {
		o.Queue = 1000
	}
	if o.Ramp == 0 {
		o.Ramp = 10 * time.Second
	}
	return nil
}

// mostPenalty is what a line takes as a penalty.
const mostPenalty = 1e15
