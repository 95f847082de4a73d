package split

import (
	"os"
	"runtime"
	"time"

	"penstock/infra/processor"
)

// meter measures what the demonstration and everybody else take of the machine's
// processors.
type meter struct {
	groups func() (time.Duration, error) // what started processes have used
	marks  []mark
	err    error // the first time that could not be read
}

// mark is what had been used at an instant.
type mark struct {
	at            time.Time
	ours, machine time.Duration
}

// processors is how many there are.
var processors = runtime.NumCPU()

// set takes a mark and returns its number.
func (m *meter) set(at time.Time) int {
	x := mark{at: at}
	for _, read := range []struct {
		of  func() (time.Duration, error)
		add *time.Duration
	}{
		{m.groups, &x.ours},
		{func() (time.Duration, error) { return processor.Own(os.Getpid()) }, &x.ours},
		{processor.Machine, &x.machine},
	} {
		used, err := read.of()
		if err != nil && m.err == nil {
			m.err = err
		}
		*read.add += used
	}
	m.marks = append(m.marks, x)
	return len(m.marks) - 1
}

// Usage is the part of the machine's processors that was used for a time.
type Usage struct {
	When    string  `json:"when"`
	Seconds float64 `json:"seconds"`
	Ours    float64 `json:"ours"`    // by the demonstration: services, entry points, loop, links, clients
	Machine float64 `json:"machine"` // by all processes
}

// between is the usage from one mark to another.
func (m *meter) between(when string, from, to int) Usage {
	a, b := &m.marks[from], &m.marks[to]
	u := Usage{When: when, Seconds: b.at.Sub(a.at).Seconds()}
	if all := u.Seconds * float64(processors); all > 0 {
		u.Ours, u.Machine = (b.ours-a.ours).Seconds()/all, (b.machine-a.machine).Seconds()/all
	}
	return u
}
