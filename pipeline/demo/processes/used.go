package processes

import (
	"errors"
	"time"

	"penstock/infra/processor"
)

// Used is what the processes of the group have used of the processors so far. One
// that has ended counts with what it had used in all.
func (g *Group) Used() (time.Duration, error) {
	var sum time.Duration
	for _, p := range g.list {
		used, err := p.used()
		if err != nil {
			return 0, err
		}
		sum += used
	}
	return sum, nil
}

func (p *process) used() (time.Duration, error) {
	used, err := processor.Time(p.cmd.Process.Pid)
	if !errors.Is(err, processor.ErrUnknown) {
		return used, err
	}
	select {
	case <-p.done:
		return p.cmd.ProcessState.SystemTime() + p.cmd.ProcessState.UserTime(), nil
	default:
		return 0, err
	}
}
