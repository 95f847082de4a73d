package replay

import (
	"strings"
	"testing"
	"time"

	"penstock/infra/bus"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// letter is a message as it would come from the bus.
func letter(t *testing.T, subj string, v any, header map[string][]string) *bus.Msg {
	t.Helper()
	body, err := control.Encode(v)
	if err != nil {
		t.Fatal(err)
	}
	return &bus.Msg{Subject: subj, Data: body, Header: header}
}

func TestWhatIsMissingIsNamed(t *testing.T) {
	end := epoch.Add(time.Hour)
	win := control.Window{Start: epoch, End: end}
	a := &answers{asked: map[moveKey]asked{}, early: map[moveKey]control.Outcome{}}
	record := func(part string) *bus.Msg {
		return letter(t, "decisions.placement", &control.Decision{
			Version: 1, Kind: control.Placement, Window: win, Mode: control.Act,
			Commands: []control.CommandRef{{Scope: "east", Epoch: 1, Moves: 2}, {Scope: "west", Epoch: 1, Moves: 1}},
		}, map[string][]string{control.HeaderPart: {part}})
	}
	command := func(scope string, moves ...control.Move) *bus.Msg {
		return letter(t, subject.Commands("placement", scope), &control.Command{
			Version: 1, Kind: control.Placement, Scope: scope, Epoch: 1, Window: win, Mode: control.Act, TTL: "1h",
			Placement: &control.Moves{Moves: moves},
		}, nil)
	}
	outcome := func(owner string, s control.Status) *bus.Msg {
		return letter(t, subject.Outcomes("placement", "east"), &control.Outcome{
			Version: 1, Kind: control.Placement, Scope: "east", Owner: owner, Move: 3, Status: s,
		}, nil)
	}
	for i, step := range []struct {
		take func() error
		want string
	}{
		{func() error { return nil }, "waits for its decision record on decisions.placement"},
		// Outcomes of the window may be read before its commands.
		{func() error { return a.outcome(outcome("cat", control.Done)) }, "waits for its decision record"},
		{func() error { return a.command(record("1/2")) }, "1 of 2 parts"},
		{func() error {
			return a.command(command("east", control.Move{Owner: "ann", From: "west", To: "east", Version: 3}, control.Move{Owner: "bob", From: "west", To: "east", Version: 3}))
		}, "1 of 2 parts"},
		{func() error { return a.command(record("2/2")) }, "1 of 2 commands"},
		{
			func() error {
				return a.command(command("west", control.Move{Owner: "cat", From: "east", To: "west", Version: 3}))
			},
			"waits for 2 outcomes, the first of owner \"ann\", move 3 from west to east",
		},
		{func() error { return a.outcome(outcome("ann", control.AlreadyApplied)) }, "waits for 2 outcomes"},
		{func() error { return a.outcome(outcome("ann", control.Failed)) }, "waits for 1 outcomes, the first of owner \"bob\""},
		{func() error { return a.outcome(outcome("zoe", control.Advised)) }, "waits for 1 outcomes"},
	} {
		if err := step.take(); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		if got := a.lacks(end.UnixMicro()); !strings.Contains(got, step.want) || !strings.Contains(got, "09:00:00Z") {
			t.Errorf("step %d: %q, expected %q", i, got, step.want)
		}
		if a.ready(end.UnixMicro()) || len(a.take(end.UnixMicro())) != 0 {
			t.Errorf("step %d: the window is taken as answered", i)
		}
	}
	if err := a.outcome(outcome("bob", control.Done)); err != nil {
		t.Fatal(err)
	}
	if !a.ready(end.UnixMicro()) || a.ready(end.Add(time.Hour).UnixMicro()) {
		t.Error("the window is not answered, or another one is")
	}
	got := a.take(end.UnixMicro())
	if len(got) != 1 || len(got[0].moves) != 3 || len(a.early)+len(a.asked) != 0 {
		t.Fatalf("got %+v, left %v and %v", got, a.early, a.asked)
	}
	for i, want := range []control.Status{control.Failed, control.Done, control.Done} {
		if got[0].outcomes[i].Status != want {
			t.Errorf("move %d is %s, expected %s", i, got[0].outcomes[i].Status, want)
		}
	}
}

func TestACommandWithoutARecordIsAFault(t *testing.T) {
	a := &answers{}
	m := letter(t, subject.Commands("placement", "east"), &control.Command{
		Version: 1, Kind: control.Placement, Scope: "east", Epoch: 1, Window: control.Window{Start: epoch, End: epoch.Add(time.Hour)},
		Mode: control.Act, TTL: "1h", Placement: &control.Moves{},
	}, nil)
	if err := a.command(m); err == nil {
		t.Error("a command without a record was taken")
	}
	for _, part := range []string{"2", "1/0", "1/x"} {
		m := letter(t, "decisions.placement", &control.Decision{Version: 1, Kind: control.Placement}, map[string][]string{control.HeaderPart: {part}})
		if err := a.command(m); err == nil {
			t.Errorf("part %q was taken", part)
		}
	}
	if err := a.outcome(&bus.Msg{Subject: "outcomes.placement.east", Data: []byte("{")}); err == nil {
		t.Error("half an outcome was taken")
	}
}
