package pool

import (
	"slices"

	"penstock/consumers/executor/dispatcher/line"
	"penstock/consumers/executor/dispatcher/perceptron"
)

// second is one in ns, in which instants are counted.
const second = 1e9

// server is one of the zone. The fields that every decision reads stand first.
type server struct {
	m, in, queued int   // most in service, in service, queued
	heard         int64 // ns: when a request began or ended there last, see trial.go
	patience      int64 // ns: see trial.go
	trial         *job  // in service
	weight        float64
	usable        bool // and in the list
	ramping       bool
	placed        uint64  // number of the last decision for it
	turn          float64 // wrr: what the weights of turns have added up to
	credit        float64 // ramp: how many requests it may have

	name          string
	rank          int   // in the list, −1: leaving
	tried         bool  // ramp: it has had its first request
	since         int64 // ramp: start
	started       uint64
	trials        uint64
	running       []*job
	runs          []run   // of the same, side by side for slowdown
	serving       float64 // s: sum of the estimates of those in service
	queuedDynamic int
	line          *line.Line
	model         *perceptron.Model
	peak          peak
	answers       answers
	auto          speed  // of the policy auto
	trying        series // of trials, as the model sees it
	own           series // as the policy does, see reviser
	board         board
}

// run is what slowdown asks of a job in service.
type run struct {
	within  int64   // ns: until then it surely takes no longer than service
	started int64   // ns
	service float64 // s
}

func newRun(now int64, service float64) run {
	n := nanoseconds(service)
	return run{now + n - n>>40 - 1, now, service} // less what rounding may be
}

// state of a job.
type state uint8

const (
	unplaced state = iota // no server may take it
	queued
	running
)

// job is a request in the pool.
type job struct {
	id       uint64
	class    Class
	size     float64
	dynamic  bool
	impact   uint8
	state    state
	trial    bool
	avoid    []string
	arrived  int64 // ns
	due      int64 // ns: tau + t_max
	server   *server
	service  float64 // s, estimated when it was placed
	static   float64 // bytes ahead when it was placed
	dynamics float64
	found    int   // requests there when it was placed
	placed   int64 // ns
	started  int64 // ns
	place    int   // in running of its server; where the policy has it, while it waits
	late     float64
	work     float64 // auto: its own part of the service time, s
	level    int     // auto: of its worth
}

// estimate of the service time of a job, in s.
func (s *server) estimate(j *job) float64 { return s.model.Service(j.size, j.dynamic) }

// load is how many requests the server has.
func (s *server) load() int { return s.in + s.queued }

// free reports whether the server has a slot for one that arrives.
func (s *server) free() bool { return s.in < s.m }

// item is a job as a line takes it, with a service time.
func (j *job) item(service float64) line.Item {
	it := line.Item{
		ID: j.id, Arrived: j.arrived, Deadline: j.due - nanoseconds(service),
		Penalty: j.class.Penalty, Service: service,
	}
	if j.dynamic {
		it.Dynamic = j.size
	} else {
		it.Static = j.size
	}
	return it
}

// lateness is the penalty of a job that starts at an instant at a server where it takes
// a service time, in cost units.
func (j *job) lateness(start int64, service float64) float64 {
	return j.class.Penalty * max(0, float64(start-j.due)/second+service)
}

// wait is the line's view of the server's waiting times, each slowdown times as long.
func (s *server) wait(slowdown float64) line.Wait {
	a, b, bias := s.model.WaitWeights()
	return line.Wait{Bias: bias * slowdown, PerStatic: a * slowdown, PerDynamic: b * slowdown}
}

// mostSlow bounds what one request counts for in slowdown.
const mostSlow = 10

// slowdown is how much longer those in service run than was estimated, at least 1: the
// mean over them of elapsed/estimate, each from 1 to mostSlow. That a request still runs
// is knowledge that comes before its end does (its time is censored from below); that
// each counts for so much only lets a single one that hangs not condemn a server.
func (s *server) slowdown(now int64) float64 {
	if len(s.runs) == 0 {
		return 1
	}
	sum := 0.0
	for i := range s.runs {
		r := &s.runs[i]
		if now <= r.within { // without a division
			sum++
			continue
		}
		elapsed := float64(now-r.started) / second
		if elapsed <= r.service {
			sum++
		} else {
			sum += max(1, min(elapsed/max(r.service, leastService), mostSlow))
		}
	}
	return sum / float64(len(s.runs))
}

// leastService keeps the estimate of a server that nothing is known of from making
// every request there look slow, in s.
const leastService = 1e-3

// run puts a job into service.
func (s *server) run(now int64, j *job) {
	j.state, j.started, j.place = running, now, len(s.running)
	j.late = j.lateness(now, j.service)
	if !j.trial {
		s.heard = now
	}
	s.running = append(s.running, j)
	s.runs = append(s.runs, newRun(now, j.service))
	s.in++
	s.started++
	s.serving += j.service
}

func (s *server) late() float64 {
	sum := 0.0
	for _, j := range s.running {
		sum += j.late
	}
	return sum
}

// end takes a job out of service.
func (s *server) end(j *job) {
	last := len(s.running) - 1
	moved := s.running[last]
	s.running[j.place], moved.place = moved, j.place
	s.running[last] = nil
	s.running = s.running[:last]
	s.runs[j.place] = s.runs[last]
	s.runs = s.runs[:last]
	s.in--
	s.serving = max(0, s.serving-j.service)
	if s.in == 0 {
		s.serving = 0 // no rounding is left
	}
}

// avoids reports whether a job is not to go to a server.
func (j *job) avoids(s *server) bool {
	return len(j.avoid) > 0 && slices.Contains(j.avoid, s.name)
}

// nanoseconds of a time in s, bounded so that sums with instants don't overflow.
func nanoseconds(seconds float64) int64 {
	const most = 1e9 // s
	return int64(min(max(seconds, -most), most) * second)
}
