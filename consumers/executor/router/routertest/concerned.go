package routertest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"penstock/consumers/executor/router"
	"penstock/infra/shares"
	"penstock/schemas/control"
)

// rows is what the target shows for Frontend.
func (w World) rows(t *testing.T) string {
	t.Helper()
	rows, err := w.Target.Observe(t.Context(), Frontend)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(rows)
}

// rowsThatGo from one table to the next leave their links to the target's own
// configuration, as without any table.
func rowsThatGo(t *testing.T, w World) {
	w.put(t, Table(1, 1, 0, 0))
	without := w.rows(t)
	both := Table(2, 1, 0, 0)
	both.Rows = append(both.Rows, Table(2, 0, 0.25, 0.75).Rows...)
	both.Rows[1].FromSite, both.Rows[1].To = w.Second.FromSite, w.Second.To
	w.put(t, both)
	w.shown(t, both)
	w.put(t, Table(3, 1, 0, 0))
	if got := w.rows(t); got != without {
		t.Errorf("a row that went leaves\n%s, want\n%s", got, without)
	}
}

// notConcerned targets, of tables in which nothing is theirs, are put nothing and say
// so; rows of others in a table that has some of theirs are no reason to refuse it.
func notConcerned(t *testing.T, w World) {
	if _, some := w.Target.(router.Carrier); !some {
		return // it carries all
	}
	k, err := router.NewKeeper(router.KeeperOptions{
		Target: w.Target, History: func(context.Context, func(*control.Command, time.Time) error) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	apply := func(table shares.Table, status control.Status, reason string) {
		t.Helper()
		c := &control.Command{Kind: control.Split, Scope: table.From, Epoch: table.Epoch, TTL: "10m", Split: &control.SplitTable{Table: table.Rows}}
		err := k.Apply(t.Context(), c, func(_ context.Context, o control.Outcome) error {
			if o.Status != status || o.Reason != reason || o.Target != w.Target.Name() || o.Epoch != table.Epoch {
				t.Errorf("answered %+v, want %s %s", o, status, reason)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	others := shares.Row{FromSite: Absent, To: "others", Ratios: []shares.Ratio{{Site: Absent, Share: 1}}}
	all, frontend := w.Foreign(), w.rows(t)

	apply(shares.Table{From: "nobody", Epoch: 1, Rows: []shares.Row{others}}, control.Advised, control.NotConcerned)
	apply(shares.Table{From: "nobody", Epoch: 1, Rows: []shares.Row{others}}, control.Advised, control.NotConcerned)
	if got := w.Foreign() + w.rows(t); got != all+frontend {
		t.Errorf("a table that has nothing for the target made it\n%s, from\n%s", got, all+frontend)
	}

	mixed := Table(2, 0.5, 0, 0.5)
	mixed.Rows = append(mixed.Rows, others)
	apply(mixed, control.Done, "")
	w.shown(t, Table(2, 0.5, 0, 0.5))

	apply(shares.Table{From: Frontend, Epoch: 3, Rows: []shares.Row{others}}, control.Advised, control.NotConcerned)
	if got := w.rows(t); got != frontend {
		t.Errorf("after its last row went it shows\n%s, not\n%s", got, frontend)
	}
	apply(mixed, control.Refused, "older-epoch")
	if _, has := k.State(Frontend); has {
		t.Error("a table that went is in force")
	}
}
