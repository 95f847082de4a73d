package executor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"penstock/schemas/control"
)

// TestTables plays a script of epochs against a target of tables (PROBLEMS P21,
// P37).
func TestTables(t *testing.T) {
	var inForce string
	tables := &Tables{Of: control.Split, Name: "haproxy", Put: func(_ context.Context, c *control.Command) error {
		switch c.TTL {
		case "bad":
			return errors.New("weights do not add up")
		case "away":
			return fmt.Errorf("haproxy: %w", ErrAgain)
		case "others'":
			return fmt.Errorf("haproxy: %w", ErrNotConcerned)
		}
		inForce = fmt.Sprint(c.Scope, c.Epoch)
		return nil
	}}
	script := []struct {
		scope string
		epoch uint64
		ttl   string
		want  string // status and reason, or the error
		force string
	}{
		{"s", 5, "", "done ", "s5"},
		{"s", 5, "", "already-applied ", "s5"},
		{"s", 4, "", "refused older-epoch", "s5"},
		{"r", 1, "", "done ", "r1"},
		{"s", 6, "bad", "failed weights do not add up", "r1"},
		{"s", 6, "", "failed weights do not add up", "r1"}, // until it changes
		{"s", 5, "", "already-applied ", "r1"},             // the last good one is in force
		{"s", 7, "away", "haproxy: the target can't be reached now", "r1"},
		{"s", 7, "", "done ", "s7"},
		{"s", 6, "", "refused older-epoch", "s7"},
		{"q", 3, "others'", "advised not-concerned", "s7"},
		{"q", 3, "others'", "advised not-concerned", "s7"}, // never already-applied: it wasn't
		{"q", 2, "", "refused older-epoch", "s7"},
		{"q", 4, "", "done ", "q4"},
		{"q", 4, "", "already-applied ", "q4"},
		{"q", 5, "others'", "advised not-concerned", "q4"},
		{"q", 4, "", "refused older-epoch", "q4"},
	}
	for i, step := range script {
		got := ""
		c := &control.Command{Kind: control.Split, Scope: step.scope, Epoch: step.epoch, TTL: step.ttl}
		err := tables.Apply(t.Context(), c, func(_ context.Context, o control.Outcome) error {
			if o.Scope != step.scope || o.Epoch != step.epoch || o.Target != "haproxy" {
				t.Errorf("step %d: outcome %+v", i, o)
			}
			got = fmt.Sprint(o.Status, " ", o.Reason)
			return nil
		})
		if err != nil {
			got = err.Error()
		}
		if got != step.want || inForce != step.force {
			t.Errorf("step %d: %q with %s in force, want %q with %s", i, got, inForce, step.want, step.force)
		}
	}
	if err := tables.Resume(t.Context(), nil); err != nil || tables.Kind() != control.Split {
		t.Error(err)
	}
	for _, s := range []control.Status{control.Advised, control.Expired} {
		err := tables.Decline(t.Context(), &control.Command{Scope: "s", Epoch: 9}, s, func(_ context.Context, o control.Outcome) error {
			if o.Status != s || o.Epoch != 9 {
				t.Errorf("outcome %+v", o)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// TestTablesAtOnce: the same tables from several sides have one effect each.
func TestTablesAtOnce(t *testing.T) {
	var mu sync.Mutex
	applied := map[uint64]int{}
	tables := &Tables{Of: control.Split, Name: "haproxy", Put: func(_ context.Context, c *control.Command) error {
		mu.Lock()
		defer mu.Unlock()
		applied[c.Epoch]++
		return nil
	}}
	var wg sync.WaitGroup
	statuses := map[control.Status]int{}
	for range 5 {
		wg.Go(func() {
			for epoch := range uint64(20) {
				c := &control.Command{Scope: "s", Epoch: epoch + 1}
				err := tables.Apply(t.Context(), c, func(_ context.Context, o control.Outcome) error {
					mu.Lock()
					defer mu.Unlock()
					statuses[o.Status]++
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for epoch, n := range applied {
		if n != 1 {
			t.Errorf("epoch %d was applied %d times", epoch, n)
		}
	}
	if statuses[control.Done] != len(applied) || applied[20] != 1 {
		t.Errorf("statuses %v, applied %v", statuses, applied)
	}
}

// TestEpochsAgainstSlow compares Epochs with a history that is searched each
// time.
func TestEpochsAgainstSlow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type event struct {
			scope string
			epoch uint64
			good  bool
		}
		var e Epochs
		var history []event
		for range rapid.IntRange(1, 40).Draw(t, "n") {
			scope := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "scope")
			epoch := rapid.Uint64Range(1, 6).Draw(t, "epoch")
			var force, rejected uint64
			for _, h := range history {
				if h.scope == scope && h.good {
					force = max(force, h.epoch)
				}
				if h.scope == scope && !h.good {
					rejected = max(rejected, h.epoch)
				}
			}
			a, _, err := e.Admit(scope, epoch)
			switch {
			case epoch < force:
				if !errors.Is(err, ErrOlder) {
					t.Fatalf("epoch %d with %d in force: %v, %v", epoch, force, a, err)
				}
				continue
			case epoch == force:
				if a != Repeated || err != nil {
					t.Fatalf("epoch %d again: %v, %v", epoch, a, err)
				}
				continue
			case epoch == rejected:
				if a != StillRejected || err != nil {
					t.Fatalf("rejected epoch %d again: %v, %v", epoch, a, err)
				}
				continue
			case a != Admitted || err != nil:
				t.Fatalf("epoch %d with %d in force, %d rejected: %v, %v", epoch, force, rejected, a, err)
			}
			good := rapid.Bool().Draw(t, "good")
			if good {
				e.InForce(scope, epoch)
			} else {
				e.Rejected(scope, epoch, "no")
			}
			history = append(history, event{scope, epoch, good})
		}
	})
}

func TestMessageIDs(t *testing.T) {
	o := func(owner string, s control.Status) *control.Outcome {
		return &control.Outcome{Kind: control.Placement, Scope: "b c", Owner: owner, Move: 3, Epoch: 0, Status: s}
	}
	for _, c := range []struct {
		o     *control.Outcome
		epoch uint64
		want  string
	}{
		{o("a", control.Done), 7, "placement/a/3"},
		{o("a", control.Failed), 8, "placement/a/3"},
		{o("a@b\r\n", control.Expired), 7, "placement/b64=YUBiDQo/3"},
		{o("a", control.Advised), 7, "placement/a/3/advised/b64=YiBj/7"},
		{&control.Outcome{Kind: control.Split, Scope: "s", Epoch: 4, Status: control.Done}, 4, "split/s/4/done"},
	} {
		if got := messageID(c.o, c.epoch); got != c.want {
			t.Errorf("id %s, want %s", got, c.want)
		}
	}
}
