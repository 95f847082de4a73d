package machine

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"penstock/infra/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// late is a clock on which sleepers wake up late.
type late struct {
	*clock.Manual
	slept chan struct{}
}

func (l *late) Sleep(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	l.Advance(d + 2*time.Millisecond)
	select {
	case l.slept <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestSleepersThatWakeUpLate(t *testing.T) {
	l := &late{clock.NewManual(time.Unix(0, 0)), make(chan struct{})}
	m := Start(t.Context(), l, func() (time.Duration, error) { return 0, nil })
	for range 5 {
		<-l.slept
	}
	u := m.End("then")
	if u.Late < 1.9 || u.Late > 2.1 || u.Seconds < 0.03 {
		t.Errorf("%+v", u)
	}
	if text := u.String(); !strings.HasPrefix(text, "then: ") || !strings.Contains(text, "2.0 ms late") {
		t.Error(text)
	}
}

// TestWhatIsNotKnown is said, and not taken for nothing.
func TestWhatIsNotKnown(t *testing.T) {
	m := Start(t.Context(), clock.System(), func() (time.Duration, error) { return 0, errors.New("not shown") })
	if u := m.End("x"); u.Ours >= 0 || u.All >= 0 || Share(u.All) != "not known" {
		t.Errorf("%+v", u)
	}
}
