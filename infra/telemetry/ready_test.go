package telemetry_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"penstock/infra/clock"
	"penstock/infra/telemetry"
)

func TestAPartIsNotReadyUntilItSaysSo(t *testing.T) {
	c := clock.NewManual(noon)
	r := telemetry.NewReadiness(c)
	at := func(d time.Duration) time.Time { return noon.Add(d).UTC() }
	check := func(parts int, expected ...telemetry.NotReady) {
		t.Helper()
		got, n := r.NotReady()
		if n != parts || len(got) != len(expected) || len(got) > 0 && !reflect.DeepEqual(got, expected) {
			t.Errorf("got %+v of %d parts\nexpected %+v of %d", got, n, expected, parts)
		}
	}
	check(0)
	decider, bus := r.Part("decider"), r.Part("bus")
	check(2, telemetry.NotReady{"bus", "starting", at(0)}, telemetry.NotReady{"decider", "starting", at(0)})
	bus.Ready()
	c.Advance(time.Second)
	decider.NotReady("waits for partition 3")
	c.Advance(time.Second)
	decider.NotReady("waits for partition 3") // Since when it holds doesn't change.
	check(2, telemetry.NotReady{"decider", "waits for partition 3", at(time.Second)})
	decider.NotReady("")
	check(2, telemetry.NotReady{"decider", "unknown", at(2 * time.Second)})
	decider.Ready()
	check(2)
	bus.Gone()
	bus.Gone()
	check(1)
}

// In a bubble: the second is all gone for those that answer when the machine stands still.
func TestFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := telemetry.NewReadiness(nil)
		r.Check("fine", func(context.Context) error { return nil })
		r.Check("disk", func(context.Context) error { return errors.New("no space left") })
		r.Check("broken", func(context.Context) error { panic("oh") })
		r.Check("stuck", func(ctx context.Context) error { <-ctx.Done(); return nil })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		got := r.Faults(ctx)
		// A check that answers as the time is over may be seen either way.
		if n := len(got); n == 3 && got[2].Check == "stuck" {
			got = got[:2]
		}
		expected := []telemetry.Fault{{"disk", "no space left"}, {"broken", "panic: oh"}}
		if !reflect.DeepEqual(got, expected) {
			t.Errorf("got %+v\nexpected %+v", got, expected)
		}
		never := telemetry.NewReadiness(nil)
		release := make(chan struct{})
		never.Check("stuck", func(context.Context) error { <-release; return nil })
		if got := never.Faults(ctx); len(got) != 1 || got[0].Error != "no answer: context deadline exceeded" {
			t.Errorf("got %+v", got)
		}
		close(release)
	})
}
