package router

import (
	"context"
	"errors"
	"testing"
	"time"

	"penstock/infra/shares"
	"penstock/schemas/control"
)

// TestHeld is what another process restores: tables in force with what is left of
// their time, no defaults, nothing that was lost.
func TestHeld(t *testing.T) {
	t.Parallel()
	g := keep(t, nil, table(0, 1))
	if err := g.k.Resume(t.Context(), g.answer); err != nil {
		t.Fatal(err)
	}
	if held := g.k.Held(); len(held) != 0 {
		t.Errorf("a default is held: %+v", held)
	}
	if err := g.apply(order(3, control.Act, "10m", 0, 1)); err != nil {
		t.Fatal(err)
	}
	held := g.k.Held()
	if len(held) != 1 || held[0].Table.Epoch != 3 || !held[0].Until.Equal(began.Add(10*time.Minute)) {
		t.Fatalf("held %+v", held)
	}

	// Started again, without a word from the bus.
	again := keep(t, nil, table(0, 1))
	again.clock.Advance(4 * time.Minute)
	if err := again.k.Restore(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	again.expect("restored", []string{"put 3"}, nil)
	again.site("restored", "1")
	again.target.lose = true
	again.look()
	again.site("lost and put again", "1")
	again.clock.Advance(6 * time.Minute)
	again.look()
	again.site("its time is over", "0")

	// Too late: the default is for Resume to bring.
	late := keep(t, nil)
	late.clock.Advance(10 * time.Minute)
	if err := late.k.Restore(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	late.expect("over", nil, nil)
}

// TestRestoredThenResumed: what the bus holds takes the place of what was restored,
// and is answered when it is delivered.
func TestRestoredThenResumed(t *testing.T) {
	t.Parallel()
	held := []Held{{Table: table(3, 0, 1), Until: began.Add(time.Hour)}}
	for name, p := range map[string]past{
		"newer": {{order(4, control.Act, "10m", 0, 0, 1), began}},
		"same":  {{order(3, control.Act, "10m", 0, 1), began}},
	} {
		g := keep(t, p)
		if err := g.k.Restore(t.Context(), held); err != nil {
			t.Fatal(err)
		}
		if err := g.k.Resume(t.Context(), g.answer); err != nil {
			t.Fatal(err)
		}
		if err := g.apply(p[0].c); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"newer": "4 done", "same": "3 done"}[name]
		site := map[string]string{"newer": "2", "same": "1"}[name]
		if len(g.answers) != 1 || g.answers[0] != want {
			t.Errorf("%s: answered %v, not %s", name, g.answers, want)
		}
		g.site(name, site)
	}
}

// TestRestoreIntoTrouble: a target that can't be reached gets the table later, one
// that doesn't take it is left alone, and a time that is over ends it.
func TestRestoreIntoTrouble(t *testing.T) {
	t.Parallel()
	held := []Held{{Table: table(3, 0, 1), Until: began.Add(time.Hour)}}
	g := keep(t, nil)
	g.target.fail = ErrUnreachable
	if err := g.k.Restore(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	g.target.fail = nil
	g.look()
	g.site("reached again", "1")

	g = keep(t, nil)
	g.target.fail = shares.ErrTable
	if err := g.k.Restore(t.Context(), held); err != nil || len(g.k.Held()) != 0 {
		t.Errorf("not taken: %v, held %v", err, g.k.Held())
	}

	ended, end := context.WithCancel(t.Context())
	end()
	g = keep(t, nil)
	g.target.fail = context.Canceled
	if err := g.k.Restore(ended, held); !errors.Is(err, context.Canceled) {
		t.Errorf("ended: %v", err)
	}
}
