package simcoder

import (
	"fmt"
	"time"

	"penstock/consumers/decider"
	"penstock/consumers/executor/coder/queue"
	"penstock/pipeline/experiment/coding/delays"
	"penstock/schemas/control"
)

// The streams of random numbers of a seed.
const (
	streamArrivals = 1 + iota
	streamLuck
	streamSizes
)

// Loop is the decider's policy in the loop.
type Loop struct {
	Policy decider.Policy
	// Store is the store of the rows that it is shown.
	Store string
	// Feedback is how long after a window's end its tables are in force.
	Feedback time.Duration
	// Install puts a table in force; an error ends the run.
	Install func(at time.Duration, t *control.CodingTable) error
}

// Options say what is run.
type Options struct {
	Seed uint64
	// Connections is L, at least 1.
	Connections int
	// Chooser picks codes. It is told of arrivals by this run alone.
	Chooser queue.Chooser
	// Clock, if there is one, goes as the run does, from its beginning.
	Clock *Clock
	Op    queue.Op
	Law   delays.Law
	// Cancel is how long a task that was told to end holds its connection.
	Cancel time.Duration
	// Bytes are sizes of requests. One is that of all; of more the seed says where to
	// begin, and the end goes on at the beginning.
	Bytes []int64
	// Rate is that of arrivals. Waiting in its place is how many requests wait at all
	// times.
	Rate    Rate
	Waiting int
	// Warm requests that arrive within WarmFor, or are among the first Warm, do not
	// count; Requests after them do.
	Warm     int
	WarmFor  time.Duration
	Requests int
	// Until, if it is not 0, ends the run at a time in place of after Requests: all
	// requests count that got their answer by then.
	Until time.Duration
	// Bin, with Until, is how the course of the run is divided.
	Bin time.Duration
	// Loop is the policy in the loop; nil: the chooser's tables stay.
	Loop *Loop
}

func (o *Options) validate() error {
	need := func(ok bool, what string) error {
		if ok {
			return nil
		}
		return fmt.Errorf("%w: expected %s", ErrOptions, what)
	}
	if err := o.Law.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrOptions, err)
	}
	for _, err := range []error{
		need(o.Connections >= 1, "at least one connection"),
		need(o.Chooser != nil, "a chooser"),
		need(len(o.Bytes) > 0, "sizes of requests"),
		need(o.Waiting > 0 || len(o.Rate) > 0 && o.Rate.most() > 0, "arrivals"),
		need(o.Until > 0 || o.Requests > 0, "requests that count, or an end"),
		need(o.Until == 0 || o.Bin > 0, "bins of a run with an end"),
		need(o.Cancel >= 0 && o.Warm >= 0, "no number below 0"),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

// Bin is what happened within one bin of time.
type Bin struct {
	// Admitted requests and the sums of their k and n.
	Admitted, K, N int
	// Answered requests and the sum of their delays, ms.
	Answered int
	Delay    float64
	// Arrived requests and the sum of the backlogs that they met.
	Arrived, Backlog int
}

// Outcome is what a run came to.
type Outcome struct {
	Figures
	// Requests that count, and the tasks that were started for them.
	Requests int
	Tasks    int64
	// K and N are how many of them had each k and each n, from 0 on.
	K, N []int64
	// Span is the time from the first of them to the last one's answer, Answered is how
	// many requests got one in it: their quotient is what the coder carried.
	Span     time.Duration
	Answered int
	// Backlog is the mean number of waiting requests that arrivals met, Busy the mean
	// share of connections in use, within Span.
	Backlog, Busy float64
	// Course is by bin, of a run with an end.
	Course []Bin
	// Tables is how many the loop put in force.
	Tables int
}

// Throughput is the requests a second that were answered.
func (o *Outcome) Throughput() float64 { return float64(o.Answered) / o.Span.Seconds() }

// Neighbours is the greatest share of requests on two neighbouring k, and the lower of
// the two.
func (o *Outcome) Neighbours() (share float64, k int) {
	var most int64 = -1
	for i := 1; i < len(o.K); i++ {
		both := o.K[i]
		if i+1 < len(o.K) {
			both += o.K[i+1]
		}
		if both > most {
			most, k = both, i
		}
	}
	return float64(most) / float64(o.Requests), k
}
