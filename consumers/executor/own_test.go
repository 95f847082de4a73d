package executor_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"penstock/consumers/executor"
	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// applied is what a process with its own consumer has brought into force.
type applied struct {
	mu    sync.Mutex
	force []string
}

func (a *applied) tables(name string) *executor.Tables {
	return &executor.Tables{Of: control.Split, Name: name, Put: func(_ context.Context, c *control.Command) error {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.force = append(a.force, fmt.Sprint(c.Scope, c.Epoch))
		return nil
	}}
}

func (a *applied) sorted() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Sorted(slices.Values(a.force))
}

func sendTable(t *testing.T, c *bus.Client, scope string, epoch uint64) {
	t.Helper()
	end := time.Date(2015, 5, 17, 10, 0, 0, 0, time.UTC)
	body, err := control.Encode(&control.Command{
		Version: 1, Kind: control.Split, Scope: scope, Epoch: epoch, Mode: control.Act, TTL: "24h",
		Window: control.Window{Start: end.Add(-10 * time.Second), End: end},
		Split:  &control.SplitTable{Table: []control.SplitRow{{FromSite: "east", To: "web", Ratios: []control.SplitRatio{{Site: "east", Share: 1}}}}},
	})
	ok(t, err)
	_, err = c.Publish(t.Context(), bus.Msg{
		Subject: subject.Commands(string(control.Split), scope), Header: map[string][]string{control.HeaderSchema: {control.CommandSchema}}, Data: body,
	})
	ok(t, err)
}

// TestEveryProcessOfItsOwn has two routers carry out all tables, each from the last one
// of each scope on, and answer for itself. The server knows when they are gone.
func TestEveryProcessOfItsOwn(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	c := bustest.Client(t, b)
	sendTable(t, c, "web", 1)
	sendTable(t, c, "web", 2)
	sendTable(t, c, "cart", 1)
	outcomes, err := c.Read(t.Context(), subject.OutcomesStream, []string{subject.OutcomesOf("split")}, 1)
	ok(t, err)
	defer outcomes.Close()
	var all [2]applied
	by := map[string]int{}
	for i := range all {
		name := fmt.Sprintf("router-%d", i)
		x, err := executor.New(executor.Options{Client: c, Target: all[i].tables(name), Name: name, Role: name, Own: true})
		ok(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- x.Run(ctx) }()
		defer func() { cancel(); ok(t, <-done) }()
	}
	for _, m := range bustest.Take(t, outcomes, 4) {
		o, err := control.DecodeOutcome(m.Data)
		ok(t, err)
		by[fmt.Sprint(o.By, o.Target, o.Status, o.Scope, o.Epoch)]++
	}
	sendTable(t, c, "web", 3)
	bustest.Take(t, outcomes, 2)
	for i := range all {
		name := fmt.Sprintf("router-%d", i)
		if got := all[i].sorted(); !slices.Equal(got, []string{"cart1", "web2", "web3"}) {
			t.Errorf("%s has brought into force %v", name, got)
		}
		for _, what := range []string{"doneweb2", "donecart1"} {
			if by[name+name+what] != 1 {
				t.Errorf("outcomes %v", by)
			}
		}
		info, err := c.JS.Consumer(t.Context(), c.Stream(subject.CommandsStream), "split-"+subject.Encode(name))
		ok(t, err)
		if got := info.CachedInfo().Config.InactiveThreshold; got != executor.OwnFor {
			t.Errorf("the server keeps the consumer of one that is gone for %v", got)
		}
	}
	for _, o := range []executor.Options{{Own: true}, {Own: true, Role: "x", Target: &executor.Tables{Of: control.Placement}}} {
		o.Client = c
		if o.Target == nil {
			o.Target = all[0].tables("x")
		}
		if _, err := executor.New(o); !errors.Is(err, executor.ErrOptions) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
