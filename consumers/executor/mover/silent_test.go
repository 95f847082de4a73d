package mover

import (
	"testing"

	"penstock/infra/gate"
	"penstock/infra/objectstore"
	"penstock/schemas/control"
)

// TestASilentEntryPointFailsTheMove: where entry points stand in for a barrier and
// one of them doesn't answer, it may be writing. The move is not made, says by whom,
// and leaves nothing behind; once it answers again, the next one is.
func TestASilentEntryPointFailsTheMove(t *testing.T) {
	w := newWorld(t)
	s := &faulty{Store: w.stores["a"]}
	s.fail(func(op, _ string) error {
		if op == "hold" {
			return &gate.SilentError{Site: "a", Entry: "web-1"}
		}
		return nil
	})
	m := w.mover(func(o *Options) { o.Stores["a"] = s })
	data := objects(2)
	w.put("a", "o", data)
	if o := w.apply(m, move("o", "a", "b", 1)); o.Status != control.Failed || o.Reason != ReasonEntrySilent+": web-1" {
		t.Errorf("outcome %+v", o)
	}
	if mark := w.mark("b", "o"); mark.State != objectstore.Absent {
		t.Errorf("b is %v", mark)
	}
	w.put("a", "o", data) // It is open.
	s.fail(nil)
	if o := w.apply(m, move("o", "a", "b", 2)); o.Status != control.Done {
		t.Errorf("outcome %+v", o)
	}
	w.check("o", "b", 2, data)
}
