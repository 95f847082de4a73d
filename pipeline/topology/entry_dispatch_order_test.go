package topology

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"penstock/consumers/executor"
	"penstock/infra/clock"
	"penstock/schemas/control"
)

// followed is a target that notes which tables it was given, and servers that are ready or
// not.
type followed struct {
	executor.Target
	mu     sync.Mutex
	well   []string
	ready  map[string]bool
	asked  chan string
	epochs []uint64
}

func (f *followed) Apply(_ context.Context, c *control.Command, _ executor.Answer) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.epochs = append(f.epochs, c.Epoch)
	return nil
}

func (f *followed) order(c clock.Clock) *ordered {
	return &ordered{
		Target: f, site: "east", clock: c, log: zerolog.Nop(), well: func() []string { return f.well },
		ready: func(_ context.Context, server string) error {
			select {
			case f.asked <- server:
			default:
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			if !f.ready[server] {
				return errors.New("connection refused")
			}
			return nil
		},
	}
}

func serversTable(epoch uint64, on, off []string) *control.Command {
	return &control.Command{
		Version: 1, Kind: control.Servers, Scope: "east", Epoch: epoch, Mode: control.Act, TTL: "10m",
		Servers: &control.ServersTable{On: on, Off: off, ZoneWeights: map[string]float64{"east": 1}},
	}
}

// TestTablesInTheirOrder: a table that takes servers away which serve is followed once one of
// those that it leaves is ready, and not at all if a later one comes; others at once.
func TestTablesInTheirOrder(t *testing.T) {
	t.Parallel()
	f := &followed{well: []string{"b"}, ready: map[string]bool{}, asked: make(chan string, 1)}
	c := clock.NewManual(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	o := f.order(c)
	answers := make(chan control.Outcome, 10)
	apply := func(m *control.Command) <-chan error {
		done := make(chan error, 1)
		go func() {
			done <- o.Apply(t.Context(), m, func(_ context.Context, o control.Outcome) error {
				answers <- o
				return nil
			})
		}()
		return done
	}
	ended := func(done <-chan error) {
		t.Helper()
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(time.Minute):
			t.Fatal("it waits")
		}
	}
	had := func(want ...uint64) {
		t.Helper()
		f.mu.Lock()
		defer f.mu.Unlock()
		if !slices.Equal(f.epochs, want) {
			t.Errorf("epochs %v, expected %v", f.epochs, want)
		}
	}
	ended(apply(serversTable(1, []string{"a", "b"}, []string{"c"})))
	had(1)
	second := apply(serversTable(2, []string{"a"}, []string{"b", "c"}))
	if err := c.Await(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	had(1)
	third := apply(serversTable(3, []string{"a", "c"}, []string{"b"}))
	ended(second)
	if got := <-answers; got.Status != control.Refused || got.Epoch != 2 {
		t.Errorf("a table that was overtaken is answered %+v", got)
	}
	if err := c.Await(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	had(1)
	f.mu.Lock()
	f.ready["c"] = true
	f.mu.Unlock()
	c.Advance(orderLook)
	ended(third)
	had(1, 3)

	// One that is delivered again is over, though none of its servers is ready.
	f.mu.Lock()
	f.ready["c"] = false
	f.mu.Unlock()
	ended(apply(serversTable(2, []string{"a"}, []string{"b", "c"})))
	if got := <-answers; got.Status != control.Refused || got.Epoch != 2 {
		t.Errorf("a table of before is answered %+v", got)
	}
	had(1, 3)

	// Where nobody is well nothing is lost, and a table whose time is over is the target's to
	// answer.
	f.well, f.ready = nil, map[string]bool{}
	ended(apply(serversTable(4, []string{"a"}, []string{"b", "c"})))
	had(1, 3, 4)
	f.well = []string{"b"}
	fifth := apply(serversTable(5, []string{"a"}, []string{"b", "c"}))
	if err := c.Await(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	c.Advance(10 * time.Minute)
	ended(fifth)
	had(1, 3, 4, 5)
	if len(answers) > 0 {
		t.Errorf("answered %+v", <-answers)
	}
}
