package router

import (
	"errors"
	"testing"
	"time"

	"penstock/consumers/executor"
	"penstock/infra/shares"
	"penstock/schemas/control"
)

// TestKeeperResumes with the last good table that is to be acted on.
func TestKeeperResumes(t *testing.T) {
	t.Parallel()
	at := began.Add(-time.Minute)
	good := order(5, control.Act, "10m", 0, 1)
	for name, tc := range map[string]struct {
		p     past
		fail  error
		told  []string
		site  string
		epoch uint64
	}{
		"nothing":    {nil, nil, []string{"put 0"}, "2", 0},
		"one":        {past{{good, at}}, nil, []string{"put 5"}, "1", 5},
		"the last":   {past{{order(4, control.Act, "10m", 1), at}, {good, at}}, nil, []string{"put 5"}, "1", 5},
		"advice":     {past{{good, at}, {order(6, control.Advise, "10m", 1), at}}, nil, []string{"put 5"}, "1", 5},
		"a bad one":  {past{{good, at}, {order(6, control.Act, "10m", 0, 0, 0, 1), at}}, nil, []string{"put 6", "put 5"}, "1", 5},
		"an old one": {past{{good, at.Add(-time.Hour)}}, nil, []string{"put 0"}, "2", 0},
		"after an old one": {
			past{{good, at}, {order(6, control.Act, "10s", 1), at}}, nil, []string{"put 0"}, "2", 0,
		},
		"unreachable":          {past{{good, at}}, ErrUnreachable, []string{"put 5"}, "1", 5},
		"unreachable, nothing": {nil, ErrUnreachable, []string{"put 0"}, "2", 0},
	} {
		g := keep(t, tc.p, table(0, 0, 0, 1))
		g.target.fail = tc.fail
		if err := g.k.Resume(t.Context(), g.answer); err != nil {
			t.Fatal(name, err)
		}
		if tc.fail != nil {
			g.site(name, "east")
			g.target.fail, g.target.told = nil, nil
			g.look()
		}
		g.expect(name, tc.told, nil)
		g.site(name, tc.site)
		if s, has := g.k.State(link.From); !has || s.Table.Epoch != tc.epoch {
			t.Errorf("%s: state %+v", name, s)
		}
		if tc.epoch == 5 {
			if err := g.apply(good); err != nil {
				t.Fatal(err)
			}
			g.expect(name+", delivered", nil, []string{"5 done"})
			if err := g.apply(good); err != nil {
				t.Fatal(err)
			}
			if err := g.apply(order(3, control.Act, "10m", 1)); err != nil {
				t.Fatal(err)
			}
			g.expect(name+", delivered again", nil, []string{"5 already-applied", "3 refused"})
		}
	}
}

// TestKeeperDelivers a table that it took up while the target was away: it is
// done when the target has it, and failed if the target won't have it.
func TestKeeperDelivers(t *testing.T) {
	t.Parallel()
	c := order(5, control.Act, "10m", 0, 1)
	g := keep(t, past{{c, began}})
	g.target.fail = ErrUnreachable
	if err := g.k.Resume(t.Context(), g.answer); err != nil {
		t.Fatal(err)
	}
	if err := g.apply(c); !errors.Is(err, executor.ErrAgain) {
		t.Errorf("while it is away: %v", err)
	}
	g.target.fail = shares.ErrAbsent
	g.target.told = nil
	if err := g.apply(c); err != nil {
		t.Fatal(err)
	}
	g.look()
	g.expect("not taken", []string{"put 5: " + shares.ErrAbsent.Error()}, []string{"5 failed"})
	g = keep(t, past{{c, began}})
	g.target.fail = ErrUnreachable
	if err := g.k.Resume(t.Context(), g.answer); err != nil {
		t.Fatal(err)
	}
	g.target.fail, g.target.told = nil, nil
	if err := g.apply(c); err != nil {
		t.Fatal(err)
	}
	g.expect("back", []string{"put 5"}, []string{"5 done"})
}
