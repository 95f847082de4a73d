package servers

import (
	"context"
	"fmt"
	"time"

	"penstock/pipeline/demo/servers/backend"
)

// restart is after how long a server of the plain site that was killed is started again, as
// a service manager would. The other site's is the server switch's affair.
const restart = 3 * time.Second

// breaks makes one server of each site slow and fast again, and kills another later: of
// those that the site penstock has on, the first two, and of the plain site the same.
func (s *show) breaks(ctx context.Context) {
	// Whoever ends it is noticed elsewhere.
	_ = s.until(ctx, part(slowFrom, s.Day))
	slow := s.victim(1)
	s.slower(ctx, slow, slowTimes)
	s.happens("server %d takes %d times as long", slow+1, slowTimes)
	began := s.clock.Now().Sub(s.start)
	_ = s.until(ctx, part(slowTo, s.Day))
	s.slower(ctx, slow, 1)
	s.happens("")
	s.faults = append(s.faults, Fault{What: "slow", Server: slow, From: began.Seconds(), To: s.clock.Now().Sub(s.start).Seconds()})
	_ = s.until(ctx, part(killAt, s.Day))
	dead := s.victim(0)
	s.kill(ctx, dead)
	s.happens("server %d was killed (kill -9)", dead+1)
	at := s.clock.Now().Sub(s.start)
	s.faults = append(s.faults, Fault{What: "killed", Server: dead, From: at.Seconds()})
	if m := s.world.rooms[1].rack[dead]; s.until(ctx, at+restart) == nil {
		if err := m.on(ctx, false); err != nil {
			s.Screen.Say("server %d of the plain site does not start: %v", dead+1, err)
		}
	}
	s.happens("")
}

// until waits for an instant since requests began; the context's error if that ends first.
func (s *show) until(ctx context.Context, at time.Duration) error {
	t := s.clock.NewTimerAt(s.start.Add(at))
	defer t.Stop()
	select {
	case <-t.C():
	case <-ctx.Done():
	}
	return ctx.Err()
}

// victim is the nth server that the site penstock has on; the last if there are fewer.
func (s *show) victim(n int) int {
	found := 0
	for i, m := range s.world.rooms[0].rack {
		if !m.isOn() {
			continue
		}
		found = i
		if n--; n < 0 {
			break
		}
	}
	return found
}

// slower makes a server of each site slower by a factor. One that is off has nothing to be
// made slower, and none comes back slower.
func (s *show) slower(ctx context.Context, number int, times float64) {
	for _, r := range s.world.rooms {
		if m := r.rack[number]; m.isOn() && ctx.Err() == nil {
			if err := backend.Slower(ctx, m.control, times); err != nil && m.isOn() {
				s.Screen.Say("%s can't be made %g times slower: %v", m.label, times, err)
			}
		}
	}
}

// kill kills a server of each site.
func (s *show) kill(ctx context.Context, number int) {
	for _, r := range s.world.rooms {
		if ctx.Err() != nil {
			return
		}
		if err := r.rack[number].kill(ctx); err != nil {
			s.Screen.Say("%s can't be killed: %v", r.rack[number].label, err)
		}
	}
}

// happens says what is wrong from now on; nothing: all is well again.
func (s *show) happens(format string, args ...any) {
	text := ""
	if format != "" {
		text = fmt.Sprintf(format, args...)
		s.Screen.Say("%s  %s", since(s.clock.Now().Sub(s.start)), text)
	}
	s.fault.Store(&text)
}
