package locations

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// moved publishes decisions and outcomes of placement.
type moved struct {
	t     *testing.T
	c     *bus.Client
	epoch uint64
}

func (x *moved) publish(subj string, header map[string][]string, v any) {
	x.t.Helper()
	body, err := control.Encode(v)
	ok(x.t, err)
	_, err = x.c.Publish(x.t.Context(), bus.Msg{Subject: subj, Header: header, Data: body})
	ok(x.t, err)
}

// decide publishes a decision of the window that ends at hour n: owner and version.
func (x *moved) decide(n int, mode control.Mode, moves ...control.Move) {
	x.t.Helper()
	x.epoch++
	end := t0.Truncate(time.Hour).Add(time.Duration(n) * time.Hour)
	w := control.Window{Start: end.Add(-time.Hour), End: end}
	hash := "sha256:" + strings.Repeat("0", 64)
	st, err := x.c.State(x.t.Context(), subject.OutcomesStream)
	ok(x.t, err)
	x.publish(subject.Decisions("placement"), map[string][]string{control.HeaderOutcomes: {strconv.FormatUint(st.LastSeq, 10)}}, control.Decision{
		Version: 1, Kind: control.Placement, Window: w, Mode: mode, Operator: control.Operator{Mode: mode}, Policy: hash, State: hash,
		Commands: []control.CommandRef{{Scope: "b", Epoch: x.epoch, Moves: len(moves)}},
	})
	x.publish(subject.Commands("placement", "b"), nil, control.Command{
		Version: 1, Kind: control.Placement, Scope: "b", Epoch: x.epoch, Window: w, Mode: mode, TTL: "1h",
		Reason: control.Reason{Code: "LMatch"}, Placement: &control.Moves{Moves: moves},
	})
}

func (x *moved) answer(owner string, version uint64, s control.Status, reason string) {
	x.t.Helper()
	x.publish(subject.Outcomes("placement", "b"), nil, control.Outcome{
		Version: 1, Kind: control.Placement, Scope: "b", Owner: owner, Move: version, Status: s, Reason: reason, At: t0,
	})
}

func move(owner string, version uint64) control.Move {
	return control.Move{Owner: owner, From: "a", To: "b", Version: version}
}

func TestMovesUnderWay(t *testing.T) {
	c := bustest.Client(t, bustest.Start(t))
	x := &moved{t: t, c: c}
	under := func(want string) {
		t.Helper()
		got, err := UnderWay(t.Context(), c)
		ok(t, err)
		versions := map[string]uint64{}
		for owner, mv := range got {
			versions[owner] = mv.Version
		}
		if fmt.Sprint(versions) != want {
			t.Errorf("under way %v, expected %s", versions, want)
		}
	}
	under("map[]")
	x.decide(1, control.Advise, move("ann", 1))
	x.answer("ann", 1, control.Advised, "")
	under("map[]")
	x.decide(2, control.Act, move("ann", 1), move("bob", 4), move("eve", 2))
	x.answer("bob", 4, control.Imported, "")
	under("map[ann:1 bob:4 eve:2]")
	x.answer("ann", 1, control.Done, "")
	x.answer("bob", 4, control.Failed, "store")
	under("map[eve:2]")
	x.decide(3, control.Act, move("ann", 2), move("bob", 5))
	under("map[ann:2 bob:5 eve:2]")
	x.answer("ann", 2, control.Refused, "pinned")
	x.answer("bob", 5, control.Expired, "")
	under("map[eve:2]")
	// Records go before the commands of theirs that are not answered.
	st, err := c.State(t.Context(), subject.CommandsStream)
	ok(t, err)
	ok(t, c.Trim(t.Context(), subject.CommandsStream, st.LastSeq, subject.Decisions("placement")))
	under("map[eve:2]")
	_, err = c.Publish(t.Context(), bus.Msg{Subject: subject.Commands("placement", "b"), Data: []byte("{")})
	ok(t, err)
	under("map[eve:2]")
}

func TestFailingMoves(t *testing.T) {
	c := bustest.Client(t, bustest.Start(t))
	x := &moved{t: t, c: c}
	failing := func(last uint64, want string) {
		t.Helper()
		got, err := FailingMoves(t.Context(), c, last)
		ok(t, err)
		var b strings.Builder
		for _, f := range got {
			fmt.Fprintf(&b, "%s %d %s %s %d; ", f.Owner, f.Count, f.Status, f.Reason, f.Move)
		}
		if b.String() != want {
			t.Errorf("failing %q, expected %q", b.String(), want)
		}
	}
	failing(100, "")
	x.answer("bob", 1, control.Failed, "store")
	x.answer("ann", 1, control.Failed, "source-missing")
	x.answer("bob", 2, control.Refused, "pinned")
	x.answer("eve", 1, control.Expired, "")
	x.answer("joe", 1, control.Failed, "store")
	x.answer("joe", 2, control.Done, "")
	failing(100, "ann 1 failed source-missing 1; bob 2 refused pinned 2; eve 1 expired  1; ")
	failing(4, "bob 1 refused pinned 2; eve 1 expired  1; ")
	x.answer("ann", 3, control.Imported, "")
	x.answer("bob", 2, control.Advised, "")
	failing(100, "bob 2 refused pinned 2; eve 1 expired  1; ")
	x.answer("ann", 4, control.Failed, "store")
	failing(100, "ann 2 failed store 4; bob 2 refused pinned 2; eve 1 expired  1; ")
	x.answer("ann", 5, control.Done, "")
	x.answer("ann", 5, control.Imported, "")
	x.answer("ann", 6, control.Failed, "store")
	failing(100, "ann 1 failed store 6; bob 2 refused pinned 2; eve 1 expired  1; ")
}
